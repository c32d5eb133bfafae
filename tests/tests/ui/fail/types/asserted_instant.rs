use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(stable(at)))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, at: std::time::Instant) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
