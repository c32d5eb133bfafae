use idempotent_runtime::idempotent;
use sqlx::{Postgres, Transaction};

#[idempotent(
    key(event_id, channel),
    scope = "notify",
    was(scope = "notices", key(event_id))
)]
async fn notify(
    tx: &mut Transaction<'_, Postgres>,
    event_id: i64,
    channel: &str,
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
