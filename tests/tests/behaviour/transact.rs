//! `transact!`: what it begins with, what it retries, what it leaves behind.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use idempotent_runtime::{Attempts, Error, Isolation, Outcome, Store, idempotent, transact};
use idempotent_tests::{
    Act, AppError, Double, Engine, Fresh, Guarded, Kind, Recorder, Verify, in_fresh_database, until,
};
use sqlx::pool::PoolOptions;
use sqlx::{Pool, Sqlite, Transaction};

with_every_guard!(
    two_handlers_of_one_transaction_are_stored_together_or_not_at_all,
    stale_connections_are_replaced_and_nothing_runs_twice,
);

on_every_database!(
    retryable_errors_are_retried_until_the_attempts_are_used_up,
    once_runs_once,
    the_hooks_of_the_pool_run,
    it_spawns_with_borrowed_messages_and_in_generic_code,
    an_exhausted_pool_is_an_error_to_redeliver,
);

mod options {
    use super::{
        isolation_reaches, lock_timeout_bounds, no_leak, statement_timeout_bounds, timeouts_reach,
    };
    use idempotent_tests::{Engine, Fresh};

    on_servers!(
        the_isolation_level_reaches_the_server,
        the_timeouts_reach_the_server,
        nothing_leaks_into_the_pool,
        a_lock_timeout_bounds_the_wait_for_another_delivery,
        a_statement_timeout_ends_a_statement_and_is_not_retried,
    );

    async fn the_isolation_level_reaches_the_server<DB: Engine>(db: &Fresh<DB>) {
        isolation_reaches(db).await;
    }

    async fn the_timeouts_reach_the_server<DB: Engine>(db: &Fresh<DB>) {
        timeouts_reach(db).await;
    }

    async fn nothing_leaks_into_the_pool<DB: Engine>(db: &Fresh<DB>) {
        no_leak(db).await;
    }

    async fn a_lock_timeout_bounds_the_wait_for_another_delivery<DB: Engine>(db: &Fresh<DB>) {
        lock_timeout_bounds(db).await;
    }

    async fn a_statement_timeout_ends_a_statement_and_is_not_retried<DB: Engine>(db: &Fresh<DB>) {
        statement_timeout_bounds(db).await;
    }
}

async fn two_handlers_of_one_transaction_are_stored_together_or_not_at_all<
    DB: Engine,
    G: Guarded,
>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(2).await;
    let (first, second) = (Double::new(), Double::planned([Act::Refuse]));
    let deliver = async || {
        transact!(&pool, tx => G::record(tx, "a", &first), G::record(tx, "b", &second)).await
    };
    let failed = deliver().await;
    assert!(matches!(failed, Err(AppError::Refused)), "{failed:?}");
    assert_eq!(
        (db.stored("a").await, db.stored("b").await),
        ((0, 0), (0, 0))
    );

    let outcomes = deliver().await.unwrap();
    assert_eq!(outcomes, (Outcome::Processed(()), Outcome::Processed(())));
    assert_eq!(
        (db.stored("a").await, db.stored("b").await),
        ((1, 1), (1, 1))
    );
    assert_eq!((first.runs(), second.runs()), (2, 2));

    let outcomes = deliver().await.unwrap();
    assert_eq!(outcomes, (Outcome::Duplicate, Outcome::Duplicate));
}

async fn stale_connections_are_replaced_and_nothing_runs_twice<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    db.prepare().await;
    for ping in [true, false] {
        let id = format!("ping-{ping}");
        let options = PoolOptions::new()
            .max_connections(3)
            .test_before_acquire(ping);
        let pool = db.pool_with(options).await;
        let mut sessions = Vec::new();
        let mut conns = Vec::new();
        for _ in 0..3 {
            let mut conn = pool.acquire().await.unwrap();
            if let Some(session) = DB::SESSION {
                sessions.push(DB::number(&mut conn, session).await.unwrap());
            }
            conns.push(conn);
        }
        drop(conns);
        until("all are idle", async || pool.num_idle() == 3).await;
        for session in sessions {
            db.run(&DB::kill(session)).await;
        }
        let double = Double::new();
        // One attempt: replacing a connection is none.
        let attempts = Attempts::on(&pool).attempts(1);
        let outcome = transact!(attempts, tx => G::record(tx, &id, &double))
            .await
            .unwrap();
        assert_eq!(outcome, Outcome::Processed(()), "{id}");
        assert_eq!(double.runs(), 1, "{id}");
        assert_eq!(db.stored(&id).await, (1, 1), "{id}");
    }
}

