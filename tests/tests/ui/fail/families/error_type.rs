use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("the account is closed")]
    Closed,
}

#[idempotent(key(transfer_id))]
async fn credit(
    tx: &mut Transaction<'_, Postgres>,
    transfer_id: i64,
) -> Result<(), TransferError> {
    Ok(())
}

fn main() {}
