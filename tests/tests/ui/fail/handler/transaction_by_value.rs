use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(tx: Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id), tx = db)]
async fn shared(db: &Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
