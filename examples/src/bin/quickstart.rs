//! A bank tells its customers about transfers, by e-mail and by push.
//!
//! The broker delivers at least once: some events come twice, and once the
//! consumer dies in the middle of its work. Each customer is told once per
//! channel all the same.

use std::process::ExitCode;

use idempotent_examples::crash;
use idempotent_examples::database::{Database, Effect};
use idempotent_examples::deliveries::Deliveries;
use idempotent_examples::options::{Options, Program};
use idempotent_examples::report::{Columns, Report};
use idempotent_examples::stop::Stop;
use idempotent_runtime::{Error, KeyPart, Outcome, idempotent, transact};
use serde::Deserialize;
use sqlx::{MySql, Postgres, Sqlite, Transaction, query};

// The message.

/// What the broker hands over: an event, and the channel it goes out by.
#[derive(Deserialize)]
struct Delivery {
    /// The broker's own number. A redelivery has another one: never a key.
    #[serde(rename = "delivery")]
    number: u64,
    event: TransferCompleted,
    channel: Channel,
    /// For the show: the consumer dies when it gets this for the first time.
    #[serde(default)]
    crash: bool,
}

#[derive(Deserialize)]
struct TransferCompleted {
    id: String,
    account: String,
    /// In cents.
    amount: i64,
}

/// `KeyPart` makes it usable in a key, where it reads `EMAIL` or `PUSH`.
#[derive(Clone, Copy, Deserialize, KeyPart)]
#[serde(try_from = "String")]
enum Channel {
    #[key(name = "EMAIL")]
    Email,
    #[key(name = "PUSH")]
    Push,
}

// The handler.

/// Read the function inside: that is the handler. With one database it stands
/// alone and says `Postgres`, `MySql` or `Sqlite` for `$Database`; this program
/// has it for all three, which differ in how a statement names its values.
macro_rules! handler {
    ($module:ident, $Database:ident, $values:literal) => {
        mod $module {
            use super::*;

            /// Tells the customer, once per event *and channel*: with
            /// `key = "event.id"` alone, whoever got the e-mail would never get
            /// the push notice. (It does not compile: `channel` is missing.)
            #[idempotent(key = "event.id, channel", scope = "notify")]
            pub(crate) async fn notify(
                tx: &mut Transaction<'_, $Database>,
                event: &TransferCompleted,
                channel: Channel,
            ) -> Result<(), Error> {
                query(concat!(
                    "INSERT INTO notifications (event_id, channel, account, amount) VALUES ",
                    $values
                ))
                .bind(&event.id)
                .bind(channel.name())
                .bind(&event.account)
                .bind(event.amount)
                .execute(&mut **tx)
                .await?;
                crash::point().await; // for the show
                Ok(())
            }
        }
    };
}

handler!(sqlite, Sqlite, "($1, $2, $3, $4)");
handler!(postgres, Postgres, "($1, $2, $3, $4)");
handler!(mysql, MySql, "(?, ?, ?, ?)");

/// Handles one delivery: the key and the row are committed together, or neither
/// is. After `Ok`, acknowledge; after `Err`, ask `disposition(&error)`.
async fn handle(database: &Database, delivery: &Delivery) -> Result<Outcome<()>, Error> {
    let (event, channel) = (&delivery.event, delivery.channel);
    match database {
        Database::Sqlite(pool) => transact!(pool, tx => sqlite::notify(tx, event, channel)).await,
        Database::Postgres(pool) => {
            transact!(pool, tx => postgres::notify(tx, event, channel)).await
        }
        Database::MySql(pool) => transact!(pool, tx => mysql::notify(tx, event, channel)).await,
    }
}

/// The table has a unique key of its own, of the same grain: a second line of
/// defence, for faults in the consumer itself.
const NOTIFICATIONS: Effect = Effect {
    scope: "notify",
    table: "notifications",
    columns: "'event_id', 'channel', 'account', 'amount'",
    create: "CREATE TABLE IF NOT EXISTS notifications (
        event_id varchar(255) NOT NULL,
        channel varchar(16) NOT NULL,
        account varchar(255) NOT NULL,
        amount bigint NOT NULL,
        UNIQUE (event_id, channel)
    )",
};

// The consumer.

const PROGRAM: Program = Program {
    name: "quickstart",
    promise: "Customers are told once per transfer and channel, however often it arrives.",
    events: concat!(env!("CARGO_MANIFEST_DIR"), "/data/transfers.jsonl"),
    database: "sqlite:quickstart.db",
    effect: NOTIFICATIONS,
};

const COLUMNS: Columns<3> = [("delivery", 10), ("event", 12), ("channel", 7)];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match consume().await {
        Ok(exit_code) => exit_code,
        Err(stop) => stop.exit_code(PROGRAM.name),
    }
}

async fn consume() -> Result<ExitCode, Stop> {
    let options = Options::from_args(&PROGRAM)?;
    let mut deliveries = Deliveries::open(&options.events).await?;
    let mut database = Database::open(&options.database, options.fresh, &NOTIFICATIONS).await?;
    let mut report = Report::begin(&PROGRAM, deliveries.name(), &database.name(), COLUMNS)?;

    while let Some(line) = deliveries.next().await? {
        let delivery: Delivery = match line.parse() {
            Ok(delivery) => delivery,
            Err(why) => {
                report.bad_line(line.number, &why)?;
                continue;
            }
        };
        let number = delivery.number.to_string();
        let cells = |number| [number, &*delivery.event.id, delivery.channel.name()];

        let survived = crash::survive(delivery.crash, handle(&database, &delivery)).await;
        if let Ok(answer) = survived {
            report.answered(line.number, cells(&number), &answer)?;
        } else {
            report.crashed(cells(&number))?;
            // The consumer starts again, and the broker, which got no answer, delivers again.
            database = database.reopen().await?;
            let answer = handle(&database, &delivery).await;
            report.answered(line.number, cells(&format!("{number} again")), &answer)?;
        }
    }
    let remarks = remarks(&database).await;
    database.close().await;
    report.finish(remarks)
}

/// What the table holds, and what another key would have done to it.
async fn remarks(database: &Database) -> Result<Vec<String>, sqlx::Error> {
    let notices = database
        .number("SELECT count(*) FROM notifications")
        .await?;
    let events = database
        .number("SELECT count(DISTINCT event_id) FROM notifications")
        .await?;
    let mut remarks = vec![format!(
        "Notices in the table `notifications`: {notices}, of different events: {events}."
    )];
    if notices > events {
        let swallowed = notices - events;
        remarks.push(format!(
            "With the key `event.id` alone, {swallowed} of the {notices} would have been swallowed."
        ));
    }
    Ok(remarks)
}

impl Channel {
    const fn name(self) -> &'static str {
        match self {
            Self::Email => "EMAIL",
            Self::Push => "PUSH",
        }
    }
}

impl TryFrom<String> for Channel {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match &*name {
            "EMAIL" => Ok(Self::Email),
            "PUSH" => Ok(Self::Push),
            _ => Err(format!("unknown channel `{name}`, expected EMAIL or PUSH")),
        }
    }
}
