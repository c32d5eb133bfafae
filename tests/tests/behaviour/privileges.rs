//! Roles that may not do everything.

use std::error::Error as StdError;

use idempotent_runtime::{Outcome, migrate, transact, verify_schema};
use idempotent_tests::{
    Act, AppError, Double, Engine, Fresh, Guarded, Kind, Recorder, Savepoint, Verify,
};
use sqlx::Pool;
use sqlx::mysql::MySqlDatabaseError;
use sqlx::pool::PoolOptions;

on_servers!(
    without_delete_a_key_that_cannot_be_removed_is_not_kept_quiet,
    without_delete_a_savepoint_takes_the_key_back,
    without_create_migrate_accepts_the_table_that_is_there,
);

/// A pool of a role that may do this with the tables that there are.
async fn pool_of_role<DB: Engine>(db: &Fresh<DB>, privileges: &str) -> Pool<DB> {
    db.prepare().await;
    let options = DB::create_role(&db.options, privileges).await.unwrap();
    PoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap()
}

async fn without_delete_a_key_that_cannot_be_removed_is_not_kept_quiet<DB: Engine>(db: &Fresh<DB>) {
    let pool = pool_of_role(db, "SELECT, INSERT").await;
    let double = Double::planned([Act::Refuse, Act::Refuse]);
    let mut tx = pool.begin().await.unwrap();
    let outcome = Verify::record(&mut tx, "1", &double).await;
    let Err(error) = outcome else {
        panic!("{outcome:?}");
    };
    if DB::KIND == Kind::Postgres {
        // The refused statement has aborted the transaction.
        let letter = "INSERT INTO letters (id) VALUES ('1')";
        assert!(DB::run(&mut tx, letter).await.is_err());
        let _ = tx.commit().await;
        assert_eq!(db.rows("letters").await, 0);
    } else {
        assert_eq!(number(&error), Some(1142), "{error:?}");
        tx.rollback().await.unwrap();
    }
    assert_eq!(db.stored("1").await, (0, 0));

    // `transact!` rolls back, and the message comes again.
    let outcome = transact!(&pool, tx => Verify::record(tx, "1", &double)).await;
    assert!(outcome.is_err(), "{outcome:?}");
    assert_eq!(db.stored("1").await, (0, 0));
    processed_once::<DB, Verify>(db, &pool, "1").await;
}

/// The number of the first error of `MariaDB`'s in the chain.
fn number(error: &AppError) -> Option<u16> {
    let mut next: Option<&(dyn StdError + 'static)> = match error {
        AppError::Idempotent(error) => Some(error),
        error => Some(error),
    };
    while let Some(error) = next {
        if let Some(sqlx::Error::Database(error)) = error.downcast_ref() {
            let error = error.try_downcast_ref::<MySqlDatabaseError>()?;
            return Some(error.number());
        }
        next = error.source();
    }
    None
}

async fn processed_once<DB: Engine, G: Guarded>(db: &Fresh<DB>, pool: &Pool<DB>, id: &str) {
    let double = Double::new();
    for expected in [Outcome::Processed(()), Outcome::Duplicate] {
        let outcome = transact!(pool, tx => G::record(tx, id, &double))
            .await
            .unwrap();
        assert_eq!(outcome, expected, "{id}");
    }
    assert_eq!(db.stored(id).await, (1, 1), "{id}");
}

async fn without_delete_a_savepoint_takes_the_key_back<DB: Engine>(db: &Fresh<DB>) {
    let pool = pool_of_role(db, "SELECT, INSERT").await;
    let double = Double::planned([Act::Refuse]);
    let mut tx = pool.begin().await.unwrap();
    let outcome = Savepoint::record(&mut tx, "1", &double).await;
    assert!(matches!(outcome, Err(AppError::Refused)), "{outcome:?}");
    let letter = "INSERT INTO letters (id) VALUES ('1')";
    DB::run(&mut tx, letter).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(db.stored("1").await, (0, 0));
    assert_eq!(db.rows("letters").await, 1);
    processed_once::<DB, Savepoint>(db, &pool, "1").await;
}

async fn without_create_migrate_accepts_the_table_that_is_there<DB: Engine>(db: &Fresh<DB>) {
    let pool = pool_of_role(db, "SELECT, INSERT, DELETE").await;
    verify_schema(&pool).await.unwrap();
    for _ in 0..2 {
        migrate(&pool).await.unwrap();
    }
    processed_once::<DB, Verify>(db, &pool, "1").await;
    db.run("DROP TABLE processed_messages").await;
    let error = migrate(&pool).await.unwrap_err();
    assert!(error.source().is_some(), "the database's: {error}");
}
