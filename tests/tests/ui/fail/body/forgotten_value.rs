use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
    pub channel: String,
}

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Idempotent(#[from] idempotent_runtime::Error),
}

#[idempotent(key(msg.id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: Msg) -> Result<u8, AppError> {
    let _ = (tx, msg);
    1;
}

fn main() {}
