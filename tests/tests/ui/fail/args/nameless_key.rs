use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(id)]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
