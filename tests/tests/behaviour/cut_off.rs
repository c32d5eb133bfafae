//! Handlers that are dropped half-way by a timeout, a shutdown or an abort; and
//! what is used afterwards: the pool, the caller's transaction.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::{Outcome, transact};
use idempotent_tests::{
    Act, AppError, CutAt, Double, Engine, Fresh, Guarded, Kind, Recorder, Savepoint, Statement,
    at_every_poll,
};
use sqlx::pool::PoolOptions;
use sqlx::{Connection as _, Pool, Transaction};
use tokio::sync::{Notify, Semaphore};

with_every_guard!(
    after_a_cut_transact_no_later_write_on_the_pool_vanishes,
    a_timeout_around_transact_leaves_nothing,
    an_aborted_task_leaves_nothing,
    a_shutdown_branch_leaves_nothing,
    a_nested_begin_cut_off_inside_the_handler_is_never_a_success_without_its_effect,
    transact_cut_off_while_a_statement_is_prepared_leaves_a_sound_pool,
);

mod caller_commits {
    use super::{Engine, Fresh, a_caller_that_commits_after_a_timeout};

    on_every_database!(savepoint_after_a_timeout);

    async fn savepoint_after_a_timeout<DB: Engine>(db: &Fresh<DB>) {
        a_caller_that_commits_after_a_timeout(db).await;
    }
}

mod caller_goes_on {
    use super::{Engine, Fresh, a_caller_that_commits_after_a_cut_begin};

    on_servers!(savepoint_takes_back_what_was_written_after_a_nested_begin_was_cut_off);

    async fn savepoint_takes_back_what_was_written_after_a_nested_begin_was_cut_off<DB: Engine>(
        db: &Fresh<DB>,
    ) {
        a_caller_that_commits_after_a_cut_begin(db).await;
    }
}

/// Both or none; then the message comes again, and in the end both are there
/// once.
async fn assert_both_or_none<DB: Engine, G: Recorder>(db: &Fresh<DB>, pool: &Pool<DB>, id: &str) {
    let stored = db.stored(id).await;
    assert!(matches!(stored, (0, 0) | (1, 1)), "{id}: {stored:?}");
    let double = Double::new();
    let outcome = transact!(pool, tx => G::record(tx, id, &double))
        .await
        .unwrap_or_else(|error| panic!("{id}: {error:?}"));
    assert_eq!(outcome.is_duplicate(), double.runs() == 0, "{id}");
    assert_eq!(db.stored(id).await, (1, 1), "{id}: after the redelivery");
}

async fn after_a_cut_transact_no_later_write_on_the_pool_vanishes<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    db.prepare().await;
    for ping in [true, false] {
        let options = PoolOptions::new()
            .max_connections(1)
            .test_before_acquire(ping);
        let pool = db.pool_with(options).await;
        at_every_poll(async |id, polls, moment| {
            let id = format!("{id}-{ping}");
            let double = Double::new();
            let delivery = async { transact!(&pool, tx => G::record(tx, &id, &double)).await };
            let finished = CutAt::new(polls, moment, delivery).await.is_some();
            let mut conn = pool.acquire().await.unwrap();
            DB::run(
                &mut conn,
                &format!("INSERT INTO letters (id) VALUES ('{id}')"),
            )
            .await
            .unwrap();
            drop(conn);
            let letters = format!("SELECT count(*) FROM letters WHERE id = '{id}'");
            assert_eq!(db.number(&letters).await, 1, "{id}: a later write");
            finished
        })
        .await;
    }
}

async fn a_timeout_around_transact_leaves_nothing<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let double = Double::planned([Act::Hang]);
    let delivery = async { transact!(&pool, tx => G::record(tx, "1", &double)).await };
    let outcome = tokio::time::timeout(Duration::from_millis(200), delivery).await;
    assert!(outcome.is_err(), "{outcome:?}");
    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored("1").await, (0, 0));
    assert_both_or_none::<DB, G>(db, &pool, "1").await;
}

async fn a_caller_that_commits_after_a_timeout<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let double = Double::planned([Act::Hang]);
    let mut tx = pool.begin().await.unwrap();
    let delivery = Savepoint::record(&mut tx, "1", &double);
    let outcome = tokio::time::timeout(Duration::from_millis(200), delivery).await;
    assert!(outcome.is_err(), "{outcome:?}");
    assert_eq!(double.runs(), 1);
    tx.commit().await.unwrap();
    assert_eq!(db.stored("1").await, (0, 0));
    assert_both_or_none::<DB, Savepoint>(db, &pool, "1").await;
}

async fn an_aborted_task_leaves_nothing<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let double = Double::planned([Act::Hold(Arc::clone(&here), go)]);
    let task = tokio::spawn({
        let pool = pool.clone();
        async move { transact!(&pool, tx => G::record(tx, "1", &double)).await }
    });
    here.notified().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(db.stored("1").await, (0, 0));
    assert_both_or_none::<DB, G>(db, &pool, "1").await;
}

async fn a_shutdown_branch_leaves_nothing<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let double = Double::planned([Act::Hold(Arc::clone(&here), go)]);
    tokio::select! {
        outcome = async { transact!(&pool, tx => G::record(tx, "1", &double)).await } => {
            panic!("{outcome:?}");
        }
        () = here.notified() => {}
    }
    assert_eq!(db.stored("1").await, (0, 0));
    assert_both_or_none::<DB, G>(db, &pool, "1").await;
}

