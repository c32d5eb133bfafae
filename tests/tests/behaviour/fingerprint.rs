//! One key, and another message.

use std::sync::Arc;

use idempotent_runtime::{
    Attempts, Disposition, ManyWriters, Outcome, Replay, disposition, idempotent, transact,
};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh, Kind};
use sqlx::{Pool, Transaction};
use tokio::sync::{Notify, Semaphore};

on_every_database!(
    another_payload_is_an_error_and_the_same_a_duplicate,
    the_error_tells_scope_key_and_since_when,
    another_payload_waits_for_the_first,
    another_payload_in_the_same_transaction_is_an_error,
    the_result_of_another_message_is_not_given_away,
    a_mismatch_is_told_before_anything_else,
    another_list_of_parts_is_unknown,
    a_row_without_a_fingerprint_is_unknown,
    a_result_without_a_fingerprint_is_replayed,
    one_id_of_two_sources_is_caught_or_told_apart,
    a_number_that_the_broker_counts_again_is_caught,
);

mod servers {
    use super::without_waiting_it_is_in_flight_and_then_another_payload;

    on_servers!(without_waiting_it_is_in_flight_and_then_another_payload);
}

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

const GUARDS: [&str; 2] = ["verified", "under_savepoint"];

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

async fn deliver<DB: Engine>(
    pool: &Pool<DB>,
    guard: &str,
    id: &str,
    amount: i64,
    double: &Double,
) -> Result<Outcome<()>, AppError> {
    match guard {
        "verified" => transact!(pool, tx => verified(tx, id, amount, double)).await,
        _ => transact!(pool, tx => under_savepoint(tx, id, amount, double)).await,
    }
}

/// The answer does not depend on how far the first one is.
async fn another_payload_waits_for_the_first<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for guard in GUARDS {
        for is_kept in [true, false] {
            let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
            let hold = (Arc::clone(&here), Arc::clone(&go));
            let hold = if is_kept {
                Act::Hold(hold.0, hold.1)
            } else {
                Act::HoldAndRefuse(hold.0, hold.1)
            };
            let id = format!("{guard}-{is_kept}");
            let (first, second) = (Double::planned([hold]), Double::new());
            let one = deliver(&pool, guard, &id, 10, &first);
            let other = async {
                here.notified().await;
                let other = deliver(&pool, guard, &id, 99, &second);
                let release = async {
                    db.until_waiting(1).await;
                    assert_eq!(second.runs(), 0, "the first one's outcome is open");
                    go.add_permits(1);
                };
                tokio::join!(other, release).0
            };
            let (one, other) = tokio::join!(one, other);
            if is_kept {
                assert_eq!(one.unwrap(), Outcome::Processed(()));
                assert!(is_reused(&other.unwrap_err()));
                assert_eq!(second.runs(), 0);
            } else {
                assert!(matches!(one, Err(AppError::Refused)));
                assert_eq!(other.unwrap(), Outcome::Processed(()));
            }
            assert_eq!(db.stored(&id).await, (1, 1));
        }
    }
}

/// Where nobody waits, the first one's payload is not known yet: the message comes
/// again, and is rejected then.
async fn without_waiting_it_is_in_flight_and_then_another_payload<DB: Engine + ManyWriters>(
    db: &Fresh<DB>,
) {
    #[idempotent(
        key(id),
        fingerprint(amount),
        skip(double),
        scope = "busy",
        busy = "fail"
    )]
    async fn busy<DB: Engine + ManyWriters>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        amount: i64,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, id).await
    }

    let pool = db.prepared(2).await;
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let first = Double::planned([Act::Hold(Arc::clone(&here), Arc::clone(&go))]);
    let second = Double::new();
    let one = async { transact!(&pool, tx => busy(tx, "7", 10, &first)).await };
    let other = async {
        here.notified().await;
        let attempts = Attempts::on(&pool).attempts(1);
        let said = transact!(attempts, tx => busy(tx, "7", 99, &second)).await;
        go.add_permits(1);
        said.unwrap_err()
    };
    let (one, other) = tokio::join!(one, other);
    assert_eq!(one.unwrap(), Outcome::Processed(()));
    assert!(
        matches!(&other, AppError::Idempotent(error) if error.is_in_flight() && error.is_retryable()),
        "{other}"
    );
    let said = transact!(&pool, tx => busy(tx, "7", 99, &second)).await;
    assert!(is_reused(&said.unwrap_err()));
    assert_eq!(second.runs(), 0);
    assert_eq!(db.stored("7").await, (1, 1));
}

