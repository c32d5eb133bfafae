use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

#[idempotent(key = "tranfser_id", scop = "transfers")]
async fn credit(tx: &mut Transaction<'_, Postgres>, transfer_id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
