use idempotent_runtime::{KeyPart, idempotent};
use sqlx::{Postgres, Transaction};

#[derive(KeyPart)]
pub enum Channel {
    Email,
    Push,
}

#[idempotent(key(event_id))]
async fn notify(
    tx: &mut Transaction<'_, Postgres>,
    event_id: i64,
    channel: Channel,
) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
