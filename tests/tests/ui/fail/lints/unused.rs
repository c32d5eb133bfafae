#![deny(unused)]

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id), skip(mailer), bind = claim)]
pub async fn handle(
    tx: &mut Transaction<'_, Sqlite>,
    mut id: i64,
    mailer: &str,
) -> sqlx::Result<()> {
    let unused = 1;
    sqlx::query::<Sqlite>("SELECT 1");
    let mut unchanged = id;
    let _ = unchanged;
    Ok(())
}

fn main() {}
