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
    until_wait(db, 1).await;
}

/// Waits until so many sessions wait for locks.
pub(crate) async fn until_wait(db: &Fresh, sessions: i64) {
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";

    until("sessions wait for locks", async || {
        db.number(WAITING).await == sessions
    })
    .await;
}

/// Lets nobody in any more, and ends every session.
pub(crate) async fn goes_down(db: &Fresh) {
    let name = &db.name;
    administer(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
    end_sessions(db).await;
}

/// Lets everybody in, and write.
pub(crate) async fn comes_back(db: &Fresh) {
    let name = &db.name;
    administer(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).await;
    administer(&format!(
        "ALTER DATABASE {name} RESET default_transaction_read_only"
    ))
    .await;
}

/// Ends every session, and lets new ones only read, as a standby does until it is promoted.
pub(crate) async fn can_only_be_read(db: &Fresh) {
    let name = &db.name;
    administer(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on"
    ))
    .await;
    end_sessions(db).await;
}

/// Ends every session: new ones know what was changed.
pub(crate) async fn end_sessions(db: &Fresh) {
    let name = &db.name;
    administer(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    ))
    .await;
}

/// Holds up whoever stores the notices of an event, until what it returns is dropped or ends.
pub(crate) async fn hold_event(db: &Fresh, event: &str) -> Transaction<'static, Postgres> {
    let mut transaction = db.pool.begin().await.unwrap();
    let held = "INSERT INTO notifications (event_id, channel, account, cents) \
                SELECT $1, channel, 'held', 1 FROM unnest(ARRAY['EMAIL', 'PUSH']) AS channel";
    let held = sqlx::query(held).bind(event);
    held.execute(&mut *transaction).await.unwrap();
    transaction
}

async fn administer(sql: &str) {
    let mut server = PgConnection::connect(&server("POSTGRES")).await.unwrap();
    let sql = AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(&mut server).await.unwrap();
    server.close().await.unwrap();
}