/// Fails as if the connection were cut.
#[idempotent(key(id), skip(runs, failures), scope = "failing")]
async fn failing<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    runs: &AtomicUsize,
    failures: usize,
) -> Result<(), AppError> {
    DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
    if runs.fetch_add(1, Ordering::SeqCst) < failures {
        return Err(sqlx::Error::Io(io::ErrorKind::ConnectionReset.into()).into());
    }
    Ok(())
}

async fn retryable_errors_are_retried_until_the_attempts_are_used_up<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for (id, attempts, failures, runs_expected, stored) in [
        (1, 5, 4, 5, (1, 1)),
        (2, 3, 9, 3, (0, 0)),
        (3, 1, 1, 1, (0, 0)),
        (4, 0, 1, 1, (0, 0)),
    ] {
        let runs = AtomicUsize::new(0);
        let attempts = Attempts::on(&pool).attempts(attempts);
        let outcome = transact!(attempts, tx => failing(tx, id, &runs, failures)).await;
        assert_eq!(runs.load(Ordering::SeqCst), runs_expected, "{id}");
        assert_eq!(outcome.is_ok(), stored == (1, 1), "{id}");
        assert_eq!(db.stored(&id.to_string()).await, stored, "{id}");
    }
}

struct Message {
    id: String,
}

#[idempotent(key(message.id), skip(double), scope = "by-value")]
async fn by_value<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    message: Message,
    double: &Double,
) -> Result<String, AppError> {
    double.run(tx, &message.id).await?;
    Ok(message.id)
}

async fn once_runs_once<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let message = Message { id: "1".to_owned() };
    let double = Double::new();
    let outcome = transact!(once: &pool, tx => by_value(tx, message, &double))
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Processed("1".to_owned()));
    assert_eq!(db.stored("1").await, (1, 1));

    let runs = AtomicUsize::new(0);
    let outcome = transact!(once: &pool, tx => failing(tx, 2, &runs, 1)).await;
    assert!(matches!(outcome, Err(AppError::Database(_))), "{outcome:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

async fn the_hooks_of_the_pool_run<DB: Engine>(db: &Fresh<DB>) {
    db.prepare().await;
    let (acquired, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let options = PoolOptions::new()
        .max_connections(1)
        .before_acquire({
            let acquired = Arc::clone(&acquired);
            move |_, _| {
                acquired.fetch_add(1, Ordering::SeqCst);
                Box::pin(async { Ok(true) })
            }
        })
        .after_release({
            let released = Arc::clone(&released);
            move |_, _| {
                released.fetch_add(1, Ordering::SeqCst);
                Box::pin(async { Ok(true) })
            }
        });
    let pool = db.pool_with(options).await;
    let double = Double::new();
    let (before, _) = (
        acquired.load(Ordering::SeqCst),
        released.load(Ordering::SeqCst),
    );
    for id in ["1", "2"] {
        let outcome = transact!(&pool, tx => Verify::record(tx, id, &double))
            .await
            .unwrap();
        assert_eq!(outcome, Outcome::Processed(()));
    }
    assert_eq!(acquired.load(Ordering::SeqCst) - before, 2);
    until("it is released", async || {
        released.load(Ordering::SeqCst) >= 2
    })
    .await;
}

#[derive(Clone)]
struct Shared {
    id: Arc<str>,
}

#[idempotent(key(message.id), scope = "spawned")]
async fn spawned<DB: Store>(tx: &mut Transaction<'_, DB>, message: &Shared) -> Result<(), Error> {
    let _ = tx;
    Ok(())
}

/// A consumer over any database, that borrows what is inside its task.
fn run<DB: Store>(
    pool: Pool<DB>,
    message: Shared,
) -> tokio::task::JoinHandle<Result<Outcome<()>, Error>> {
    tokio::spawn(async move {
        let borrowed = &message;
        transact!(&pool, tx => spawned(tx, borrowed)).await
    })
}

async fn it_spawns_with_borrowed_messages_and_in_generic_code<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let message = Shared { id: "1".into() };
    let first = run(pool.clone(), message.clone()).await.unwrap().unwrap();
    let second = run(pool, message).await.unwrap().unwrap();
    assert_eq!(
        (first, second),
        (Outcome::Processed(()), Outcome::Duplicate)
    );
}

async fn an_exhausted_pool_is_an_error_to_redeliver<DB: Engine>(db: &Fresh<DB>) {
    db.prepare().await;
    let pool = PoolOptions::<DB>::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(100))
        .connect_with(db.options.clone())
        .await
        .unwrap();
    let held = pool.acquire().await.unwrap();
    let double = Double::new();
    let error = transact!(&pool, tx => Verify::record(tx, "1", &double))
        .await
        .unwrap_err();
    assert_eq!(
        idempotent_runtime::disposition(&error),
        idempotent_runtime::Disposition::Redeliver
    );
    assert_eq!(double.runs(), 0);
    drop(held);
    let outcome = transact!(&pool, tx => Verify::record(tx, "1", &double))
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::Processed(()));
}

