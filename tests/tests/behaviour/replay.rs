//! Results that duplicates get back.

use std::collections::HashMap;
use std::sync::Arc;

use idempotent_runtime::{Disposition, Error, Replay, disposition, idempotent, transact};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh};
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Transaction};
use tokio::sync::{Barrier, Notify, Semaphore};
use tokio::task::JoinSet;

on_every_database!(
    a_duplicate_gets_the_first_result,
    waiting_duplicates_get_the_first_result,
    a_failure_stores_nothing,
    a_refusal_that_sticks_is_a_value,
    what_cannot_be_read_again_is_not_stored,
    a_result_that_is_too_large_is_an_error_before_the_commit,
    a_row_without_a_result_is_unreadable_and_nothing_runs,
    a_result_of_another_type_is_unreadable_and_nothing_runs,
    a_lost_transaction_stores_nothing,
    results_of_every_shape_come_back,
    every_float_comes_back_as_it_was,
);

/// What a payment ends with, also where it is refused.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum Payment {
    Paid { receipt: u64, text: String },
    Refused(String),
}

#[idempotent(key(id), skip(double, payment), scope = "verified", replay)]
async fn verified<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
    payment: Payment,
) -> Result<Payment, AppError> {
    double.run(tx, id).await?;
    Ok(payment)
}

#[idempotent(
    key(id),
    skip(double, payment),
    scope = "under_savepoint",
    replay,
    guard = "savepoint"
)]
async fn under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
    payment: Payment,
) -> Result<Payment, AppError> {
    double.run(tx, id).await?;
    Ok(payment)
}

fn paid(receipt: u64) -> Payment {
    Payment::Paid {
        receipt,
        text: "'thanks' \\ \u{e4}\0".to_owned(),
    }
}

async fn deliver<DB: Engine>(
    pool: &Pool<DB>,
    guard: &str,
    double: &Double,
    payment: &Payment,
) -> Result<Replay<Payment>, AppError> {
    match guard {
        "verified" => transact!(pool, tx => verified(tx, guard, double, payment.clone())).await,
        _ => transact!(pool, tx => under_savepoint(tx, guard, double, payment.clone())).await,
    }
}

const GUARDS: [&str; 2] = ["verified", "under_savepoint"];

async fn a_duplicate_gets_the_first_result<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for guard in GUARDS {
        let double = Double::new();
        let first = deliver(&pool, guard, &double, &paid(1)).await.unwrap();
        assert_eq!(first, Replay::Processed(paid(1)));
        for _ in 0..2 {
            let again = deliver(&pool, guard, &double, &paid(2)).await.unwrap();
            assert_eq!(again, Replay::Replayed(paid(1)));
        }
        assert_eq!(double.runs(), 1);
        assert_eq!(db.stored(guard).await, (1, 1));
    }
}

async fn waiting_duplicates_get_the_first_result<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(8).await;
    for guard in GUARDS {
        let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let hold = Act::Hold(Arc::clone(&here), Arc::clone(&go));
        let double = Arc::new(Double::planned([hold]));
        let barrier = Arc::new(Barrier::new(6));
        let mut copies = JoinSet::new();
        for receipt in 0..6 {
            let (pool, double, barrier) = (pool.clone(), Arc::clone(&double), Arc::clone(&barrier));
            copies.spawn(async move {
                barrier.wait().await;
                deliver(&pool, guard, &double, &paid(receipt))
                    .await
                    .unwrap()
            });
        }
        here.notified().await;
        db.until_waiting(5).await;
        go.add_permits(1);
        let answers = copies.join_all().await;
        assert_eq!(
            answers
                .iter()
                .filter(|answer| !answer.is_replayed())
                .count(),
            1
        );
        let mut results: Vec<_> = answers.into_iter().map(Replay::into_inner).collect();
        results.dedup();
        assert_eq!(results.len(), 1, "{results:?}");
        assert_eq!(double.runs(), 1);
    }
}

async fn a_failure_stores_nothing<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for guard in GUARDS {
        let double = Double::planned([Act::Refuse]);
        let refused = deliver(&pool, guard, &double, &paid(1)).await;
        assert!(matches!(refused, Err(AppError::Refused)), "{refused:?}");
        assert_eq!(db.stored(guard).await, (0, 0));
        let second = deliver(&pool, guard, &double, &paid(2)).await.unwrap();
        assert_eq!(second, Replay::Processed(paid(2)));
    }
}

async fn a_refusal_that_sticks_is_a_value<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for guard in GUARDS {
        let double = Double::new();
        let refusal = Payment::Refused("no funds".to_owned());
        let _ = deliver(&pool, guard, &double, &refusal).await.unwrap();
        let again = deliver(&pool, guard, &double, &paid(2)).await.unwrap();
        assert_eq!(again, Replay::Replayed(refusal));
    }
}

/// `NaN` has no JSON, and a map's keys are texts: serde refuses others.
async fn what_cannot_be_read_again_is_not_stored<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), skip(double), scope = "nan", replay)]
    async fn nan<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<f64, AppError> {
        double.run(tx, id).await?;
        Ok(f64::NAN)
    }

    #[idempotent(key(id), skip(double), scope = "keys", replay)]
    async fn keys<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<HashMap<(u8, u8), u8>, AppError> {
        double.run(tx, id).await?;
        Ok(HashMap::from([((1, 2), 3)]))
    }

    let (pool, double) = (db.prepared(1).await, Double::new());
    let said = transact!(&pool, tx => nan(tx, "1", &double))
        .await
        .unwrap_err();
    assert!(said.to_string().contains("cannot be stored"), "{said}");
    let said = transact!(&pool, tx => keys(tx, "1", &double))
        .await
        .unwrap_err();
    assert!(said.to_string().contains("cannot be stored"), "{said}");
    assert_eq!(disposition(&said), Disposition::Redeliver);
    assert_eq!(db.stored("1").await, (0, 0));
}

