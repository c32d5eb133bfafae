#![deny(unused_must_use)]

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(_tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    Ok(())
}

pub async fn caller(tx: &mut Transaction<'_, Sqlite>) -> sqlx::Result<()> {
    handle(tx, &Msg { id: 1 });
    handle(tx, &Msg { id: 1 }).await;
    handle(tx, &Msg { id: 1 }).await?;
    Ok(())
}

fn main() {}
