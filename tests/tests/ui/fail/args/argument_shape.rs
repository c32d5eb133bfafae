use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key)]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), scope(orders))]
async fn scope(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), tx = "tx")]
async fn tx(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), skip = msg)]
async fn skip(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), bind)]
async fn bind(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), crate = 1)]
async fn runtime(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key: msg.id)]
async fn colon(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