async fn a_result_that_is_too_large_is_an_error_before_the_commit<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), skip(double, size), scope = "large", replay)]
    async fn large<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
        size: usize,
    ) -> Result<String, AppError> {
        double.run(tx, id).await?;
        Ok("x".repeat(size))
    }

    let (pool, double) = (db.prepared(1).await, Double::new());
    let most = (1 << 20) - 2; // and two quotes
    let said = transact!(&pool, tx => large(tx, "1", &double, most + 1)).await;
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains("1048577 bytes of JSON, 1048576 at most"),
        "{said}"
    );
    assert_eq!(db.stored("1").await, (0, 0));
    let stored = transact!(&pool, tx => large(tx, "1", &double, most))
        .await
        .unwrap();
    assert!(!stored.is_replayed());
    let again = transact!(&pool, tx => large(tx, "1", &double, 0))
        .await
        .unwrap();
    assert_eq!(again.into_inner().len(), most);
}

/// The same scope, of an older release that had no `replay`.
#[idempotent(key(id), skip(double), scope = "verified")]
async fn of_before<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

/// The same scope, of a release with another type.
#[idempotent(key(id), skip(double), scope = "verified", replay)]
async fn of_another_type<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<u8, AppError> {
    double.run(tx, id).await?;
    Ok(7)
}

fn is_unreadable(said: &AppError) -> bool {
    let ours = Error::find(said).is_some_and(Error::is_result_unreadable);
    let ours = ours || matches!(said, AppError::Idempotent(error) if error.is_result_unreadable());
    ours && disposition(said) == Disposition::Reject
}

async fn a_row_without_a_result_is_unreadable_and_nothing_runs<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&pool, tx => of_before(tx, "1", &double))
        .await
        .unwrap();
    let said = transact!(&pool, tx => verified(tx, "1", &double, paid(1))).await;
    assert!(is_unreadable(&said.unwrap_err()));
    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored("1").await, (1, 1));
}

async fn a_result_of_another_type_is_unreadable_and_nothing_runs<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&pool, tx => of_another_type(tx, "1", &double))
        .await
        .unwrap();
    let said = transact!(&pool, tx => verified(tx, "1", &double, paid(1))).await;
    assert!(is_unreadable(&said.unwrap_err()));
    // A release without `replay` calls it what it is.
    let again = transact!(&pool, tx => of_before(tx, "1", &double))
        .await
        .unwrap();
    assert!(again.is_duplicate());
    assert_eq!(double.runs(), 1);
}

/// The proof is in the storing.
async fn a_lost_transaction_stores_nothing<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), scope = "lost", replay)]
    async fn rolls_back<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
    ) -> Result<u8, AppError> {
        DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
        DB::run(tx, "ROLLBACK").await?;
        Ok(7)
    }

    let pool = db.prepared(1).await;
    let mut tx = pool.begin().await.unwrap();
    let said = rolls_back(&mut tx, "1").await.unwrap_err();
    assert!(said.is_transaction_lost(), "{said}");
    drop(tx);
    assert_eq!(db.stored("1").await, (0, 0));
}

async fn results_of_every_shape_come_back<DB: Engine>(db: &Fresh<DB>) {
    #[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
    struct Shapes {
        none: Option<u8>,
        nested: Vec<(i64, Option<String>)>,
        big: u64,
        float: f64,
        unit: (),
    }

    #[idempotent(key(id), skip(shapes), scope = "shapes", replay)]
    async fn shapes<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        shapes: Shapes,
    ) -> Result<Shapes, AppError> {
        let _ = tx;
        Ok(shapes)
    }

    #[idempotent(key(id), scope = "unit", replay)]
    async fn unit<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
        let _ = tx;
        Ok(())
    }

    let pool = db.prepared(1).await;
    let full = Shapes {
        none: None,
        nested: vec![(i64::MIN, Some("\u{1f980}'\"\\".to_owned())), (0, None)],
        big: u64::MAX,
        float: 0.1 + 0.2,
        unit: (),
    };
    let _ = transact!(&pool, tx => shapes(tx, "1", full.clone()))
        .await
        .unwrap();
    let again = transact!(&pool, tx => shapes(tx, "1", Shapes::default()))
        .await
        .unwrap();
    assert_eq!(again, Replay::Replayed(full));
    let _ = transact!(&pool, tx => unit(tx, "1")).await.unwrap();
    assert_eq!(
        transact!(&pool, tx => unit(tx, "1")).await.unwrap(),
        Replay::Replayed(())
    );
}

/// Many a float's shortest text is read back as its neighbour, unless that is asked for.
async fn every_float_comes_back_as_it_was<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), scope = "prices", replay)]
    async fn prices<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: i64,
    ) -> Result<Vec<f64>, AppError> {
        let _ = (tx, id);
        Ok((1..10_000).map(|cents| f64::from(cents) * 1.19).collect())
    }

    let pool = db.prepared(1).await;
    let first = transact!(&pool, tx => prices(tx, 1)).await.unwrap();
    let again = transact!(&pool, tx => prices(tx, 1)).await.unwrap();
    assert!(!first.is_replayed() && again.is_replayed());
    assert_eq!(first.into_inner(), again.into_inner());
}
