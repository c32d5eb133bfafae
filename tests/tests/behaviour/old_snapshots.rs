//! A key that is deleted, by a pruner or by `forget`, after the snapshot of a transaction that
//! claims it again: the old row is still seen beside the new one.

use idempotent_runtime::{Outcome, forget, idempotent, transact};
use idempotent_tests::{
    AppError, Double, Engine, Fresh, Guarded, Kind, Recorder, Replayed, ReplayedUnderSavepoint,
    Savepoint, Verify,
};
use sqlx::{Pool, Transaction};

on_servers!(
    a_key_that_was_forgotten_after_the_snapshot_is_new,
    a_batch_with_a_key_that_was_forgotten_after_the_snapshot_is_new,
);

const REPEATABLE_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";

/// A transaction that has seen the table.
async fn begun<DB: Engine>(pool: &Pool<DB>) -> Transaction<'static, DB> {
    let mut tx = match DB::KIND {
        Kind::Postgres => pool.begin_with(REPEATABLE_READ).await,
        // REPEATABLE READ is the default.
        Kind::MariaDb | Kind::Sqlite => pool.begin().await,
    }
    .unwrap();
    DB::number(&mut tx, "SELECT count(*) FROM processed_messages")
        .await
        .unwrap();
    tx
}

async fn a_key_that_was_forgotten_after_the_snapshot_is_new<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    is_new::<DB, Verify>(db, &pool, Verify::SCOPE).await;
    is_new::<DB, Savepoint>(db, &pool, Savepoint::SCOPE).await;
    is_new::<DB, Replayed>(db, &pool, "replayed").await;
    is_new::<DB, ReplayedUnderSavepoint>(db, &pool, "replayed_under_savepoint").await;
}

async fn is_new<DB: Engine, R: Recorder>(db: &Fresh<DB>, pool: &Pool<DB>, scope: &str) {
    let double = Double::new();
    let _ = transact!(pool, tx => R::record(tx, scope, &double))
        .await
        .unwrap();
    let mut tx = begun(pool).await;
    assert!(forget(pool, scope, scope).await.unwrap(), "{scope}");
    // Its effect would be there twice, which its table does not allow.
    db.run("DELETE FROM effects").await;
    let again = R::record(&mut tx, scope, &double).await.unwrap();
    assert_eq!(again, Outcome::Processed(()), "{scope}");
    tx.commit().await.unwrap();
    let after = transact!(pool, tx => R::record(tx, scope, &double))
        .await
        .unwrap();
    assert_eq!((after, double.runs()), (Outcome::Duplicate, 2), "{scope}");
}

#[idempotent(key(id), each = "id in ids", scope = "batch")]
async fn batch<DB: Engine>(tx: &mut Transaction<'_, DB>, ids: Vec<i64>) -> Result<usize, AppError> {
    let _ = tx;
    Ok(ids.len())
}

async fn a_batch_with_a_key_that_was_forgotten_after_the_snapshot_is_new<DB: Engine>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(2).await;
    let first = transact!(&pool, tx => batch(tx, vec![1, 2, 3])).await;
    assert_eq!(first.unwrap().value, Some(3));
    let mut tx = begun(&pool).await;
    assert!(forget(&pool, "batch", "1").await.unwrap());
    let again = batch(&mut tx, vec![1]).await.unwrap();
    assert_eq!(again.value, Some(1));
    tx.commit().await.unwrap();
}
