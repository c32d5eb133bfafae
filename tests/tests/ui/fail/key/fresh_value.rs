use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key = "Uuid::new_v4()")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(msg.id, SystemTime::now()))]
async fn unquoted(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(stable(msg.id.max(rand::random()))))]
async fn asserted(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
