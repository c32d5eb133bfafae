use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

pub struct AppError;

#[idempotent(key(msg.id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> Result<(), AppError> {
    Ok(())
}

fn main() {}
