use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(required(part)))]
async fn number(tx: &mut Transaction<'_, Sqlite>, part: u64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
