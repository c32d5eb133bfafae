#![forbid(unsafe_code)]

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

pub struct Msg {
    pub id: i64,
}

#[idempotent(key(msg.id))]
async fn handle(_tx: &mut Transaction<'_, Sqlite>, msg: &Msg) -> sqlx::Result<()> {
    unsafe { std::hint::unreachable_unchecked() }
}

fn main() {}
