use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(stable(format!("{id}-{channel}"))), scope = "s")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64, channel: &str) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key = "stable(format!(\"{id}\"))", scope = "s")]
async fn quoted(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
