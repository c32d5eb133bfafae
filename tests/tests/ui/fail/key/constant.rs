use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id, 42))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(stable(1)), scope = "s")]
async fn asserted(tx: &mut Transaction<'_, Sqlite>, _msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key = "stable(LIMIT), stable(String::new())", scope = "s")]
async fn quoted(tx: &mut Transaction<'_, Sqlite>, _msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

const LIMIT: u8 = 1;

fn main() {}
