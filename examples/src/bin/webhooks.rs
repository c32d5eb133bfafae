//! A service notes GitHub's webhooks, once per delivery and event.
//!
//! GitHub keeps the id of a delivery when somebody presses "Redeliver". The
//! deliveries that come with this program carry whole payloads as GitHub
//! publishes them: see `data/README.md`.

use std::process::ExitCode;

use idempotent_examples::database::{Database, Effect};
use idempotent_examples::deliveries::Deliveries;
use idempotent_examples::options::{Options, Program};
use idempotent_examples::report::{Columns, Report};
use idempotent_examples::stop::Stop;
use idempotent_runtime::{Error, Outcome, idempotent, transact};
use serde::Deserialize;
use serde_json::Value;
use sqlx::{MySql, Postgres, Sqlite, Transaction, query};
use uuid::Uuid;

// The message.

#[derive(Deserialize)]
struct Delivery {
    /// The header `X-GitHub-Delivery`. As a `Uuid`, two spellings of one id are
    /// one key.
    #[serde(rename = "delivery")]
    id: Uuid,
    /// The header `X-GitHub-Event`.
    event: String,
    payload: Value,
}

impl Delivery {
    /// `None`: the event belongs to an organization or an app.
    fn repository(&self) -> Option<&str> {
        self.payload.pointer("/repository/full_name")?.as_str()
    }

    fn sender(&self) -> Option<&str> {
        self.payload.pointer("/sender/login")?.as_str()
    }
}

// The handler.

/// As in `quickstart.rs`, the handler is the function inside.
macro_rules! handler {
    ($module:ident, $Database:ident, $values:literal) => {
        mod $module {
            use super::*;

            /// Notes who did something, and where.
            #[idempotent(key = "delivery.id, delivery.event", scope = "github")]
            pub(crate) async fn note(
                tx: &mut Transaction<'_, $Database>,
                delivery: &Delivery,
            ) -> Result<(), Error> {
                query(concat!(
                    "INSERT INTO webhook_events (delivery, event, repository, sender) VALUES ",
                    $values
                ))
                .bind(delivery.id.to_string())
                .bind(&delivery.event)
                .bind(delivery.repository())
                .bind(delivery.sender())
                .execute(&mut **tx)
                .await?;
                Ok(())
            }
        }
    };
}

handler!(sqlite, Sqlite, "($1, $2, $3, $4)");
handler!(postgres, Postgres, "($1, $2, $3, $4)");
handler!(mysql, MySql, "(?, ?, ?, ?)");

async fn handle(database: &Database, delivery: &Delivery) -> Result<Outcome<()>, Error> {
    match database {
        Database::Sqlite(pool) => transact!(pool, tx => sqlite::note(tx, delivery)).await,
        Database::Postgres(pool) => transact!(pool, tx => postgres::note(tx, delivery)).await,
        Database::MySql(pool) => transact!(pool, tx => mysql::note(tx, delivery)).await,
    }
}

const WEBHOOK_EVENTS: Effect = Effect {
    scope: "github",
    table: "webhook_events",
    columns: "'delivery', 'event', 'repository', 'sender'",
    create: "CREATE TABLE IF NOT EXISTS webhook_events (
        delivery char(36) NOT NULL,
        event varchar(255) NOT NULL,
        repository varchar(255),
        sender varchar(255),
        UNIQUE (delivery, event)
    )",
};

// The consumer.

const PROGRAM: Program = Program {
    name: "webhooks",
    promise: "Webhooks are noted once per delivery and event, however often they arrive.",
    events: concat!(env!("CARGO_MANIFEST_DIR"), "/data/github-webhooks.jsonl"),
    database: "sqlite:webhooks.db",
    effect: WEBHOOK_EVENTS,
};

const COLUMNS: Columns<2> = [("delivery", 13), ("event", 28)];

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
    let database = Database::open(&options.database, options.fresh, &WEBHOOK_EVENTS).await?;
    let mut report = Report::begin(&PROGRAM, deliveries.name(), &database.name(), COLUMNS)?;

    while let Some(line) = deliveries.next().await? {
        match line.parse::<Delivery>() {
            Ok(delivery) => {
                let answer = handle(&database, &delivery).await;
                let cells = [&*delivery.id.to_string(), &*delivery.event];
                report.answered(line.number, cells, &answer)?;
            }
            Err(why) => report.bad_line(line.number, &why)?,
        }
    }
    let remarks = remarks(&database).await;
    database.close().await;
    report.finish(remarks)
}

async fn remarks(database: &Database) -> Result<Vec<String>, sqlx::Error> {
    let rows = database
        .number("SELECT count(*) FROM webhook_events")
        .await?;
    let kinds = database
        .number("SELECT count(DISTINCT event) FROM webhook_events")
        .await?;
    let repositories = database
        .number("SELECT count(DISTINCT repository) FROM webhook_events")
        .await?;
    Ok(vec![format!(
        "Rows in the table `webhook_events`: {rows}, kinds of events: {kinds}, repositories: {repositories}."
    )])
}
