use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(event.id))]
async fn handle(
    tx: &mut Transaction<'_, Sqlite>,
    event: &Msg,
    channel: Channel,
) -> sqlx::Result<()> {
    Ok(())
}

pub struct Channel;

fn main() {}
