#![deny(deprecated)]

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[deprecated = "use `accept`"]
#[idempotent(key(msg.id))]
async fn handle(_tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

pub async fn caller(tx: &mut Transaction<'_, Sqlite>) -> sqlx::Result<()> {
    handle(tx, &Msg { id: 1 }).await.map(drop)
}

#[deprecated]
pub fn old() -> i64 {
    1
}

#[idempotent(key(msg.id))]
async fn uses_old(_tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<i64> {
    Ok(old())
}

fn main() {}
