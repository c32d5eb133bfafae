//! The service itself, whichever broker it stands behind.

use std::time::Duration;

use idempotent_runtime::{
    Error, KeyPart, Permanent, Verdict, idempotent, migrate, transact, verify_backstop,
};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres, Transaction, query, raw_sql};

/// A transfer is complete: what the transfer service publishes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TransferCompleted {
    /// The producer gave it once. It is the same at every delivery, whatever the broker counts.
    pub id: String,
    /// Whom to tell.
    pub account: String,
    /// How much it was.
    pub cents: i64,
}

impl TransferCompleted {
    /// One for the show.
    #[must_use]
    pub fn sample(number: u32) -> Self {
        Self {
            id: format!("transfer-{number}"),
            account: format!("account-{}", number % 10),
            cents: i64::from(number) * 100 + 95,
        }
    }
}

/// How a customer is told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, KeyPart, PartialEq, Serialize)]
pub enum Channel {
    /// By e-mail.
    #[key(name = "EMAIL")]
    Email,
    /// By a push notice.
    #[key(name = "PUSH")]
    Push,
}

impl Channel {
    /// Every event is rightly fanned out to each.
    pub const ALL: [Self; 2] = [Self::Email, Self::Push];

    /// Returns its name in the key and in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "EMAIL",
            Self::Push => "PUSH",
        }
    }
}

/// One event on one channel.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Notice {
    /// What happened.
    pub event: TransferCompleted,
    /// How to tell it.
    pub channel: Channel,
}

/// Stores the notices that are to be sent: each once per event *and channel*.
///
/// `key(notice.event.id)` alone would take the push notice for a duplicate of the e-mail. The table
/// has a unique key of the same grain, as a second line of defence.
///
/// With a batch of one it is a handler of single messages, at the same price.
///
/// # Errors
///
/// [`Permanent`], if a notice can never be stored. Anything else may pass.
#[idempotent(
    key(notice.event.id, notice.channel),
    each = "notice in notices",
    scope = "notify",
    retain = "14 days",
    redelivery = "7 days"
)]
pub async fn notify(tx: &mut Transaction<'_, Postgres>, notices: Vec<Notice>) -> sqlx::Result<()> {
    if let Some(notice) = notices.iter().find(|notice| notice.event.cents <= 0) {
        let why = format!("`{}` is no transfer of money", notice.event.id);
        return Err(sqlx::Error::Encode(Permanent::new(why).into()));
    }
    store(tx, &notices).await
}

pub(crate) async fn store(
    tx: &mut Transaction<'_, Postgres>,
    notices: &[Notice],
) -> sqlx::Result<()> {
    let column = |text: fn(&Notice) -> &str| notices.iter().map(text).collect::<Vec<_>>();
    query(
        "INSERT INTO notifications (event_id, channel, account, cents) \
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])",
    )
    .bind(column(|notice| &notice.event.id))
    .bind(column(|notice| notice.channel.name()))
    .bind(column(|notice| &notice.event.account))
    .bind(
        notices
            .iter()
            .map(|notice| notice.event.cents)
            .collect::<Vec<_>>(),
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Handles what the broker gave at once, in one transaction, and says what came of each. If that
/// fails, one by one: a bad notice does not hold up the others. What could not be read stays an error.
///
/// While the database is down no notice is to blame, and none is given back: that would use up the
/// deliveries that the broker allows. So it waits.
pub async fn handle(
    pool: &PgPool,
    notices: Vec<sqlx::Result<Notice>>,
) -> Vec<sqlx::Result<Verdict>> {
    let readable: Vec<Notice> = notices.iter().flatten().cloned().collect();
    let mut verdicts = together_or_one_by_one(pool, &readable).await.into_iter();
    let mut verdict = |_| {
        let verdict = verdicts.next();
        verdict.unwrap_or_else(|| Err(sqlx::Error::Protocol("a notice has no verdict".to_owned())))
    };
    notices
        .into_iter()
        .map(|notice| notice.and_then(&mut verdict))
        .collect()
}

async fn together_or_one_by_one(pool: &PgPool, notices: &[Notice]) -> Vec<sqlx::Result<Verdict>> {
    if notices.len() > 1 {
        match transact!(pool, tx => notify(tx, notices.to_vec())).await {
            Ok(batch) => return batch.outcomes.into_iter().map(Ok).collect(),
            Err(_) => until_up(pool).await,
        }
    }
    let mut verdicts = Vec::with_capacity(notices.len());
    for notice in notices {
        let one = transact!(pool, tx => notify(tx, vec![notice.clone()])).await;
        if one.is_err() {
            until_up(pool).await;
        }
        verdicts.push(one.map(|batch| batch.outcomes[0]));
    }
    verdicts
}

/// Waits until the database answers.
async fn until_up(pool: &PgPool) {
    while let Err(error) = query("SELECT 1").execute(pool).await {
        eprintln!("the database does not answer: {error}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Reads a notice from the body of a message.
///
/// # Errors
///
/// [`Permanent`]: it will not be more readable the next time.
pub fn read<'m, T: Deserialize<'m>>(body: &'m [u8]) -> sqlx::Result<T> {
    serde_json::from_slice(body).map_err(|error| sqlx::Error::Encode(Permanent::new(error).into()))
}

/// Connects, and makes the tables unless they exist.
///
/// # Errors
///
/// The database cannot be used.
pub async fn database(url: &str) -> Result<PgPool, Error> {
    // A stale connection is replaced by `transact!` before anything ran: no ping at each acquire.
    let pool = PgPoolOptions::new()
        .test_before_acquire(false)
        .connect(url)
        .await?;
    migrate(&pool).await?;
    raw_sql(
        "CREATE TABLE IF NOT EXISTS notifications (
            event_id text NOT NULL,
            channel text NOT NULL,
            account text NOT NULL,
            cents bigint NOT NULL,
            UNIQUE (event_id, channel)
        )",
    )
    .execute(&pool)
    .await?;
    // `UNIQUE (event_id)` would refuse the push notice of every event.
    verify_backstop(&pool, "notifications", ["event_id", "channel"]).await?;
    Ok(pool)
}
