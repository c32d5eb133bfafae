use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key = "msg.nosuch")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id, msg.nosuch))]
async fn unquoted(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.nosuch()), scope = "method")]
async fn method(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
