use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Event {
    pub id: i64,
    pub number: i64,
}

#[idempotent(key(event.id), scope = "now", was = "before")]
async fn shape(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(event.id), scope = "now", was(scop = "before"))]
async fn misspelt(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(event.id), scope = "now", was("now"))]
async fn same(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(event.id), scope = "now", was("before"), was("before"))]
async fn twice(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(event.id), scope = "now", was(key(event.number)))]
async fn two_keys(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(
    key(event.id),
    scope = "now",
    was(scope = "before", key(event.number)),
    was("before")
)]
async fn two_earlier_keys(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(event.id), scope = "now", was(scope = "before", key(event.number, 7)))]
async fn refused_part(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(event.id), was(key(event.number)))]
async fn without_scope(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(event.id), scope = "now", was(scope = "before", key = "evnet.number"))]
async fn unknown(tx: &mut Transaction<'_, Sqlite>, event: &Event) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
