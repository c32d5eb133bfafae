//! Handlers of every kind. Nobody calls them.

#![allow(dead_code, reason = "they are to be listed all the same")]

use idempotent_runtime::{Outcome, Store, idempotent};
use sqlx::{Sqlite, Transaction};

#[idempotent(key(id))]
async fn free(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT 1").execute(&mut **tx).await?;
    Ok(())
}

#[idempotent(
    key = "id, required( parent ), stable(at+1)",
    scope = "kinds.arguments",
    table = "inbox.seen",
    guard = "savepoint",
    busy = "fail",
    retain = "36 hours",
    redelivery = "90 minutes",
    was("kinds.former"),
    was(scope = "kinds.first", key(amount)),
    replay,
    fingerprint(amount),
    bind = claim
)]
async fn arguments<DB: idempotent_runtime::ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    parent: Option<i64>,
    at: i64,
    amount: i64,
) -> sqlx::Result<usize> {
    let _ = tx;
    Ok(claim.key().len())
}

#[idempotent(each = "id in ids", key(id), scope = "kinds.batch")]
async fn batch(tx: &mut Transaction<'_, Sqlite>, ids: Vec<i64>) -> sqlx::Result<usize> {
    let _ = tx;
    Ok(ids.len())
}

#[idempotent(key(id), scope = "kinds.generic")]
async fn generic<DB: Store, const N: usize>(
    tx: &mut Transaction<'_, DB>,
    id: [u8; N],
) -> sqlx::Result<()>
where
    [u8; N]: idempotent_runtime::KeyPart,
{
    let _ = tx;
    Ok(())
}

struct Stock<T>(T);

impl<T: Send + Sync> Stock<T> {
    #[idempotent(key(id), scope = "kinds.method")]
    async fn take(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
        let _ = tx;
        Ok(())
    }
}

trait Handle {
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Outcome<()>>;

    #[idempotent(key(id), scope = "kinds.default_method")]
    async fn by_default(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
        let _ = tx;
        Ok(())
    }
}

impl<T: Send + Sync> Handle for Stock<T> {
    #[idempotent(key(id), scope = "kinds.trait_method")]
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
        let _ = tx;
        Ok(())
    }
}

#[async_trait::async_trait]
trait Object {
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<Outcome<()>>;
}

#[async_trait::async_trait]
impl Object for Stock<u8> {
    #[idempotent(key(id), scope = "kinds.object")]
    async fn handle(&self, tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
        let _ = (tx, id);
        Ok(())
    }
}

macro_rules! handlers {
    ($($name:ident)+) => {
        $(#[idempotent(key(id))]
        async fn $name(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
            let _ = tx;
            Ok(())
        })+
    };
}

handlers!(by_macro r#loop);

fn outer() {
    #[idempotent(key(id), scope = "kinds.inner")]
    async fn inner(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {
        let _ = tx;
        Ok(())
    }
}

#[cfg(any())]
#[idempotent(key(id))]
async fn absent(tx: &mut Transaction<'_, Sqlite>, id: i64) -> sqlx::Result<()> {}