async fn another_payload_in_the_same_transaction_is_an_error<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let mut tx = pool.begin().await.unwrap();
    let first = verified(&mut tx, "7", 10, &double).await.unwrap();
    assert_eq!(first, Outcome::Processed(()));
    let said = verified(&mut tx, "7", 99, &double).await.unwrap_err();
    assert!(is_reused(&said), "{said}");
    let same = verified(&mut tx, "7", 10, &double).await.unwrap();
    assert_eq!(same, Outcome::Duplicate);
    tx.commit().await.unwrap();
    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored("7").await, (1, 1));
}

#[idempotent(key(id), fingerprint(amount), scope = "replayed", replay)]
async fn replayed<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    amount: i64,
) -> Result<i64, AppError> {
    let _ = tx;
    Ok(amount)
}

async fn the_result_of_another_message_is_not_given_away<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => replayed(tx, "7", 10)).await.unwrap();
    let said = transact!(&pool, tx => replayed(tx, "7", 99))
        .await
        .unwrap_err();
    assert!(is_reused(&said), "{said}");
    let same = transact!(&pool, tx => replayed(tx, "7", 10)).await.unwrap();
    assert_eq!(same, Replay::Replayed(10));
}

/// A row that has expired, and whose result is of another type or gone, is still
/// that of another message.
async fn a_mismatch_is_told_before_anything_else<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => replayed(tx, "7", 10)).await.unwrap();
    for change in [
        "expires_at = processed_at",
        match DB::KIND {
            Kind::Postgres => "result = '\\x7b'",
            Kind::MariaDb | Kind::Sqlite => "result = X'7b'",
        },
        "result = NULL",
    ] {
        db.run(&format!("UPDATE processed_messages SET {change}"))
            .await;
        let said = transact!(&pool, tx => replayed(tx, "7", 99)).await;
        assert!(is_reused(&said.unwrap_err()), "{change}");
    }
    let said = transact!(&pool, tx => replayed(tx, "7", 10)).await;
    assert!(
        matches!(&said, Err(AppError::Idempotent(error)) if error.is_result_unreadable()),
        "{said:?}"
    );
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

/// As a release wrote it that had `replay`, and no fingerprint.
async fn a_result_without_a_fingerprint_is_replayed<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), scope = "replayed", replay)]
    async fn of_the_last_release<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
    ) -> Result<i64, AppError> {
        let _ = tx;
        Ok(10)
    }

    let pool = db.prepared(1).await;
    let first = transact!(&pool, tx => of_the_last_release(tx, "7"))
        .await
        .unwrap();
    assert_eq!(first, Replay::Processed(10));
    let next = transact!(&pool, tx => replayed(tx, "7", 99)).await.unwrap();
    assert_eq!(next, Replay::Replayed(10));
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

/// A tag of `RabbitMQ` counts deliveries of one channel: after a restart another
/// message has it. Whoever asserts that it is stable is not left alone.
async fn a_number_that_the_broker_counts_again_is_caught<DB: Engine>(db: &Fresh<DB>) {
    struct Delivery {
        delivery_tag: u64,
        order: &'static str,
    }

    #[idempotent(
        key(stable(msg.delivery_tag)),
        fingerprint(msg.order),
        skip(double),
        scope = "tags"
    )]
    async fn tagged<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        msg: &Delivery,
        double: &Double,
    ) -> Result<(), AppError> {
        double.run(tx, msg.order).await
    }

    let (pool, double) = (db.prepared(1).await, Double::new());
    let [one, other] = ["A-1", "B-2"].map(|order| Delivery {
        delivery_tag: 1,
        order,
    });
    let first = transact!(&pool, tx => tagged(tx, &one, &double)).await;
    assert_eq!(first.unwrap(), Outcome::Processed(()));
    let said = transact!(&pool, tx => tagged(tx, &other, &double)).await;
    assert!(is_reused(&said.unwrap_err()));
    let again = transact!(&pool, tx => tagged(tx, &one, &double)).await;
    assert_eq!(again.unwrap(), Outcome::Duplicate);
    assert_eq!(double.runs(), 1);
}
