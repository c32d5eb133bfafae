//! Results that duplicates get back.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use idempotent_runtime::{Attempts, Disposition, Error, Replay, disposition, idempotent, transact};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh, Kind};
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Transaction};
use tokio::sync::{Barrier, Notify, Semaphore};
use tokio::task::JoinSet;

on_every_database!(
    a_duplicate_gets_the_first_result,
    waiting_duplicates_get_the_first_result,
    a_duplicate_in_the_same_transaction_gets_the_first_result,
    a_failure_stores_nothing,
    an_error_that_passes_stores_nothing,
    a_refusal_that_sticks_is_a_value,
    what_cannot_be_read_again_is_not_stored,
    a_result_that_is_too_large_is_an_error_before_the_commit,
    a_row_without_a_result_is_unreadable_and_nothing_runs,
    a_result_of_another_type_is_unreadable_and_nothing_runs,
    a_torn_result_is_unreadable_and_nothing_runs,
    a_field_that_was_added_is_its_default_or_unreadable,
    a_variant_that_was_removed_is_unreadable,
    releases_side_by_side_run_a_message_once,
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

/// It is read in the transaction that the handler was given: nobody else sees
/// the row yet, and the pool has no other connection.
async fn a_duplicate_in_the_same_transaction_gets_the_first_result<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let mut tx = pool.begin().await.unwrap();
    let first = verified(&mut tx, "1", &double, paid(1)).await.unwrap();
    assert_eq!(first, Replay::Processed(paid(1)));
    let again = verified(&mut tx, "1", &double, paid(2)).await.unwrap();
    assert_eq!(again, Replay::Replayed(paid(1)));
    let first = under_savepoint(&mut tx, "2", &double, paid(3))
        .await
        .unwrap();
    assert_eq!(first, Replay::Processed(paid(3)));
    let again = under_savepoint(&mut tx, "2", &double, paid(4))
        .await
        .unwrap();
    assert_eq!(again, Replay::Replayed(paid(3)));
    assert_eq!(double.runs(), 2);
    tx.commit().await.unwrap();
    assert_eq!(db.rows("processed_messages").await, 2);
}

async fn a_failure_stores_nothing<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for guard in GUARDS {
        let double = Double::planned([Act::Refuse, Act::Refuse]);
        for delivery in 1..=2 {
            let refused = deliver(&pool, guard, &double, &paid(1)).await;
            assert!(matches!(refused, Err(AppError::Refused)), "{refused:?}");
            assert_eq!(double.runs(), delivery);
            assert_eq!(db.stored(guard).await, (0, 0));
        }
        let third = deliver(&pool, guard, &double, &paid(2)).await.unwrap();
        assert_eq!(third, Replay::Processed(paid(2)));
    }
}

/// The first delivery ends with it; the second runs, and only that is replayed.
async fn an_error_that_passes_stores_nothing<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), skip(double), scope = "unlucky", replay)]
    async fn unlucky<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: &str,
        double: &Double,
    ) -> Result<usize, AppError> {
        double.run(tx, id).await?;
        if double.runs() == 1 {
            return Err(sqlx::Error::Io(io::ErrorKind::ConnectionReset.into()).into());
        }
        Ok(double.runs())
    }

    let (pool, double) = (db.prepared(1).await, Double::new());
    let attempts = Attempts::on(&pool).attempts(1);
    let said = transact!(attempts, tx => unlucky(tx, "1", &double)).await;
    assert_eq!(
        disposition(&said.unwrap_err()),
        Disposition::Redeliver,
        "it may pass"
    );
    assert_eq!((double.runs(), db.stored("1").await), (1, (0, 0)));
    for expected in [Replay::Processed(2), Replay::Replayed(2)] {
        let outcome = transact!(&pool, tx => unlucky(tx, "1", &double)).await;
        assert_eq!(outcome.unwrap(), expected);
    }
    assert_eq!(db.stored("1").await, (1, 1));

    // `transact!` does not wait for the second delivery.
    let double = Double::new();
    let outcome = transact!(&pool, tx => unlucky(tx, "2", &double)).await;
    assert_eq!(outcome.unwrap(), Replay::Processed(2));
    assert_eq!(db.stored("2").await, (1, 1));
}

async fn a_refusal_that_sticks_is_a_value<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for guard in GUARDS {
        let double = Double::new();
        let refusal = Payment::Refused("no funds".to_owned());
        let first = deliver(&pool, guard, &double, &refusal).await.unwrap();
        assert_eq!(first, Replay::Processed(refusal.clone()));
        let again = deliver(&pool, guard, &double, &paid(2)).await.unwrap();
        assert_eq!(again, Replay::Replayed(refusal));
        assert_eq!(double.runs(), 1);
        assert_eq!(db.stored(guard).await, (1, 1));
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

async fn a_torn_result_is_unreadable_and_nothing_runs<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let _ = transact!(&pool, tx => verified(tx, "1", &double, paid(1)))
        .await
        .unwrap();
    // Nothing, half an object, half a character, too much.
    for torn in ["", "7b2250", "22c3", "7b7d7b"] {
        db.run(&match DB::KIND {
            Kind::Postgres => format!("UPDATE processed_messages SET result = '\\x{torn}'"),
            Kind::MariaDb | Kind::Sqlite => {
                format!("UPDATE processed_messages SET result = X'{torn}'")
            }
        })
        .await;
        let said = transact!(&pool, tx => verified(tx, "1", &double, paid(2))).await;
        assert!(is_unreadable(&said.unwrap_err()), "{torn}");
    }
    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored("1").await, (1, 1));
}