/// Asks the server what the session is set to.
#[idempotent(key(id), skip(questions), scope = "asking")]
async fn asking<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    questions: &[&str],
) -> Result<Vec<String>, AppError> {
    let mut answers = Vec::new();
    for question in questions {
        answers.extend(DB::texts(tx, question).await?);
    }
    Ok(answers)
}

async fn isolation_reaches<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for (isolation, name) in [
        (Isolation::ReadCommitted, "read committed"),
        (Isolation::RepeatableRead, "repeatable read"),
        (Isolation::Serializable, "serializable"),
    ] {
        let attempts = Attempts::on(&pool).isolation(isolation);
        if DB::KIND == Kind::Postgres {
            let outcome =
                transact!(attempts, tx => asking(tx, name, &["SHOW transaction_isolation"])).await;
            assert_eq!(outcome.unwrap().processed().unwrap(), [name]);
        } else {
            // The server does not say, but it shows.
            let outcome = transact!(attempts, tx => sees_news(tx, name, db)).await;
            let sees = outcome.unwrap().processed().unwrap();
            assert_eq!(sees, isolation == Isolation::ReadCommitted, "{name}");
        }
    }
}

/// Whether a second read sees what was committed after the first one; nobody
/// can commit between two serializable ones.
#[idempotent(key(id), skip(db), scope = "reading")]
async fn sees_news<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: &str,
    db: &Fresh<DB>,
) -> Result<bool, AppError> {
    let count = "SELECT count(*) FROM letters";
    let before = DB::number(tx, count).await?;
    let write =
        "SET SESSION innodb_lock_wait_timeout = 1; INSERT INTO letters (id) VALUES ('news')";
    let mut conn = db.observer.acquire().await?;
    let written = DB::run(&mut conn, write).await;
    assert_eq!(written.is_err(), id == "serializable", "{written:?}");
    Ok(DB::number(tx, count).await? > before)
}

/// Lock timeout, statement timeout.
fn settings(kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::Postgres => ["SHOW lock_timeout", "SHOW statement_timeout"],
        _ => [
            "SELECT CAST(@@innodb_lock_wait_timeout AS CHAR CHARACTER SET utf8mb4)",
            "SELECT CAST(@@max_statement_time AS CHAR CHARACTER SET utf8mb4)",
        ],
    }
}

async fn timeouts_reach<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let questions = settings(DB::KIND);
    let attempts = Attempts::on(&pool)
        .lock_timeout(Duration::from_millis(2_500))
        .statement_timeout(Duration::from_millis(7_250));
    let outcome = transact!(attempts, tx => asking(tx, "1", &questions))
        .await
        .unwrap();
    let expected = match DB::KIND {
        Kind::Postgres => ["2500ms", "7250ms"],
        _ => ["3", "7.250000"],
    };
    assert_eq!(outcome.processed().unwrap(), expected);

    // Zero means as short as can be, not off.
    let attempts = Attempts::on(&pool)
        .lock_timeout(Duration::ZERO)
        .statement_timeout(Duration::ZERO);
    let outcome = transact!(attempts, tx => asking(tx, "2", &questions[..1])).await;
    if let Ok(outcome) = outcome {
        let expected = if DB::KIND == Kind::Postgres {
            "1ms"
        } else {
            "1"
        };
        assert_eq!(outcome.processed().unwrap(), [expected]);
    }
}

