use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key = "id", "channel")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64, channel: &str) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
