#![deny(unreachable_code)]

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id))]
async fn after_return(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    let _ = id;
    return Ok(());
    unreachable!();
}

#[idempotent(key(id))]
async fn endless(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    loop {
        let _ = id;
    }
}

#[idempotent(key(id))]
async fn unwritten(_tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    todo!("{id}")
}

fn main() {}
