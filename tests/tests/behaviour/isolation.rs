//! What a duplicate is at which isolation level.

use std::sync::Arc;

use idempotent_runtime::{Attempts, Isolation, Outcome, transact};
use idempotent_tests::{AppError, Double, Engine, Fresh, Guarded, Kind, Savepoint, Verify};
use sqlx::Pool;
use tokio::task::JoinSet;

on_every_database!(
    a_message_that_was_processed_after_the_snapshot_is_a_duplicate_or_retried,
    parallel_serializable_transactions_of_different_messages_all_commit,
);

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
    let begins: &[(&str, bool)] = match DB::KIND {
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
    };
    for &(begin, is_duplicate) in begins {
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
