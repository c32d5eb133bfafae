//! The ledger: what is posted, and the sums.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgConnection, PgPool, query, query_as, query_scalar};

use crate::audit::Books;
use crate::entry::Entry;
use crate::options::Options;
use crate::posting;

/// Nothing is unique in it: an effect that comes twice is to be seen.
pub(crate) const TABLES: &str = "
    CREATE TABLE ledger (event bigint NOT NULL, channel text NOT NULL, cents bigint NOT NULL, worker int NOT NULL);
    CREATE TABLE balances (account bigint PRIMARY KEY, cents bigint NOT NULL)";

/// How to connect to the database of this storm.
pub(crate) fn database(options: &Options) -> PgConnectOptions {
    // Two batches that post to the same accounts in another order may meet in a deadlock. It
    // passes; a second for each would be most of the time of a storm.
    let settings = [("deadlock_timeout", "100ms")];
    options
        .server
        .clone()
        .database(&options.name)
        .options(settings)
}

/// A pool that connects when it is used: the database may be down.
pub(crate) fn pool(options: &Options) -> PgPool {
    PgPoolOptions::new()
        .max_connections(4)
        // Shorter than a restart: what finds no database is given back to the broker.
        .acquire_timeout(Duration::from_millis(500))
        .test_before_acquire(false)
        .connect_lazy_with(database(options))
}

/// Waits until the database answers.
pub(crate) async fn until_up(pool: &PgPool) {
    while query("SELECT 1").execute(pool).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The effect: a row for each entry, and the sums of their accounts.
pub(crate) async fn post(
    conn: &mut PgConnection,
    entries: &[Entry],
    worker: i32,
) -> sqlx::Result<()> {
    let cents: Vec<_> = entries.iter().map(|entry| entry.cents()).collect();
    query(
        "INSERT INTO ledger (event, channel, cents, worker) \
         SELECT *, $4 FROM unnest($1::bigint[], $2::text[], $3::bigint[])",
    )
    .bind(entries.iter().map(|entry| entry.event).collect::<Vec<_>>())
    .bind(
        entries
            .iter()
            .map(|entry| entry.channel.name())
            .collect::<Vec<_>>(),
    )
    .bind(&cents)
    .bind(worker)
    .execute(&mut *conn)
    .await?;
    query(
        "UPDATE balances SET cents = balances.cents + posted.cents \
         FROM (SELECT account, sum(cents)::bigint AS cents \
               FROM unnest($1::bigint[], $2::bigint[]) AS entry (account, cents) \
               GROUP BY account) AS posted \
         WHERE balances.account = posted.account",
    )
    .bind(
        entries
            .iter()
            .map(|entry| entry.account())
            .collect::<Vec<_>>(),
    )
    .bind(&cents)
    .execute(conn)
    .await?;
    Ok(())
}

/// What is in the database.
pub(crate) async fn books(pool: &PgPool) -> sqlx::Result<Books> {
    let postings = query_as("SELECT event, channel, cents FROM ledger");
    let balances = query_as("SELECT account, cents FROM balances");
    let keys = query_scalar("SELECT count(*) FROM processed_messages WHERE scope = ANY($1)");
    Ok(Books {
        postings: postings.fetch_all(pool).await?,
        balances: balances.fetch_all(pool).await?,
        keys: keys.bind(posting::SCOPES).fetch_one(pool).await?,
    })
}
