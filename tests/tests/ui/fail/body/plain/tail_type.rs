//
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

//
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: Msg) -> Result<u8, AppError> {
    let _ = tx;
    ok(msg.channel.len())
}

fn ok<T>(value: T) -> Result<T, AppError> {
    Ok(value)
}

fn main() {}
