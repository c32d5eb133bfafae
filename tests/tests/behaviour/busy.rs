//! A second delivery that does not wait for the first.

use std::sync::Arc;

use idempotent_runtime::{
    Attempts, Disposition, ManyWriters, Outcome, Replay, Table, disposition, idempotent, transact,
};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh};
use sqlx::{Pool, Transaction};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

on_servers!(
    while_the_first_is_open_a_second_fails_at_once,
    a_committed_key_is_a_duplicate_while_another_copy_is_open,
    other_keys_are_not_in_flight,
    the_key_of_another_table_is_not_in_flight,
    after_a_failure_of_the_first_a_second_runs,
    nothing_leaks_into_the_pool,
    transact_tries_until_the_first_has_ended,
    of_many_copies_one_runs_and_none_waits,
    a_delivery_under_an_earlier_name_is_in_flight,
    a_committed_earlier_name_is_a_duplicate_while_another_copy_is_open,
);

#[idempotent(key(id), skip(double), scope = "verified", busy = "fail")]
async fn verified<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(
    key(id),
    skip(double),
    scope = "under_savepoint",
    busy = "fail",
    guard = "savepoint"
)]
async fn under_savepoint<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(
    key(id),
    skip(double),
    scope = "renamed",
    was("verified"),
    was("under_savepoint"),
    busy = "fail"
)]
async fn renamed<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

const GUARDS: [&str; 2] = ["verified", "under_savepoint"];
const HANDLERS: [&str; 3] = ["verified", "under_savepoint", "renamed"];

/// In a transaction that stays open.
async fn deliver<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    guard: &str,
    id: &str,
    double: &Double,
) -> Result<Outcome<()>, AppError> {
    match guard {
        "verified" => verified(tx, id, double).await,
        "renamed" => renamed(tx, id, double).await,
        _ => under_savepoint(tx, id, double).await,
    }
}

fn is_in_flight(said: &AppError) -> bool {
    matches!(said, AppError::Idempotent(error) if error.is_in_flight() && error.is_retryable())
        && disposition(said) == Disposition::Redeliver
}

/// A delivery that has claimed its key and waits for `go` to end.
struct Open {
    task: JoinHandle<Result<Outcome<()>, AppError>>,
    go: Arc<Semaphore>,
}

impl Open {
    async fn start<DB: Engine + ManyWriters>(
        pool: &Pool<DB>,
        guard: &'static str,
        id: &'static str,
        act: impl FnOnce(Arc<Notify>, Arc<Semaphore>) -> Act,
    ) -> Self {
        let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let double = Double::planned([act(Arc::clone(&here), Arc::clone(&go))]);
        let pool = pool.clone();
        let mut task = tokio::spawn(async move {
            let mut tx = pool.begin().await.unwrap();
            let outcome = deliver(&mut tx, guard, id, &double).await;
            if outcome.is_ok() {
                tx.commit().await.unwrap();
            } else {
                tx.rollback().await.unwrap();
            }
            outcome
        });
        tokio::select! {
            () = here.notified() => Self { task, go },
            said = &mut task => panic!("not run: {said:?}"),
        }
    }

    async fn end(self) -> Result<Outcome<()>, AppError> {
        self.go.add_permits(1);
        self.task.await.unwrap()
    }
}

async fn while_the_first_is_open_a_second_fails_at_once<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    let pool = db.prepared(3).await;
    for guard in GUARDS {
        let (first, double) = (
            Open::start(&pool, guard, guard, Act::Hold).await,
            Double::new(),
        );
        for _ in 0..2 {
            let mut tx = pool.begin().await.unwrap();
            let said = deliver(&mut tx, guard, guard, &double).await.unwrap_err();
            assert!(is_in_flight(&said), "{said}");
            tx.rollback().await.unwrap();
        }
        assert_eq!(first.end().await.unwrap(), Outcome::Processed(()));
        let mut tx = pool.begin().await.unwrap();
        let again = deliver(&mut tx, guard, guard, &double).await.unwrap();
        assert_eq!(again, Outcome::Duplicate);
        tx.commit().await.unwrap();
        assert_eq!(double.runs(), 0);
        assert_eq!(db.stored(guard).await, (1, 1));
    }
}

