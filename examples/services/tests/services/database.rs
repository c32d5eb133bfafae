//! What happens to a database while a service runs on it.

#![allow(dead_code, reason = "the tests of one service use a part of it")]

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Transaction};

use crate::running::{Fresh, server, until};

/// Runs a statement outside the services.
pub(crate) async fn run(db: &Fresh, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&db.pool).await.unwrap();
}

/// Holds a lock, until what it returns is dropped or ends.
pub(crate) async fn hold(db: &Fresh, sql: &'static str) -> Transaction<'static, Postgres> {
    let mut transaction = db.pool.begin().await.unwrap();
    sqlx::raw_sql(sql).execute(&mut *transaction).await.unwrap();
    transaction
}

/// Waits until a session waits for a lock.
pub(crate) async fn until_one_waits(db: &Fresh) {
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";

    until("a session waits for a lock", async || {
        db.number(WAITING).await == 1
    })
    .await;
}

/// Lets nobody in any more, and ends every session.
pub(crate) async fn goes_down(db: &Fresh) {
    let name = &db.name;
    administer(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
    administer(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    ))
    .await;
}

/// Lets everybody in again.
pub(crate) async fn comes_back(db: &Fresh) {
    let name = &db.name;
    administer(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).await;
}

async fn administer(sql: &str) {
    let mut server = PgConnection::connect(&server("POSTGRES")).await.unwrap();
    let sql = AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(&mut server).await.unwrap();
    server.close().await.unwrap();
}
