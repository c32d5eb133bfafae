use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

#[idempotent(key(transfer_id), retain = "1 day", redelivery = "4 days")]
async fn credit(tx: &mut Transaction<'_, Postgres>, transfer_id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
