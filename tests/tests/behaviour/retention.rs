//! How long keys are kept.

use idempotent_runtime::{idempotent, transact};
use idempotent_tests::{AppError, Engine, Fresh, Kind};
use sqlx::Transaction;

on_every_database!(
    a_row_carries_its_own_expiry,
    a_row_without_retention_is_kept,
    an_expired_row_that_is_not_pruned_is_a_duplicate,
);

#[idempotent(key(id), scope = "week", retain = "7 days", redelivery = "4 days")]
async fn week<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
    let _ = tx;
    Ok(())
}

#[idempotent(key(id), scope = "ever")]
async fn ever<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
    let _ = tx;
    Ok(())
}

/// Seconds from the time of processing to that of expiry.
fn kept<DB: Engine>() -> &'static str {
    match DB::KIND {
        Kind::Postgres => {
            "SELECT round(extract(epoch FROM expires_at - processed_at))::bigint FROM processed_messages"
        }
        Kind::MariaDb => {
            "SELECT CAST(round(timestampdiff(MICROSECOND, processed_at, expires_at) / 1000000) AS SIGNED) FROM processed_messages"
        }
        Kind::Sqlite => {
            "SELECT CAST(round((expires_at - processed_at) / 1000000.0) AS INTEGER) FROM processed_messages"
        }
    }
}

async fn a_row_carries_its_own_expiry<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => week(tx, "1")).await.unwrap();
    assert_eq!(db.number(kept::<DB>()).await, 7 * 24 * 60 * 60);
}

async fn a_row_without_retention_is_kept<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => ever(tx, "1")).await.unwrap();
    let kept = "SELECT count(*) FROM processed_messages WHERE expires_at IS NULL";
    assert_eq!(db.number(kept).await, 1);
}

async fn an_expired_row_that_is_not_pruned_is_a_duplicate<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => week(tx, "1")).await.unwrap();
    db.run("UPDATE processed_messages SET expires_at = processed_at")
        .await;
    let again = transact!(&pool, tx => week(tx, "1")).await.unwrap();
    assert!(again.is_duplicate());
}
