use idempotent_runtime::idempotent;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(tx: &SqlitePool, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), tx = pool)]
async fn owned(pool: sqlx::Pool<Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id))]
async fn connection(tx: &mut SqliteConnection, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id))]
async fn named(db: &sqlx::PgPool, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
