//! Two copies at the same moment, and many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::{Attempts, Isolation, Outcome, idempotent, transact};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh, Guarded, is_full};
use sqlx::{Pool, Transaction};
use tokio::sync::{Barrier, Notify, Semaphore};
use tokio::task::JoinSet;

with_every_guard!(
    of_ten_copies_one_runs_and_nine_wait_for_it,
    if_the_first_copy_fails_another_runs,
    of_64_copies_one_runs_at_every_isolation_level,
    opposite_orders_of_two_handlers_end_with_each_message_once,
    fifty_workers_with_duplicates_end_with_each_message_once,
);

mod on_servers {
    use super::{
        deadlock_of_two_keys, deadlock_of_two_rows, killed_copy_hands_over,
        killed_handler_runs_again,
    };
    use idempotent_tests::{Engine, Fresh, Savepoint, Verify};

    on_servers!(
        if_the_first_copys_connection_is_killed_another_runs,
        a_handler_whose_connection_is_killed_runs_again,
        a_deadlock_of_two_keys_is_retried,
        a_deadlock_of_two_rows_is_retried,
    );

    async fn if_the_first_copys_connection_is_killed_another_runs<DB: Engine>(db: &Fresh<DB>) {
        let pool = db.prepared(10).await;
        killed_copy_hands_over::<DB, Verify>(db, &pool, "verify").await;
        killed_copy_hands_over::<DB, Savepoint>(db, &pool, "savepoint").await;
    }

    async fn a_handler_whose_connection_is_killed_runs_again<DB: Engine>(db: &Fresh<DB>) {
        let pool = db.prepared(2).await;
        killed_handler_runs_again::<DB, Verify>(db, &pool, "verify").await;
        killed_handler_runs_again::<DB, Savepoint>(db, &pool, "savepoint").await;
    }

    async fn a_deadlock_of_two_keys_is_retried<DB: Engine>(db: &Fresh<DB>) {
        let pool = db.prepared(4).await;
        deadlock_of_two_keys::<DB, Verify>(db, &pool, "verify").await;
        deadlock_of_two_keys::<DB, Savepoint>(db, &pool, "savepoint").await;
    }

    async fn a_deadlock_of_two_rows_is_retried<DB: Engine>(db: &Fresh<DB>) {
        deadlock_of_two_rows(db).await;
    }
}

/// A message that a second handler claims in the same transaction.
fn other(id: &str) -> String {
    format!("{id}-other")
}

/// Delivers a message many times at once, each in a task of its own.
struct Copies {
    tasks: JoinSet<Result<Outcome<()>, AppError>>,
    finished: Arc<AtomicUsize>,
}

impl Copies {
    fn deliver<DB: Engine, G: Guarded>(
        pool: &Pool<DB>,
        copies: usize,
        id: &'static str,
        double: &Arc<Double>,
        isolation: Option<Isolation>,
    ) -> Self {
        let barrier = Arc::new(Barrier::new(copies));
        let finished = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..copies {
            let (pool, double) = (pool.clone(), Arc::clone(double));
            let (barrier, finished) = (Arc::clone(&barrier), Arc::clone(&finished));
            tasks.spawn(async move {
                barrier.wait().await;
                let mut attempts = Attempts::on(&pool).attempts(30);
                if let Some(isolation) = isolation {
                    attempts = attempts.isolation(isolation);
                }
                let outcome = transact!(attempts, tx => G::record(tx, id, &double)).await;
                finished.fetch_add(1, Ordering::SeqCst);
                outcome
            });
        }
        Self { tasks, finished }
    }

    fn finished(&self) -> usize {
        self.finished.load(Ordering::SeqCst)
    }

    /// Counts `Processed`, `Duplicate` and errors.
    async fn counts(self) -> [usize; 3] {
        let mut counts = [0; 3];
        for outcome in self.tasks.join_all().await {
            counts[match outcome {
                Ok(Outcome::Processed(())) => 0,
                Ok(Outcome::Duplicate) => 1,
                Err(AppError::Refused) => 2,
                Err(error) => panic!("{error:?}"),
            }] += 1;
        }
        counts
    }
}

async fn of_ten_copies_one_runs_and_nine_wait_for_it<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(10).await;
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let double = Arc::new(Double::planned([Act::Hold(
        Arc::clone(&here),
        Arc::clone(&go),
    )]));
    let copies = Copies::deliver::<DB, G>(&pool, 10, "1", &double, None);
    here.notified().await;
    db.until_waiting(9).await;
    assert_eq!(copies.finished(), 0, "the first copy's outcome is open");
    go.add_permits(1);
    assert_eq!(copies.counts().await, [1, 9, 0]);
    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored("1").await, (1, 1));
}

