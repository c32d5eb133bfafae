use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(nullable(part)))]
async fn option(tx: &mut Transaction<'_, Sqlite>, part: Option<Option<u8>>) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
