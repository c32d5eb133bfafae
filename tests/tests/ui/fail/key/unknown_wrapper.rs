use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(requierd(id)))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: Option<i64>) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
