use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), retain = "a week", redelivery = "0 s")]
async fn handle(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), retain = 7)]
async fn number(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

#[idempotent(key(id), retain = "1s", redelivery = "1s 900ms")]
async fn part_of_a_second(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
