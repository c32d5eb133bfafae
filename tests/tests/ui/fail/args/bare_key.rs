use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(id, channel, scope = "notices")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64, channel: u8) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
