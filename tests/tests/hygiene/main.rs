//! The attribute beside other names: those that user code gives to the same
//! things, those that macros make, and other names of the runtime itself.

mod decoys;
mod elsewhere;
mod from_macros;
mod parameters;

use idempotent_runtime::migrate;
use sqlx::sqlite::{Sqlite, SqlitePoolOptions};
use sqlx::{SqlitePool, Transaction};

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
        assert_eq!(crate::key(&mut $tx, $scope).await, $key);
    }};
}
use delivered;

#[tokio::test]
async fn decoys() {
    use decoys::{Id, Msg, Service, alias, free};

    let msg = || Msg {
        id: Id(7),
        parent: Some(1),
    };
    let mut tx = begin().await;
    let scope = concat!(module_path!(), "::decoys::free(msg.id,msg.parent)");
    delivered!(tx, scope => "7/1", free(&mut tx, &msg()));
    delivered!(tx, "method" => "7/1/8", Service.method(&mut tx, msg()));
    delivered!(tx, "alias" => "7", alias(&mut tx, 7));
}
