#![deny(dead_code)]

use idempotent_runtime::idempotent;
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id))]
async fn never_called(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT 1").execute(&mut **tx).await.map(drop)
}

pub struct Service;

impl Service {
    #[idempotent(key(id), scope = "method")]
    async fn never_called_method(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        id: i64,
    ) -> sqlx::Result<()> {
        sqlx::query("SELECT 1").execute(&mut **tx).await.map(drop)
    }
}

fn main() {}
