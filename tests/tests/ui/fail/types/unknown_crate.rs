use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), crate = company::idempotent_runtime)]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    let _ = (tx, id);
    Ok(())
}

fn main() {}

// Once without the feature `handlers`: rustc looks for macros by itself, and the entry in the list is one.
