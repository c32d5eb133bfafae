//! Our error, and the ways it takes to the caller.

use std::error::Error as StdError;

use idempotent_runtime::{Error, idempotent, transact};
use idempotent_tests::{Engine, Fresh, in_fresh_database};
use sqlx::{Pool, Sqlite, Transaction};

/// Loses its transaction, or has no key.
#[idempotent(key(id), scope = "failing")]
async fn failing(tx: &mut Transaction<'_, Sqlite>, id: &str) -> Result<(), Error> {
    Sqlite::run(tx, "ROLLBACK").await?;
    Ok(())
}

/// The same through `sqlx::Result`.
#[idempotent(key(id), scope = "failing-sqlx")]
async fn failing_sqlx(tx: &mut Transaction<'_, Sqlite>, id: &str) -> sqlx::Result<()> {
    Sqlite::run(tx, "ROLLBACK").await?;
    Ok(())
}

async fn missing_key(pool: &Pool<Sqlite>) -> Error {
    transact!(pool, tx => failing(tx, "")).await.unwrap_err()
}

async fn lost(pool: &Pool<Sqlite>) -> Error {
    transact!(pool, tx => failing(tx, "1")).await.unwrap_err()
}

#[derive(Debug, thiserror::Error)]
enum Nested {
    #[error("ours")]
    Ours(#[source] Error),
    #[error("through sqlx")]
    Sqlx(#[from] sqlx::Error),
    #[error("deeper")]
    Deeper(#[source] Box<Nested>),
    #[error("boxed")]
    Boxed(#[source] Box<dyn StdError + Send + Sync>),
    #[error("any")]
    Any(#[source] anyhow::Error),
}

#[test]
fn an_error_that_went_through_sqlx_is_what_it_was() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = &db.prepared(1).await;
        for _ in 0..2 {
            let text = missing_key(pool).await.to_string();
            let error = Error::from(sqlx::Error::from(missing_key(pool).await));
            assert!(error.is_missing_key(), "{error:?}");
            assert_eq!(error.to_string(), text);
            let error = Error::from(sqlx::Error::from(error));
            assert!(error.is_missing_key(), "{error:?}");

            let error = Error::from(sqlx::Error::from(lost(pool).await));
            assert!(error.is_transaction_lost(), "{error:?}");
            assert!(
                !error.is_missing_key() && !error.is_retryable(),
                "{error:?}"
            );

            let missing_key = transact!(pool, tx => failing_sqlx(tx, "")).await;
            assert!(Error::from(missing_key.unwrap_err()).is_missing_key());
            let lost = transact!(pool, tx => failing_sqlx(tx, "1")).await;
            assert!(Error::from(lost.unwrap_err()).is_transaction_lost());
        }

        // The database's stay the database's.
        let error = sqlx::Error::from(Error::from(sqlx::Error::RowNotFound));
        assert!(matches!(error, sqlx::Error::RowNotFound), "{error:?}");
        let foreign = sqlx::Error::AnyDriverError("foreign".into());
        let error = sqlx::Error::from(Error::from(foreign));
        assert!(matches!(error, sqlx::Error::AnyDriverError(_)), "{error:?}");
    });
}

#[test]
fn it_is_found_in_whatever_it_is_wrapped() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = &db.prepared(1).await;
        is_found(&async || missing_key(pool).await, Error::is_missing_key).await;
        is_found(&async || lost(pool).await, Error::is_transaction_lost).await;
    });
}

async fn is_found(make: &impl AsyncFn() -> Error, is_it: fn(&Error) -> bool) {
    let boxed: Box<dyn StdError + Send + Sync> = make().await.into();
    let plain: Box<dyn StdError> = make().await.into();
    let any = anyhow::Error::new(make().await);
    let in_context = anyhow::Error::new(make().await)
        .context("one")
        .context("two");
    let any_sqlx = anyhow::Error::new(sqlx::Error::from(make().await)).context("one");
    let sqlx = async || sqlx::Error::from(make().await);
    for error in [
        &make().await as &(dyn StdError + 'static),
        &sqlx().await,
        &*boxed,
        &*plain,
        &*any,
        &*in_context,
        &*any_sqlx,
        &Nested::Ours(make().await),
        &Nested::Sqlx(sqlx().await),
        &Nested::Deeper(Box::new(Nested::Ours(make().await))),
        &Nested::Deeper(Box::new(Nested::Deeper(Box::new(Nested::Sqlx(
            sqlx().await,
        ))))),
        &Nested::Boxed(sqlx().await.into()),
        &Nested::Any(anyhow::Error::new(sqlx().await).context("one")),
    ] {
        let found = Error::find(error);
        assert!(found.is_some_and(is_it), "{error:?}: {found:?}");
    }
}

#[test]
fn it_is_not_found_where_it_is_not() {
    let boxed: Box<dyn StdError + Send + Sync> = "text".into();
    let any = anyhow::anyhow!("text").context("one");
    for error in [
        &sqlx::Error::RowNotFound as &(dyn StdError + 'static),
        &sqlx::Error::AnyDriverError("foreign".into()),
        &std::io::Error::other("x"),
        &Nested::Sqlx(sqlx::Error::PoolTimedOut),
        &*boxed,
        &*any,
    ] {
        let found = Error::find(error);
        assert!(found.is_none(), "{error:?}: {found:?}");
    }
    // A database error of the handler's that is ours by type is found as such.
    let error = Error::from(sqlx::Error::RowNotFound);
    let found = Error::find(&error).unwrap();
    assert!(!found.is_missing_key() && !found.is_transaction_lost());
}
