use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id), skip(msg))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), skip(amount), fingerprint(amount))]
async fn compared(tx: &mut Transaction<'_, Sqlite>, id: i64, amount: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
