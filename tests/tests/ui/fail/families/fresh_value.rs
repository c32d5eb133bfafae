use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

#[idempotent(key(uuid::Uuid::new_v4()), skip(cents))]
async fn credit(tx: &mut Transaction<'_, Postgres>, cents: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
