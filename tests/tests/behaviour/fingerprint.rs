//! One key, and another message.

use std::sync::Arc;

use idempotent_runtime::{Disposition, Outcome, Replay, disposition, idempotent, transact};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh};
use sqlx::Transaction;
use tokio::sync::{Notify, Semaphore};

on_every_database!(
    another_payload_is_an_error_and_the_same_a_duplicate,
    the_error_tells_scope_key_and_since_when,
    another_payload_waits_for_the_first,
    the_result_of_another_message_is_not_given_away,
    another_list_of_parts_is_unknown,
    a_row_without_a_fingerprint_is_unknown,
    one_id_of_two_sources_is_caught_or_told_apart,
);

#[idempotent(key(id), fingerprint(amount), skip(double), scope = "verified")]
async fn verified<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    amount: i64,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(
    key(id),
    fingerprint = "amount",
    skip(double),
    scope = "under_savepoint",
    guard = "savepoint"
)]
async fn under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    amount: i64,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

fn is_reused(said: &AppError) -> bool {
    matches!(said, AppError::Idempotent(error) if error.is_key_reused() && !error.is_retryable())
        && disposition(said) == Disposition::Reject
}

async fn another_payload_is_an_error_and_the_same_a_duplicate<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&pool, tx => verified(tx, "7", 10, &double))
        .await
        .unwrap();
    let said = transact!(&pool, tx => verified(tx, "7", 99, &double))
        .await
        .unwrap_err();
    assert!(is_reused(&said), "{said}");
    let same = transact!(&pool, tx => verified(tx, "7", 10, &double))
        .await
        .unwrap();
    assert_eq!(same, Outcome::Duplicate);
    assert_eq!(db.stored("7").await, (1, 1));

    let _ = transact!(&pool, tx => under_savepoint(tx, "8", 10, &double))
        .await
        .unwrap();
    let said = transact!(&pool, tx => under_savepoint(tx, "8", 99, &double))
        .await
        .unwrap_err();
    assert!(is_reused(&said), "{said}");
    // The caller may go on, for instance with a dead letter.
    let mut tx = pool.begin().await.unwrap();
    assert!(is_reused(
        &under_savepoint(&mut tx, "8", 99, &double)
            .await
            .unwrap_err()
    ));
    DB::run(&mut tx, "INSERT INTO effects (id) VALUES ('dead')")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        db.number("SELECT count(*) FROM effects WHERE id = 'dead'")
            .await,
        1
    );
    assert_eq!(double.runs(), 2);
}

async fn the_error_tells_scope_key_and_since_when<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&pool, tx => verified(tx, "7", 10, &double))
        .await
        .unwrap();
    let said = transact!(&pool, tx => verified(tx, "7", 99, &double))
        .await
        .unwrap_err();
    let AppError::Idempotent(said) = said else {
        panic!("{said}");
    };
    let text = said.to_string();
    let (before, since) = text.split_once("processed at ").unwrap();
    assert_eq!(
        before,
        "scope `verified`, key `7`: the key belongs to another message, which was "
    );
    let form: String = since
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    assert!(form.starts_with("0000-00-00T00:00:00.000"), "{since}");
    assert!(form.ends_with('Z') && since.starts_with("20"), "{since}");
}

/// The answer does not depend on how far the first one is.
async fn another_payload_waits_for_the_first<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for (is_kept, act) in [(true, None), (false, Some(()))] {
        let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let hold = (Arc::clone(&here), Arc::clone(&go));
        let hold = match act {
            None => Act::Hold(hold.0, hold.1),
            Some(()) => Act::HoldAndRefuse(hold.0, hold.1),
        };
        let id = if is_kept { "kept" } else { "refused" };
        let first = Arc::new(Double::planned([hold]));
        let second = Arc::new(Double::new());
        let deliver = |amount, double: &Arc<Double>| {
            let (pool, double) = (pool.clone(), Arc::clone(double));
            tokio::spawn(
                async move { transact!(&pool, tx => verified(tx, id, amount, &double)).await },
            )
        };
        let one = deliver(10, &first);
        here.notified().await;
        let other = deliver(99, &second);
        db.until_waiting(1).await;
        go.add_permits(1);
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        if is_kept {
            assert_eq!(one.unwrap(), Outcome::Processed(()));
            assert!(is_reused(&other.unwrap_err()));
        } else {
            assert!(matches!(one, Err(AppError::Refused)));
            assert_eq!(other.unwrap(), Outcome::Processed(()));
        }
        assert_eq!(db.stored(id).await, (1, 1));
    }
}

async fn the_result_of_another_message_is_not_given_away<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), fingerprint(amount), scope = "replayed", replay)]
    async fn replayed<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        amount: i64,
    ) -> Result<i64, AppError> {
        let _ = tx;
        Ok(amount)
    }

    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => replayed(tx, "7", 10)).await.unwrap();
    let said = transact!(&pool, tx => replayed(tx, "7", 99))
        .await
        .unwrap_err();
    assert!(is_reused(&said), "{said}");
    let same = transact!(&pool, tx => replayed(tx, "7", 10)).await.unwrap();
    assert_eq!(same, Replay::Replayed(10));
}

async fn another_list_of_parts_is_unknown<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(
        key(id),
        fingerprint(amount, account),
        skip(double),
        scope = "verified"
    )]
    async fn of_the_next_release<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        amount: i64,
        account: i64,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, id).await
    }

    let (pool, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&pool, tx => verified(tx, "7", 10, &double))
        .await
        .unwrap();
    let next = transact!(&pool, tx => of_the_next_release(tx, "7", 99, 1, &double)).await;
    assert_eq!(next.unwrap(), Outcome::Duplicate);
    assert_eq!(double.runs(), 1);
}

async fn a_row_without_a_fingerprint_is_unknown<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), skip(double), scope = "verified")]
    async fn of_the_last_release<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, id).await
    }

    let (pool, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&pool, tx => of_the_last_release(tx, "7", &double))
        .await
        .unwrap();
    let next = transact!(&pool, tx => verified(tx, "7", 99, &double))
        .await
        .unwrap();
    assert_eq!(next, Outcome::Duplicate);
    // And the other way round, as in a roll-back of the release.
    let _ = transact!(&pool, tx => verified(tx, "8", 10, &double))
        .await
        .unwrap();
    let back = transact!(&pool, tx => of_the_last_release(tx, "8", &double))
        .await
        .unwrap();
    assert_eq!(back, Outcome::Duplicate);
}

/// As `CloudEvents` have it: an id is unique within its source.
async fn one_id_of_two_sources_is_caught_or_told_apart<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), fingerprint(source), scope = "coarse")]
    async fn coarse<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        source: &str,
        id: &str,
    ) -> Result<(), AppError> {
        let _ = tx;
        Ok(())
    }

    #[idempotent(key(source, id), scope = "exact")]
    async fn exact<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        source: &str,
        id: &str,
    ) -> Result<(), AppError> {
        let _ = tx;
        Ok(())
    }

    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => coarse(tx, "/a", "1")).await.unwrap();
    let said = transact!(&pool, tx => coarse(tx, "/b", "1"))
        .await
        .unwrap_err();
    assert!(is_reused(&said), "{said}");
    for source in ["/a", "/b"] {
        let outcome = transact!(&pool, tx => exact(tx, source, "1"))
            .await
            .unwrap();
        assert_eq!(outcome, Outcome::Processed(()));
    }
}
