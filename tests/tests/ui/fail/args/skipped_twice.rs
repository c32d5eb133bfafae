use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id), skip(name, name))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg, name: &str) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
