use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Event {
    pub id: String,
    pub channel: String,
}

#[idempotent(
    key(event.id, event.channel),
    scope = "notify",
    was(scope = "notices", key(&event.id.clone()))
)]
async fn conversion(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(
    key(event.id, event.channel),
    scope = "notify",
    was(scope = "notices", key(stable(event.id.as_str())))
)]
async fn assertion(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