/// sqlx rolls back one level too many when a nested `begin` is dropped before
/// it is done: what the handler goes on to write may end up anywhere.
async fn a_nested_begin_cut_off_inside_the_handler_is_never_a_success_without_its_effect<
    DB: Engine,
    G: Guarded,
>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(2).await;
    at_every_poll(async |id, polls, moment| {
        let mut begun = false;
        let mut tx = pool.begin().await.unwrap();
        let outcome = G::deliver(&mut tx, &id, async |tx: &mut Transaction<'_, DB>| {
            let nested = async {
                let nested = sqlx::Connection::begin(&mut **tx).await?;
                nested.commit().await
            };
            begun = CutAt::new(polls, moment, nested)
                .await
                .transpose()?
                .is_some();
            DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
            Ok(())
        })
        .await;
        if outcome.is_ok() {
            tx.commit().await.unwrap();
            assert_eq!(db.stored(&id).await, (1, 1), "{id}: a success");
        } else {
            drop(tx);
            let (keys, _) = db.stored(&id).await;
            assert_eq!(keys, 0, "{id}: the message can come again");
        }
        begun
    })
    .await;
}

/// Where a statement is prepared, the server sends more than one answer: a
/// connection that has read one of them is of no use to anybody.
async fn transact_cut_off_while_a_statement_is_prepared_leaves_a_sound_pool<
    DB: Engine,
    G: Guarded,
>(
    db: &Fresh<DB>,
) {
    db.prepare().await;
    for ping in [true, false] {
        let options = PoolOptions::new()
            .max_connections(1)
            .test_before_acquire(ping);
        let pool = db.pool_with(options).await;
        for statement in Statement::PREPARED {
            at_every_poll(async |id, polls, moment| {
                let id = &format!("{id}-{ping}-{statement:?}");
                let body = async |tx: &mut Transaction<'_, DB>| {
                    DB::write(tx, id, statement).await?;
                    Ok(())
                };
                let delivery = async { transact!(&pool, tx => G::deliver(tx, id, body)).await };
                let outcome = CutAt::new(polls, moment, delivery).await;
                let finished = outcome.is_some();
                if let Some(outcome) = outcome {
                    assert!(
                        matches!(outcome, Ok(Outcome::Processed(()))),
                        "{id}: {outcome:?}"
                    );
                }
                a_later_write_stays(db, &pool, id).await;
                // What was cut off may still be committing.
                db.until_idle().await;
                assert_both_or_none::<DB, G>(db, &pool, id).await;
                finished
            })
            .await;
        }
    }
}

async fn a_later_write_stays<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>, id: &str) {
    let later = async {
        let mut conn = pool.acquire().await?;
        let write = format!("INSERT INTO letters (id) VALUES ('later {id}')");
        DB::run(&mut conn, &write).await
    };
    let later = tokio::time::timeout(Duration::from_secs(10), later).await;
    later
        .unwrap_or_else(|_| panic!("{id}: the pool is stuck"))
        .unwrap_or_else(|error| panic!("{id}: {error}"));
    let letters = format!("SELECT count(*) FROM letters WHERE id = 'later {id}'");
    assert_eq!(db.number(&letters).await, 1, "{id}: a later write");
}

/// A timeout of the body's cuts its nested `begin` off; it writes on, and
/// returns. The caller commits a dead letter.
///
/// On Postgres sqlx rolls back two levels: the guard's savepoint, and the
/// caller's transaction. What is written since then commits by itself, whoever
/// proves or undoes what: that is a lost transaction, also under an error of the
/// handler's own.
async fn a_caller_that_commits_after_a_cut_begin<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for refuses in [true, false] {
        at_every_poll(async |id, polls, moment| {
            let id = format!("{id}-{refuses}");
            let since = format!("since {id}");
            let mut begun = false;
            let mut tx = pool.begin().await.unwrap();
            let outcome = Savepoint::deliver(&mut tx, &id, async |tx: &mut Transaction<'_, DB>| {
                DB::write(tx, &id, Statement::Cached).await?;
                if let Some(nested) = CutAt::new(polls, moment, tx.begin()).await {
                    nested?.commit().await?;
                    begun = true;
                }
                DB::write(tx, &since, Statement::New).await?;
                DB::write(tx, &since, Statement::Text).await?;
                if refuses {
                    return Err(AppError::Refused);
                }
                Ok(())
            })
            .await;
            let is_gone = !tx.is_in_transaction();
            assert!(!is_gone || DB::KIND == Kind::Postgres && !begun, "{id}");
            let letter = format!("INSERT INTO letters (id) VALUES ('{id}')");
            DB::run(&mut tx, &letter).await.unwrap();
            tx.commit().await.unwrap();

            let is_stored = match outcome {
                Ok(Outcome::Processed(())) => true,
                Err(AppError::Refused) if !is_gone => false,
                Err(error) if error.is_transaction_lost() && !begun => false,
                outcome => panic!("{id}: {outcome:?}"),
            };
            assert!(begun || !is_stored, "{id}: a success");
            let expected = (i64::from(is_stored), i64::from(is_stored));
            assert_eq!(db.stored(&id).await, expected, "{id}");
            let written_since = if is_stored || is_gone { 2 } else { 0 };
            assert_eq!(
                db.stored(&since).await,
                (0, written_since),
                "{id}: written since the cut"
            );
            let letters = format!("SELECT count(*) FROM letters WHERE id = '{id}'");
            assert_eq!(db.number(&letters).await, 1, "{id}: the dead letter");
            a_later_write_stays(db, &pool, &id).await;
            begun
        })
        .await;
    }
}