/// What handlers of one scope return in one release after the other.
mod releases {
    use super::{AppError, Deserialize, Double, Engine, Serialize, Transaction, idempotent};

    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    pub(super) struct Paid {
        pub(super) id: u64,
    }

    /// What the old one stored has no such field.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    pub(super) struct WithFee {
        pub(super) id: u64,
        pub(super) fee: u32,
    }

    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    pub(super) struct WithDefault {
        pub(super) id: u64,
        #[serde(default)]
        pub(super) fee: u32,
    }

    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    pub(super) enum Answer {
        Accepted(u64),
        Postponed,
    }

    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    pub(super) enum AtOnce {
        Accepted(u64),
    }

    macro_rules! release {
        ($handler:ident returns $value:ty, in $scope:literal) => {
            #[idempotent(key(id), skip(double, value), scope = $scope, replay)]
            pub(super) async fn $handler<DB: Engine>(
                tx: &mut Transaction<'_, DB>,
                id: &str,
                double: &Double,
                value: $value,
            ) -> Result<$value, AppError> {
                double.run(tx, id).await?;
                Ok(value)
            }
        };
    }

    release!(pay returns Paid, in "pay");
    release!(pay_with_fee returns WithFee, in "pay");
    release!(pay_with_default returns WithDefault, in "pay");
    release!(answer returns Answer, in "answer");
    release!(answer_at_once returns AtOnce, in "answer");
}

use releases::{Answer, AtOnce, Paid, WithDefault, WithFee};

async fn a_field_that_was_added_is_its_default_or_unreadable<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let deliver = async |id| {
        let value = WithFee { id: 9, fee: 5 };
        transact!(&pool, tx => releases::pay_with_fee(tx, id, &double, value.clone())).await
    };
    let _ = transact!(&pool, tx => releases::pay(tx, "1", &double, Paid { id: 7 }))
        .await
        .unwrap();
    for _ in 0..2 {
        let said = deliver("1").await.unwrap_err();
        assert!(is_unreadable(&said));
        let said = said.to_string();
        assert!(said.contains("scope `pay`, key `1`"), "{said}");
        assert!(said.contains("missing field `fee`"), "{said}");
    }
    let value = WithDefault { id: 9, fee: 5 };
    let now =
        transact!(&pool, tx => releases::pay_with_default(tx, "1", &double, value.clone())).await;
    assert_eq!(
        now.unwrap(),
        Replay::Replayed(WithDefault { id: 7, fee: 0 })
    );

    // The release is rolled back: what is too much is left out.
    assert!(!deliver("2").await.unwrap().is_replayed());
    let back = transact!(&pool, tx => releases::pay(tx, "2", &double, Paid { id: 7 })).await;
    assert_eq!(back.unwrap(), Replay::Replayed(Paid { id: 9 }));
    assert_eq!(double.runs(), 2);
}

async fn a_variant_that_was_removed_is_unreadable<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    for (id, value) in [("1", Answer::Postponed), ("2", Answer::Accepted(7))] {
        let first = transact!(&pool, tx => releases::answer(tx, id, &double, value.clone())).await;
        assert_eq!(first.unwrap(), Replay::Processed(value));
    }
    let deliver = async |id| {
        let value = AtOnce::Accepted(9);
        transact!(&pool, tx => releases::answer_at_once(tx, id, &double, value.clone())).await
    };
    let said = deliver("1").await.unwrap_err();
    assert!(is_unreadable(&said));
    assert!(said.to_string().contains("`Postponed`"), "{said}");
    let kept = deliver("2").await.unwrap();
    assert_eq!(kept, Replay::Replayed(AtOnce::Accepted(7)));
    assert_eq!(double.runs(), 2);
}

/// A copy of one message for each of two releases, at once: whichever comes first,
/// the message is a duplicate for the other.
async fn releases_side_by_side_run_a_message_once<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(3).await;
    for first in ["old", "new"] {
        let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let hold = Act::Hold(Arc::clone(&here), Arc::clone(&go));
        let (one, two) = (Double::planned([hold]), Double::new());
        let (old, new) = if first == "old" {
            (&one, &two)
        } else {
            (&two, &one)
        };
        let old = async {
            if first == "new" {
                here.notified().await;
            }
            transact!(&pool, tx => releases::pay(tx, first, old, Paid { id: 7 })).await
        };
        let new = async {
            if first == "old" {
                here.notified().await;
            }
            let value = WithDefault { id: 7, fee: 5 };
            transact!(&pool, tx => releases::pay_with_default(tx, first, new, value.clone())).await
        };
        let release = async {
            db.until_waiting(1).await;
            go.add_permits(1);
        };
        let (old, new, ()) = tokio::join!(old, new, release);
        let (old, new) = (old.unwrap(), new.unwrap());
        assert_eq!(old.is_replayed(), first == "new");
        assert_eq!(new.is_replayed(), first == "old");
        assert_eq!(old.into_inner(), Paid { id: 7 });
        let fee = if first == "old" { 0 } else { 5 };
        assert_eq!(new.into_inner(), WithDefault { id: 7, fee });
        assert_eq!((one.runs(), two.runs()), (1, 0));
        assert_eq!(db.stored(first).await, (1, 1));
    }
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
