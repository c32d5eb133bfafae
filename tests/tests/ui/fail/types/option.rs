use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(part))]
async fn plain(tx: &mut Transaction<'_, Sqlite>, part: Option<u64>) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn borrowed(tx: &mut Transaction<'_, Sqlite>, part: &Option<String>) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
