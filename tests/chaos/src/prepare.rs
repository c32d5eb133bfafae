//! Before the storm: an empty ledger, and empty queues.

use idempotent_runtime::migrate;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, query, raw_sql};

use crate::broker::Line;
use crate::entry::ACCOUNTS;
use crate::options::Options;
use crate::{Failed, ledger, prune};

/// Keys that have expired before the first message comes.
const EXPIRED: i32 = 10_000;

pub(crate) async fn prepare(options: &Options) -> Result<(), Failed> {
    let mut server = options.server.connect().await?;
    let create = format!("CREATE DATABASE {}", options.name);
    server.execute(AssertSqlSafe(create)).await?;
    let pool = ledger::pool(options);
    migrate(&pool).await?;
    raw_sql(ledger::TABLES).execute(&pool).await?;
    query("INSERT INTO balances SELECT account, 0 FROM generate_series(0, $1 - 1) AS account")
        .bind(ACCOUNTS)
        .execute(&pool)
        .await?;
    prune::expired(&pool, EXPIRED).await?;
    Line::open(options).await?.declare(&options.name).await?;
    Ok(())
}
