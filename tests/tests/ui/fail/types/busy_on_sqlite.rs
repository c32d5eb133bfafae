use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), busy = "fail")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