async fn if_the_first_copy_fails_another_runs<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(10).await;
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let plan = [Act::HoldAndRefuse(Arc::clone(&here), Arc::clone(&go))];
    let double = Arc::new(Double::planned(plan));
    let copies = Copies::deliver::<DB, G>(&pool, 10, "1", &double, None);
    here.notified().await;
    db.until_waiting(9).await;
    assert_eq!(copies.finished(), 0, "the first copy's outcome is open");
    go.add_permits(1);
    assert_eq!(copies.counts().await, [1, 8, 1]);
    assert_eq!(double.runs(), 2);
    assert_eq!(db.stored("1").await, (1, 1));
}

async fn killed_copy_hands_over<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    id: &'static str,
) {
    let own = db.pool(1).await;
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let killed = Double::planned([Act::Hold(Arc::clone(&here), Arc::clone(&go))]);
    let double = Arc::new(Double::new());

    let mut tx = own.begin().await.unwrap();
    let session = DB::number(&mut tx, DB::SESSION.unwrap()).await.unwrap();
    let first = async {
        let outcome = G::record(&mut tx, id, &killed).await;
        (outcome, tx.commit().await)
    };
    let rest = async {
        here.notified().await;
        let copies = Copies::deliver::<DB, G>(pool, 9, id, &double, None);
        db.until_waiting(9).await;
        assert_eq!(copies.finished(), 0, "the first copy's outcome is open");
        db.run(&DB::kill(session)).await;
        let counts = copies.counts().await;
        go.add_permits(1);
        counts
    };
    let ((outcome, committed), counts) = tokio::join!(first, rest);

    assert!(
        outcome.is_err() && committed.is_err(),
        "{outcome:?} {committed:?}"
    );
    assert!(outcome.unwrap_err().is_retryable());
    assert_eq!(counts, [1, 8, 0]);
    assert_eq!((killed.runs(), double.runs()), (1, 1));
    assert_eq!(db.stored(id).await, (1, 1));
}

async fn killed_handler_runs_again<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    id: &'static str,
) {
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let double = Double::planned([Act::Hold(Arc::clone(&here), Arc::clone(&go))]);
    let kill = async {
        here.notified().await;
        db.run(&DB::kill(double.session())).await;
        go.add_permits(1);
    };
    let delivery = async { transact!(pool, tx => G::record(tx, id, &double)).await };
    let (outcome, ()) = tokio::join!(delivery, kill);
    assert_eq!(outcome.unwrap(), Outcome::Processed(()));
    assert_eq!(double.runs(), 2, "the first run was killed");
    assert_eq!(db.stored(id).await, (1, 1));
}

async fn of_64_copies_one_runs_at_every_isolation_level<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(20).await;
    for (id, isolation) in [
        ("default", None),
        ("committed", Some(Isolation::ReadCommitted)),
        ("repeatable", Some(Isolation::RepeatableRead)),
        ("serializable", Some(Isolation::Serializable)),
    ] {
        let double = Arc::new(Double::new());
        let copies = Copies::deliver::<DB, G>(&pool, 64, id, &double, isolation);
        assert_eq!(copies.counts().await, [1, 63, 0], "{id}");
        assert_eq!(db.stored(id).await, (1, 1), "{id}");
        // At SERIALIZABLE a run may be rolled back and repeated.
        if isolation != Some(Isolation::Serializable) {
            assert_eq!(double.runs(), 1, "{id}");
        }
    }
}

/// Where the database does not let them meet in a deadlock, they take turns.
async fn opposite_orders_of_two_handlers_end_with_each_message_once<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(8).await;
    let double = Arc::new(Double::new());
    let mut tasks = JoinSet::new();
    for id in 0..40 {
        for is_reversed in [false, true] {
            let (pool, double) = (pool.clone(), Arc::clone(&double));
            tasks.spawn(async move {
                let (mut a, mut b) = (id.to_string(), other(&id.to_string()));
                if is_reversed {
                    std::mem::swap(&mut a, &mut b);
                }
                let attempts = Attempts::on(&pool).attempts(20);
                transact!(attempts, tx => G::record(tx, &a, &double), G::record(tx, &b, &double))
                    .await
                    .unwrap()
            });
        }
    }
    let outcomes = tasks.join_all().await;
    let both = outcomes
        .iter()
        .filter(|outcome| **outcome == (Outcome::Processed(()), Outcome::Processed(())))
        .count();
    assert_eq!(both, 40, "{outcomes:?}");
    assert_eq!(db.rows("effects").await, 80);
    assert_eq!(
        db.number("SELECT count(DISTINCT id) FROM effects").await,
        80
    );
    assert_eq!(db.rows("processed_messages").await, 80);
}

