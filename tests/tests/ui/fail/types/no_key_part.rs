use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(part))]
async fn foreign(tx: &mut Transaction<'_, Sqlite>, part: &Msg) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
