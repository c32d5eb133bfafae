//! How long keys are kept.

use idempotent_runtime::{Outcome, idempotent, pruner, transact};
use idempotent_tests::{AppError, Engine, Fresh, Kind};
use sqlx::Transaction;

on_every_database!(
    a_row_carries_its_own_expiry,
    a_row_without_retention_is_kept,
    an_expired_row_that_is_not_pruned_is_a_duplicate,
    retention_shorter_than_the_window_runs_a_late_copy_again,
    retention_longer_than_the_window_makes_a_late_copy_a_duplicate,
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

/// `redelivery` would have this refused by the compiler, if it told the truth.
#[idempotent(key(id), scope = "hour", retain = "1 hour")]
async fn hour<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
    DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
    Ok(())
}

#[idempotent(key(id), scope = "day", retain = "1 day", redelivery = "4 hours")]
async fn day<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
    DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
    Ok(())
}

/// What is stored is as it would be two hours from now.
async fn two_hours_later<DB: Engine>(db: &Fresh<DB>) {
    let earlier = |column| match DB::KIND {
        Kind::Postgres => format!("{column} = {column} - interval '2 hours'"),
        Kind::MariaDb => format!("{column} = {column} - INTERVAL 2 HOUR"),
        Kind::Sqlite => format!("{column} = {column} - 7200000000"),
    };
    let (processed, expires) = (earlier("processed_at"), earlier("expires_at"));
    db.run(&format!(
        "UPDATE processed_messages SET {processed}, {expires}"
    ))
    .await;
}

/// As when dead letters are put back into the queue after the key is gone: it is
/// a new message, and no error.
async fn retention_shorter_than_the_window_runs_a_late_copy_again<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => hour(tx, "1")).await.unwrap();
    two_hours_later(db).await;
    assert_eq!(pruner(&pool).run().await.unwrap().rows, 1);
    let late = transact!(&pool, tx => hour(tx, "1")).await.unwrap();
    assert_eq!(late, Outcome::Processed(()));
    assert_eq!(db.stored("1").await, (1, 2));
    // Its key is kept anew.
    assert_eq!(pruner(&pool).run().await.unwrap().rows, 0);
    let again = transact!(&pool, tx => hour(tx, "1")).await.unwrap();
    assert_eq!(again, Outcome::Duplicate);
}

/// It is acknowledged, so that it leaves the queue, however often it comes.
async fn retention_longer_than_the_window_makes_a_late_copy_a_duplicate<DB: Engine>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => day(tx, "1")).await.unwrap();
    for _ in 0..2 {
        two_hours_later(db).await;
        assert_eq!(pruner(&pool).run().await.unwrap().rows, 0);
        let late = transact!(&pool, tx => day(tx, "1")).await.unwrap();
        assert_eq!(late, Outcome::Duplicate);
    }
    assert_eq!(db.stored("1").await, (1, 1));
}
