//! Handlers that compile, each delivered twice to a database in memory.

#![allow(
    unused_variables,
    reason = "most handlers here are there for their signature"
)]

mod keys;
mod parameters;
mod receivers;
mod results;
mod send;

use idempotent_runtime::{KeyPart, migrate};
use sqlx::sqlite::{Sqlite, SqlitePoolOptions};
use sqlx::{SqlitePool, Transaction};

#[derive(Clone, Debug)]
struct Msg {
    id: i64,
    channel: String,
}

#[derive(Clone, Copy, Debug, KeyPart)]
enum Channel {
    Email,
    Push,
}

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error(transparent)]
    Idempotent(#[from] idempotent_runtime::Error),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Number(#[from] std::num::ParseIntError),
}

fn msg() -> Msg {
    Msg {
        id: 7,
        channel: "3".to_owned(),
    }
}

async fn pool() -> SqlitePool {
    let options = SqlitePoolOptions::new().max_connections(1);
    let pool = options.connect("sqlite::memory:").await.unwrap();
    migrate(&pool).await.unwrap();
    pool
}

async fn begin() -> Transaction<'static, Sqlite> {
    pool().await.begin().await.unwrap()
}

/// The key that is stored in a scope.
async fn key(tx: &mut Transaction<'_, Sqlite>, scope: &str) -> String {
    sqlx::query_scalar("SELECT key FROM processed_messages WHERE scope = ?")
        .bind(scope)
        .fetch_one(&mut **tx)
        .await
        .unwrap()
}

/// Runs a handler twice: it is processed once, under this key.
macro_rules! delivered {
    ($tx:ident, $scope:expr => $key:literal, $handler:expr) => {{
        assert!(
            !$handler.await.unwrap().is_duplicate(),
            "the first delivery"
        );
        assert!(
            $handler.await.unwrap().is_duplicate(),
            "the second delivery"
        );
        assert_eq!(crate::pass::key(&mut $tx, $scope).await, $key);
    }};
}
use delivered;
