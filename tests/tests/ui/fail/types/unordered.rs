use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(part))]
async fn map(
    tx: &mut Transaction<'_, Sqlite>,
    part: std::collections::HashMap<u8, u8>,
) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(part))]
async fn set(
    tx: &mut Transaction<'_, Sqlite>,
    part: &std::collections::HashSet<u8>,
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
