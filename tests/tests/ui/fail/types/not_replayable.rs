use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Receipt(pub u64);

#[idempotent(key(id), replay)]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Receipt> {
    Ok(Receipt(7))
}

fn main() {}
