//! A pruner, with something to prune: keys of a scope of their own, which have expired.

use std::time::Duration;

use idempotent_runtime::{Error, pruner};
use sqlx::{PgPool, query};
use xtask::chaos::Said;

use crate::options::Options;
use crate::{ledger, say};

/// How long it rests between two turns.
const REST: Duration = Duration::from_millis(50);

pub(crate) async fn prune(options: &Options) {
    let pool = ledger::pool(options);
    loop {
        match turn(&pool).await {
            Ok(rows) => say::say(&Said::Pruned(rows)),
            Err(error) => say::trouble(error),
        }
        tokio::time::sleep(REST).await;
    }
}

async fn turn(pool: &PgPool) -> Result<u64, Error> {
    expired(pool, 100).await?;
    let pruned = pruner(pool)
        .batch(50)
        .pause(Duration::from_millis(1))
        .run()
        .await?;
    Ok(pruned.rows)
}

/// Makes keys whose time has come.
pub(crate) async fn expired(pool: &PgPool, keys: i32) -> sqlx::Result<()> {
    query(
        "INSERT INTO processed_messages (scope, key, expires_at) \
         SELECT 'chaos.expired', gen_random_uuid(), now() FROM generate_series(1, $1)",
    )
    .bind(keys)
    .execute(pool)
    .await?;
    Ok(())
}
