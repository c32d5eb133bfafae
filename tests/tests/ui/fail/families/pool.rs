use idempotent_runtime::idempotent;
use sqlx::PgPool;

#[idempotent(key(transfer_id))]
async fn credit(pool: &PgPool, transfer_id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
