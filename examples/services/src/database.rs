//! What the consumers share of their database.

use std::time::Duration;

use idempotent_runtime::{Error, PrunerTask, migrate, pruner, verify_backstop};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, query_scalar, raw_sql};
use tokio::time::sleep;

/// Connects, and makes the tables unless they exist.
///
/// # Errors
///
/// The database cannot be used.
pub async fn connect(url: &str) -> Result<PgPool, Error> {
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

/// Deletes the keys that are older than their `retain`, beside the service, until it is stopped.
///
/// # Errors
///
/// None: the period makes sense.
pub fn prune(pool: &PgPool) -> Result<PrunerTask, Error> {
    pruner(pool)
        .every(Duration::from_mins(5))
        .on_error(|error| eprintln!("keys are not pruned: {error}"))
        .start()
}

/// Waits until the database answers and can be written. Says whether it had to wait.
pub(crate) async fn was_down(pool: &PgPool) -> bool {
    let mut was_down = false;
    while let Err(why) = is_up(pool).await {
        was_down = true;
        eprintln!("the database is not up: {why}");
        sleep(Duration::from_secs(1)).await;
    }
    was_down
}

/// A standby that has not become the primary yet answers, and refuses every write.
async fn is_up(pool: &PgPool) -> Result<(), String> {
    let is_read_only = "SELECT current_setting('transaction_read_only')::bool";
    match query_scalar(is_read_only).fetch_one(pool).await {
        Ok(false) => Ok(()),
        Ok(true) => Err("it can only be read".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
