//! SQLite in memory, for tests that need no more than one connection.

use idempotent_runtime::migrate;
use sqlx::sqlite::{Sqlite, SqlitePoolOptions};
use sqlx::{SqlitePool, Transaction};

/// A database of its own, with the table of keys.
///
/// # Panics
///
/// If SQLite does not work.
pub async fn pool() -> SqlitePool {
    let options = SqlitePoolOptions::new().max_connections(1);
    let pool = options.connect("sqlite::memory:").await.unwrap();
    migrate(&pool).await.unwrap();
    pool
}

/// A transaction in a database of its own.
///
/// # Panics
///
/// If SQLite does not work.
pub async fn begin() -> Transaction<'static, Sqlite> {
    pool().await.begin().await.unwrap()
}

/// The key that is stored in a scope.
///
/// # Panics
///
/// If there is none.
pub async fn key(tx: &mut Transaction<'_, Sqlite>, scope: &str) -> String {
    sqlx::query_scalar("SELECT key FROM processed_messages WHERE scope = ?")
        .bind(scope)
        .fetch_one(&mut **tx)
        .await
        .unwrap()
}

/// Runs a handler twice: it is processed once, under this key.
#[macro_export]
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
        assert_eq!($crate::memory::key(&mut $tx, $scope).await, $key);
    }};
}
