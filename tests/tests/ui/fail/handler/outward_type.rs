use idempotent_runtime::{Outcome, idempotent};
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id))]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Outcome<i64>> {
    Ok(Outcome::Processed(id))
}

fn main() {}