async fn a_committed_key_is_a_duplicate_while_another_copy_is_open<DB: Engine + ManyWriters>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(3).await;
    for guard in HANDLERS {
        let double = Double::new();
        let mut tx = pool.begin().await.unwrap();
        let _ = deliver(&mut tx, guard, guard, &double).await.unwrap();
        tx.commit().await.unwrap();

        let mut open = pool.begin().await.unwrap();
        let copy = deliver(&mut open, guard, guard, &double).await.unwrap();
        assert_eq!(copy, Outcome::Duplicate);
        let mut tx = pool.begin().await.unwrap();
        let other = deliver(&mut tx, guard, guard, &double).await.unwrap();
        assert_eq!(other, Outcome::Duplicate);
        open.commit().await.unwrap();
        tx.commit().await.unwrap();
    }
}

async fn other_keys_are_not_in_flight<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    let pool = db.prepared(3).await;
    for guard in HANDLERS {
        let id = format!("{guard}-m").leak();
        let first = Open::start(&pool, guard, id, Act::Hold).await;
        for other in ["l", "n", "m0", "a", "z"] {
            let id = &format!("{guard}-{other}");
            let double = Double::new();
            let mut tx = pool.begin().await.unwrap();
            let other = deliver(&mut tx, guard, id, &double).await.unwrap();
            assert_eq!(other, Outcome::Processed(()));
            tx.commit().await.unwrap();
        }
        first.end().await.unwrap().processed().unwrap();
    }
}

#[idempotent(
    key(id),
    skip(double),
    scope = "verified",
    busy = "fail",
    table = "other_messages"
)]
async fn in_another_table<DB: Engine + ManyWriters>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

async fn the_key_of_another_table_is_not_in_flight<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let other = Table::named("other_messages").unwrap();
    other.migrate(&pool).await.unwrap();
    let open = Open::start(&pool, "verified", "1", Act::Hold).await;
    let double = Double::new();
    let mut tx = pool.begin().await.unwrap();
    let outcome = in_another_table(&mut tx, "1", &double).await.unwrap();
    assert_eq!(outcome, Outcome::Processed(()));
    tx.rollback().await.unwrap();
    assert_eq!(open.end().await.unwrap(), Outcome::Processed(()));
}

async fn after_a_failure_of_the_first_a_second_runs<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for guard in HANDLERS {
        let first = Open::start(&pool, guard, guard, Act::HoldAndRefuse).await;
        let double = Double::new();
        let mut tx = pool.begin().await.unwrap();
        let said = deliver(&mut tx, guard, guard, &double).await.unwrap_err();
        assert!(is_in_flight(&said), "{said}");
        tx.rollback().await.unwrap();
        assert!(matches!(first.end().await, Err(AppError::Refused)));
        let mut tx = pool.begin().await.unwrap();
        let second = deliver(&mut tx, guard, guard, &double).await.unwrap();
        assert_eq!(second, Outcome::Processed(()));
        tx.commit().await.unwrap();
    }
}

/// Neither a lock nor a setting: on the one connection there is, a handler that
/// waits still waits.
async fn nothing_leaks_into_the_pool<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    #[idempotent(key(id), scope = "patient")]
    async fn patient<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<(), AppError> {
        let _ = tx;
        Ok(())
    }

    let (pool, other) = (db.prepared(1).await, db.pool(2).await);
    for guard in HANDLERS {
        let double = Double::new();
        for id in ["1", "1", "2"] {
            let id = format!("{guard}-{id}");
            let mut tx = pool.begin().await.unwrap();
            let _ = deliver(&mut tx, guard, &id, &double).await.unwrap();
            tx.commit().await.unwrap();
        }
        let open = Open::start(&other, guard, guard, Act::Hold).await;
        let mut tx = pool.begin().await.unwrap();
        let said = deliver(&mut tx, guard, guard, &double).await.unwrap_err();
        assert!(is_in_flight(&said), "{said}");
        tx.rollback().await.unwrap();
        open.end().await.unwrap().processed().unwrap();

        let mut first = other.begin().await.unwrap();
        let _ = patient(&mut first, guard).await.unwrap();
        let waiting = {
            let pool = pool.clone();
            tokio::spawn(async move { transact!(&pool, tx => patient(tx, guard)).await })
        };
        db.until_waiting(1).await;
        first.commit().await.unwrap();
        assert_eq!(waiting.await.unwrap().unwrap(), Outcome::Duplicate);
    }
}

