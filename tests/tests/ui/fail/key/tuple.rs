use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key = "(id, channel)")]
async fn quoted(tx: &mut Transaction<'_, Sqlite>, id: i64, channel: u8) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
