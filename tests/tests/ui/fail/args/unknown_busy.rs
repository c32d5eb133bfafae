use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), busy = "fial")]
async fn near(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), busy = "skip")]
async fn other(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