async fn transact_tries_until_the_first_has_ended<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let first = Open::start(&pool, "verified", "1", Act::Hold).await;
    let (double, other) = (Arc::new(Double::new()), pool.clone());
    let second = {
        let double = Arc::clone(&double);
        tokio::spawn(async move {
            let attempts = Attempts::on(&other).attempts(200);
            transact!(attempts, tx => verified(tx, "1", &double)).await
        })
    };
    first.end().await.unwrap().processed().unwrap();
    assert_eq!(second.await.unwrap().unwrap(), Outcome::Duplicate);
    assert_eq!(double.runs(), 0);
}

async fn of_many_copies_one_runs_and_none_waits<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    let pool = db.prepared(8).await;
    for guard in GUARDS {
        let first = Open::start(&pool, guard, guard, Act::Hold).await;
        let mut copies = tokio::task::JoinSet::new();
        for _ in 0..7 {
            let pool = pool.clone();
            copies.spawn(async move {
                let mut tx = pool.begin().await.unwrap();
                let said = deliver(&mut tx, guard, guard, &Double::new()).await;
                tx.rollback().await.unwrap();
                said
            });
        }
        // All have their answer while the first is open.
        for said in copies.join_all().await {
            assert!(is_in_flight(&said.unwrap_err()));
        }
        first.end().await.unwrap().processed().unwrap();
        assert_eq!(db.stored(guard).await, (1, 1));
    }
}

async fn a_delivery_under_an_earlier_name_is_in_flight<DB: Engine + ManyWriters>(db: &Fresh<DB>) {
    let pool = db.prepared(3).await;
    for (first, second) in [
        ("verified", "renamed"),
        ("renamed", "verified"),
        ("under_savepoint", "renamed"),
        ("renamed", "under_savepoint"),
    ] {
        let id = format!("{first}-{second}").leak();
        let open = Open::start(&pool, first, id, Act::HoldAndRefuse).await;
        let double = Double::new();
        let mut tx = pool.begin().await.unwrap();
        let said = deliver(&mut tx, second, id, &double).await.unwrap_err();
        assert!(is_in_flight(&said), "{first}, {second}: {said}");
        tx.rollback().await.unwrap();
        assert!(matches!(open.end().await, Err(AppError::Refused)));

        let open = Open::start(&pool, first, id, Act::Hold).await;
        let mut tx = pool.begin().await.unwrap();
        let said = deliver(&mut tx, second, id, &double).await.unwrap_err();
        assert!(is_in_flight(&said), "{first}, {second}: {said}");
        tx.rollback().await.unwrap();
        assert_eq!(open.end().await.unwrap(), Outcome::Processed(()));

        let mut tx = pool.begin().await.unwrap();
        let second = deliver(&mut tx, second, id, &double).await.unwrap();
        assert_eq!(second, Outcome::Duplicate);
        tx.commit().await.unwrap();
        assert_eq!(double.runs(), 0);
    }
}

/// The copy that is open has met the earlier name, and takes its own back.
async fn a_committed_earlier_name_is_a_duplicate_while_another_copy_is_open<
    DB: Engine + ManyWriters,
>(
    db: &Fresh<DB>,
) {
    #[idempotent(key(id), scope = "paid", replay)]
    async fn paid<DB: Engine>(tx: &mut Transaction<'_, DB>, id: u32) -> Result<u32, AppError> {
        let _ = tx;
        Ok(id * 10)
    }

    #[idempotent(key(id), scope = "now.paid", was("paid"), replay, busy = "fail")]
    async fn now_paid<DB: Engine + ManyWriters>(
        tx: &mut Transaction<'_, DB>,
        id: u32,
    ) -> Result<u32, AppError> {
        let _ = tx;
        Ok(id)
    }

    let pool = db.prepared(2).await;
    let double = Double::new();
    let mut tx = pool.begin().await.unwrap();
    let _ = deliver(&mut tx, "verified", "1", &double).await.unwrap();
    let _ = paid(&mut tx, 7).await.unwrap();
    tx.commit().await.unwrap();

    let mut open = pool.begin().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    for tx in [&mut open, &mut tx] {
        let copy = deliver(tx, "renamed", "1", &double).await.unwrap();
        assert_eq!(copy, Outcome::Duplicate);
        assert_eq!(now_paid(tx, 7).await.unwrap(), Replay::Replayed(70));
    }
    open.commit().await.unwrap();
    tx.commit().await.unwrap();
}
