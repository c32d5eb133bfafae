use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(part))]
async fn plain(tx: &mut Transaction<'_, Sqlite>, part: std::time::Instant) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
