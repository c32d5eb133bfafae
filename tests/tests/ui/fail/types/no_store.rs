use idempotent_runtime::idempotent;
use sqlx::{Database, Transaction};

#[idempotent(key(id), scope = "generic")]
async fn handle<DB: Database>(tx: &mut Transaction<'_, DB>, id: i64) -> sqlx::Result<()> {
    let _ = (tx, id);
    Ok(())
}

fn main() {}