/// Each of two transactions holds one key and asks for the other's.
async fn deadlock_of_two_keys<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    id: &'static str,
) {
    let other = other(id);
    let meet = || (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let [(here_a, go_a), (here_b, go_b)] = [meet(), meet()];
    let a = Double::planned([Act::Hold(Arc::clone(&here_a), Arc::clone(&go_a))]);
    let b = Double::planned([Act::Hold(Arc::clone(&here_b), Arc::clone(&go_b))]);
    let one =
        async { transact!(pool, tx => G::record(tx, id, &a), G::record(tx, &other, &a)).await };
    let two =
        async { transact!(pool, tx => G::record(tx, &other, &b), G::record(tx, id, &b)).await };
    let release = async {
        here_a.notified().await;
        here_b.notified().await;
        go_a.add_permits(1);
        go_b.add_permits(1);
    };
    let (one, two, ()) = tokio::join!(one, two, release);

    let mut outcomes = [one.unwrap(), two.unwrap()];
    outcomes.sort_by_key(|outcome| outcome.0.is_duplicate());
    assert_eq!(
        outcomes,
        [
            (Outcome::Processed(()), Outcome::Processed(())),
            (Outcome::Duplicate, Outcome::Duplicate)
        ]
    );
    assert_eq!(a.runs() + b.runs(), 3, "one of them was the victim");
    assert_eq!(
        (db.stored(id).await, db.stored(&other).await),
        ((1, 1), (1, 1))
    );
}

#[idempotent(key(id), skip(from, to, meeting), scope = "transfer")]
async fn transfer<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    from: i64,
    to: i64,
    meeting: &Barrier,
) -> Result<(), AppError> {
    let change = |account: i64, by: i64| {
        format!("UPDATE accounts SET amount = amount + {by} WHERE id = {account}")
    };
    DB::run(tx, &change(from, -1)).await?;
    // The retry finds nobody to meet.
    let _ = tokio::time::timeout(std::time::Duration::from_millis(500), meeting.wait()).await;
    DB::run(tx, &change(to, 1)).await?;
    Ok(())
}

/// The deadlock is in a statement of the handler's own.
async fn deadlock_of_two_rows<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(4).await;
    let meeting = Barrier::new(2);
    let one = async { transact!(&pool, tx => transfer(tx, 1, 1, 2, &meeting)).await };
    let two = async { transact!(&pool, tx => transfer(tx, 2, 2, 1, &meeting)).await };
    let (one, two) = tokio::join!(one, two);
    assert_eq!(
        (one.unwrap(), two.unwrap()),
        (Outcome::Processed(()), Outcome::Processed(()))
    );
    assert_eq!(
        db.number("SELECT count(*) FROM accounts WHERE amount = 0")
            .await,
        2
    );
    assert_eq!(db.rows("processed_messages").await, 2);
}

/// Consumers without `transact!`, so that every conflict is seen and counted.
async fn fifty_workers_with_duplicates_end_with_each_message_once<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    let messages: u64 = if is_full() { 5_000 } else { 600 };
    let workers = 50;
    let pool = db.prepared(20).await;
    let double = Arc::new(Double::new());
    let conflicts = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for worker in 0..workers {
        let (pool, double, conflicts) = (pool.clone(), Arc::clone(&double), Arc::clone(&conflicts));
        tasks.spawn(async move {
            let mut processed = 0;
            for message in (worker..messages).step_by(50) {
                // Scattered; one in five comes twice.
                let message = if message % 5 == 4 {
                    message - 1
                } else {
                    message
                };
                let id = format!("{:016x}", (message + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                loop {
                    let mut tx = pool.begin().await.unwrap();
                    match G::record(&mut tx, &id, &double).await {
                        Ok(outcome) => {
                            tx.commit().await.unwrap();
                            processed += usize::from(!outcome.is_duplicate());
                            break;
                        }
                        Err(error) if error.is_retryable() => {
                            conflicts.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
            processed
        });
    }
    let processed: usize = tasks.join_all().await.into_iter().sum();
    let distinct = i64::try_from(messages - messages / 5).unwrap();
    assert_eq!(i64::try_from(processed).unwrap(), distinct);
    assert_eq!(db.rows("effects").await, distinct);
    assert_eq!(
        db.number("SELECT count(DISTINCT id) FROM effects").await,
        distinct
    );
    assert_eq!(db.rows("processed_messages").await, distinct);
    let conflicts = conflicts.load(Ordering::SeqCst);
    println!(
        "{:?}, {}: {conflicts} conflicts in {messages} deliveries, {} per 1000",
        DB::KIND,
        G::SCOPE,
        conflicts * 1000 / usize::try_from(messages).unwrap()
    );
}
