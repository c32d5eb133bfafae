use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(format!("{}-{}", id, channel)))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64, channel: &str) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(format!("{id}-{channel}")))]
async fn captured(tx: &mut Transaction<'_, Sqlite>, id: i64, channel: &str) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
