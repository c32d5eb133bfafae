//! What a duplicate is at which isolation level.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::{Attempts, Isolation, Outcome, Replay, idempotent, transact};
use idempotent_tests::{AppError, Double, Engine, Fresh, Guarded, Kind, Savepoint, Verify};
use sqlx::{Pool, Transaction};
use tokio::task::JoinSet;
use tokio::time::timeout;

on_every_database!(
    a_message_that_was_processed_after_the_snapshot_is_a_duplicate_or_retried,
    what_was_stored_after_the_snapshot_is_found_or_retried,
    parallel_serializable_transactions_of_different_messages_all_commit,
);

/// How a transaction may begin, and whether it calls a message that was processed
/// after its snapshot a duplicate; else it asks to be retried.
const fn begins<DB: Engine>() -> &'static [(&'static str, bool)] {
    match DB::KIND {
        Kind::Postgres => &[
            ("BEGIN ISOLATION LEVEL READ COMMITTED", true),
            ("BEGIN ISOLATION LEVEL REPEATABLE READ", false),
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", false),
        ],
        // The unique check reads the latest version.
        Kind::MariaDb => &[
            (
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION",
                true,
            ),
            (
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION",
                true,
            ),
            (
                "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION",
                true,
            ),
        ],
        // A reader that wants to write, with an old snapshot: 517, at once.
        Kind::Sqlite => &[("BEGIN DEFERRED", false)],
    }
}

/// The transaction has read before the message was processed elsewhere.
async fn deliver_on_an_old_snapshot<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    begin: &'static str,
) -> Result<Outcome<()>, AppError> {
    let id = &*format!("{begin}-{}", G::SCOPE)
        .replace(' ', "-")
        .replace(';', "");
    let mut tx = pool.begin_with(begin).await.unwrap();
    DB::number(&mut tx, "SELECT count(*) FROM letters")
        .await
        .unwrap();

    let elsewhere = Double::new();
    let first = transact!(pool, tx => G::record(tx, id, &elsewhere))
        .await
        .unwrap();
    assert_eq!(first, Outcome::Processed(()));

    let double = Double::new();
    let outcome = G::record(&mut tx, id, &double).await;
    assert_eq!(double.runs(), 0, "{begin}");
    match &outcome {
        Ok(_) => tx.commit().await.unwrap(),
        Err(_) => tx.rollback().await.unwrap(),
    }

    let again = transact!(pool, tx => G::record(tx, id, &double))
        .await
        .unwrap();
    assert_eq!(again, Outcome::Duplicate);
    assert_eq!(db.stored(id).await, (1, 1));
    outcome
}

async fn a_message_that_was_processed_after_the_snapshot_is_a_duplicate_or_retried<DB: Engine>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(2).await;
    for &(begin, is_duplicate) in begins::<DB>() {
        for outcome in [
            deliver_on_an_old_snapshot::<DB, Verify>(db, &pool, begin).await,
            deliver_on_an_old_snapshot::<DB, Savepoint>(db, &pool, begin).await,
        ] {
            match outcome {
                Ok(outcome) => assert!(is_duplicate && outcome.is_duplicate(), "{begin}"),
                Err(error) => {
                    assert!(!is_duplicate, "{begin}: {error:?}");
                    assert!(error.is_retryable(), "{begin}: {error:?}");
                }
            }
        }
    }
}

#[idempotent(key(id), fingerprint(amount), scope = "paid", replay)]
async fn pay<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    amount: i64,
) -> Result<i64, AppError> {
    DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
    Ok(amount)
}

/// The next release: its row has the old name only.
#[idempotent(
    key(id),
    fingerprint(amount),
    scope = "now-paid",
    was("paid"),
    replay,
    guard = "savepoint"
)]
async fn pay_renamed<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    amount: i64,
) -> Result<i64, AppError> {
    DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
    Ok(amount)
}

#[idempotent(key(id), each = "id in ids", scope = "paid")]
async fn pay_all<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    ids: Vec<&str>,
) -> Result<usize, AppError> {
    let _ = tx;
    Ok(ids.len())
}

/// What a delivery on the old snapshot says; `Err`: it wants to be retried.
async fn told<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    handler: &str,
    id: &str,
) -> Result<String, AppError> {
    let told = match handler {
        "pay" => pay(tx, id, 7).await,
        "another payload" => pay(tx, id, 8).await,
        "renamed" => pay_renamed(tx, id, 7).await,
        "renamed, another payload" => pay_renamed(tx, id, 8).await,
        _ => {
            let batch = pay_all(tx, vec!["new", id]).await?;
            return Ok(format!("{:?} {:?}", batch.value, batch.outcomes));
        }
    };
    match told {
        Ok(replay) => Ok(format!("{replay:?}")),
        Err(AppError::Idempotent(error)) if error.is_key_reused() => Ok("reused".to_owned()),
        Err(error) => Err(error),
    }
}

