use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id))]
#[idempotent(key(id, channel))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64, channel: u8) -> sqlx::Result<()> {
    let _ = tx;
    Ok(())
}

fn main() {}