async fn no_leak<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let mut questions = settings(DB::KIND).to_vec();
    questions.push(match DB::KIND {
        Kind::Postgres => "SHOW default_transaction_isolation",
        _ => "SELECT CONVERT(@@tx_isolation USING utf8mb4)",
    });
    let ask = async || {
        let mut conn = pool.acquire().await.unwrap();
        let mut answers = Vec::new();
        for question in &questions {
            answers.extend(DB::texts(&mut conn, question).await.unwrap());
        }
        answers
    };
    let before = ask().await;
    let attempts = || {
        Attempts::on(&pool)
            .isolation(Isolation::Serializable)
            .lock_timeout(Duration::from_secs(2))
            .statement_timeout(Duration::from_secs(7))
            .attempts(1)
    };

    let double = Double::planned([Act::Refuse, Act::Hang]);
    let refused = transact!(attempts(), tx => Verify::record(tx, "1", &double)).await;
    assert!(matches!(refused, Err(AppError::Refused)));
    assert_eq!(ask().await, before, "after an error");

    let hanging = async { transact!(attempts(), tx => Verify::record(tx, "1", &double)).await };
    assert!(
        tokio::time::timeout(Duration::from_millis(100), hanging)
            .await
            .is_err()
    );
    assert_eq!(double.runs(), 2);
    assert_eq!(ask().await, before, "after a cut");

    let first = transact!(attempts(), tx => Verify::record(tx, "1", &double))
        .await
        .unwrap();
    assert_eq!(first, Outcome::Processed(()));
    assert_eq!(ask().await, before, "after a success");
    let again = transact!(attempts(), tx => Verify::record(tx, "1", &double))
        .await
        .unwrap();
    assert_eq!(again, Outcome::Duplicate);
    assert_eq!(ask().await, before, "after a duplicate");
}

async fn lock_timeout_bounds<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let double = Double::new();
    let mut first = pool.begin().await.unwrap();
    let outcome = Verify::record(&mut first, "1", &double).await.unwrap();
    assert_eq!(outcome, Outcome::Processed(()));

    let started = Instant::now();
    let attempts = Attempts::on(&pool)
        .lock_timeout(Duration::from_millis(300))
        .attempts(1);
    let error = transact!(attempts, tx => Verify::record(tx, "1", &double))
        .await
        .unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(10));

    // Retried until the first delivery is done.
    let attempts = Attempts::on(&pool)
        .lock_timeout(Duration::from_millis(300))
        .attempts(50);
    let second = async { transact!(attempts, tx => Verify::record(tx, "1", &double)).await };
    let commit = async {
        db.until_waiting(1).await;
        first.commit().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(second, commit);
    assert_eq!(outcome.unwrap(), Outcome::Duplicate);
    assert_eq!(double.runs(), 1);
}

#[idempotent(key(id), skip(runs), scope = "sleeping")]
async fn sleeping<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    id: i64,
    runs: &AtomicUsize,
) -> Result<(), AppError> {
    runs.fetch_add(1, Ordering::SeqCst);
    let sleep = match DB::KIND {
        Kind::Postgres => "SELECT pg_sleep(30)",
        _ => {
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
             SELECT count(*) FROM n AS a, n AS b, n AS c, n AS d"
        }
    };
    DB::run(tx, sleep).await?;
    Ok(())
}

async fn statement_timeout_bounds<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let runs = AtomicUsize::new(0);
    let started = Instant::now();
    let attempts = Attempts::on(&pool).statement_timeout(Duration::from_millis(300));
    let outcome = transact!(attempts, tx => sleeping(tx, 1, &runs)).await;
    assert!(matches!(outcome, Err(AppError::Database(_))), "{outcome:?}");
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(
        runs.load(Ordering::SeqCst),
        1,
        "it would take as long again"
    );
    assert_eq!(db.rows("processed_messages").await, 0);
}

#[test]
fn sqlite_says_which_options_it_does_not_have() {
    in_fresh_database::<Sqlite>(async |db: &Fresh<Sqlite>| {
        let pool = db.prepared(1).await;
        let double = Double::new();
        let second = Duration::from_secs(1);
        for (attempts, word) in [
            (Attempts::on(&pool).lock_timeout(second), "lock timeout"),
            (
                Attempts::on(&pool).statement_timeout(second),
                "statement timeout",
            ),
        ] {
            let error = transact!(attempts, tx => Verify::record(tx, "1", &double))
                .await
                .unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
            assert!(!error.is_retryable());
        }
        assert_eq!(double.runs(), 0);
        let attempts = Attempts::on(&pool).isolation(Isolation::Serializable);
        let outcome = transact!(attempts, tx => Verify::record(tx, "1", &double))
            .await
            .unwrap();
        assert_eq!(outcome, Outcome::Processed(()));
    });
}