/// A plain read would find nothing there: result, fingerprint and the earlier name
/// are read as they are now.
async fn what_was_stored_after_the_snapshot_is_found_or_retried<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let mut messages = 0;
    for &(begin, is_duplicate) in begins::<DB>() {
        for (handler, expected) in [
            ("pay", "Replayed(7)"),
            ("another payload", "reused"),
            ("renamed", "Replayed(7)"),
            ("renamed, another payload", "reused"),
            ("batch", "Some(1) [Processed, Duplicate]"),
        ] {
            messages += 1;
            let id = messages.to_string();
            let mut tx = pool.begin_with(begin).await.unwrap();
            DB::number(&mut tx, "SELECT count(*) FROM letters")
                .await
                .unwrap();
            let first = transact!(&pool, tx => pay(tx, &id, 7)).await.unwrap();
            assert_eq!(first, Replay::Processed(7));

            let said = told(&mut tx, handler, &id);
            let said = timeout(Duration::from_secs(20), said).await;
            let said = said.unwrap_or_else(|_| panic!("{begin}, {handler}: it looks for ever"));
            tx.rollback().await.unwrap();
            match said {
                Ok(said) => assert!(
                    is_duplicate && said == expected,
                    "{begin}, {handler}: {said}"
                ),
                Err(error) => assert!(
                    !is_duplicate && error.is_retryable(),
                    "{begin}, {handler}: {error:?}"
                ),
            }
            let mut tx = pool.begin().await.unwrap();
            let again = told(&mut tx, handler, &id).await.unwrap();
            tx.rollback().await.unwrap();
            assert_eq!(again, expected, "{begin}, {handler}");
            assert_eq!(db.stored(&id).await, (1, 1), "{begin}, {handler}");
        }
    }
}

async fn parallel_serializable_transactions_of_different_messages_all_commit<DB: Engine>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(20).await;
    all_commit::<DB, Verify>(&pool).await;
    all_commit::<DB, Savepoint>(&pool).await;
    assert_eq!(db.rows("effects").await, 40);
    assert_eq!(
        db.number("SELECT count(DISTINCT id) FROM effects").await,
        40
    );
}

async fn all_commit<DB: Engine, G: Guarded>(pool: &Pool<DB>) {
    let double = Arc::new(Double::new());
    let mut tasks = JoinSet::new();
    for message in 0..20 {
        let (pool, double) = (pool.clone(), Arc::clone(&double));
        tasks.spawn(async move {
            let attempts = Attempts::on(&pool)
                .isolation(Isolation::Serializable)
                .attempts(20);
            let id = format!("{}-{message}", G::SCOPE);
            transact!(attempts, tx => G::record(tx, &id, &double))
                .await
                .unwrap()
        });
    }
    let outcomes = tasks.join_all().await;
    assert!(
        outcomes.iter().all(|outcome| !outcome.is_duplicate()),
        "{outcomes:?}"
    );
    println!(
        "{:?}, {}: {} runs for 20 messages",
        DB::KIND,
        G::SCOPE,
        double.runs()
    );
}

mod sqlite_writers {
    use super::*;
    use idempotent_tests::in_fresh_database;
    use sqlx::Sqlite;

    #[test]
    fn with_begin_immediate_two_consumers_meet_no_error() {
        in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
            two_consumers::<Verify>(db, true).await;
        });
    }

    #[test]
    fn with_the_claim_as_first_statement_two_consumers_meet_no_error() {
        in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
            two_consumers::<Savepoint>(db, false).await;
        });
    }

    async fn two_consumers<G: Guarded>(db: &Fresh<Sqlite>, reads_first: bool) {
        let pool = db.prepared(4).await;
        let double = Arc::new(Double::new());
        let mut tasks = JoinSet::new();
        for _ in 0..2 {
            let (pool, double) = (pool.clone(), Arc::clone(&double));
            tasks.spawn(async move {
                let mut duplicates = 0;
                for message in 0..100 {
                    let mut tx = if reads_first {
                        let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
                        Sqlite::number(&mut tx, "SELECT count(*) FROM letters")
                            .await
                            .unwrap();
                        tx
                    } else {
                        pool.begin().await.unwrap()
                    };
                    let outcome = G::record(&mut tx, &message.to_string(), &double)
                        .await
                        .unwrap();
                    tx.commit().await.unwrap();
                    duplicates += usize::from(outcome.is_duplicate());
                }
                duplicates
            });
        }
        let duplicates: usize = tasks.join_all().await.into_iter().sum();
        assert_eq!((double.runs(), duplicates), (100, 100));
        assert_eq!(db.rows("effects").await, 100);
    }
}
