use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: ) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
