use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key = "required(event_id)")]
async fn notify(
    tx: &mut Transaction<'_, Sqlite>,
    event_id: Option<i64>,
    channel: &str,
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
