//! Handlers that are dropped half-way: by a timeout, by a shutdown, by an
//! abort, and at every single poll.

use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::{Outcome, transact};
use idempotent_tests::{
    Act, AppError, CutAt, Double, Engine, Fresh, Guarded, Kind, Moment, Recorder,
    ReplayedUnderSavepoint, Savepoint, Statement,
};
use sqlx::pool::PoolOptions;
use sqlx::{Connection as _, Pool, Transaction};
use tokio::sync::{Notify, Semaphore};

with_every_guard!(
    a_caller_that_drops_the_transaction_has_both_or_none_at_every_poll,
    transact_cut_at_every_poll_has_both_or_none,
    after_a_cut_transact_no_later_write_on_the_pool_vanishes,
    a_timeout_around_transact_leaves_nothing,
    an_aborted_task_leaves_nothing,
    a_shutdown_branch_leaves_nothing,
    a_nested_begin_cut_off_inside_the_handler_is_never_a_success_without_its_effect,
    transact_cut_off_while_a_statement_is_prepared_leaves_a_sound_pool,
);

mod replayed {
    on_every_database_under!(
        idempotent_tests::Replayed,
        a_caller_that_drops_the_transaction_has_both_or_none_at_every_poll,
        transact_cut_at_every_poll_has_both_or_none,
    );
}

mod replayed_under_savepoint {
    on_every_database_under!(
        idempotent_tests::ReplayedUnderSavepoint,
        a_caller_that_drops_the_transaction_has_both_or_none_at_every_poll,
        transact_cut_at_every_poll_has_both_or_none,
    );
}

mod caller_commits {
    use super::*;

    on_every_database!(
        savepoint_has_both_or_none_at_every_poll,
        savepoint_with_replay_has_both_or_none_at_every_poll,
        savepoint_after_a_timeout,
    );

    async fn savepoint_has_both_or_none_at_every_poll<DB: Engine>(db: &Fresh<DB>) {
        super::a_caller_that_commits_has_both_or_none::<DB, Savepoint>(db).await;
    }

    async fn savepoint_with_replay_has_both_or_none_at_every_poll<DB: Engine>(db: &Fresh<DB>) {
        super::a_caller_that_commits_has_both_or_none::<DB, ReplayedUnderSavepoint>(db).await;
    }

    async fn savepoint_after_a_timeout<DB: Engine>(db: &Fresh<DB>) {
        super::a_caller_that_commits_after_a_timeout(db).await;
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

/// Cuts `deliver` at its first poll, its second, … until it gets through. How
/// many polls are pending is for the wire to say, and none may be, so that it
/// tries again until something was cut.
pub(super) async fn at_every_poll(mut deliver: impl AsyncFnMut(String, u32, Moment) -> bool) {
    for moment in Moment::ALL {
        let mut cuts = 0;
        for round in 0..50 {
            for polls in 1.. {
                assert!(polls < 500, "it never gets through");
                if deliver(format!("{moment:?}-{round}-{polls}"), polls, moment).await {
                    break;
                }
                cuts += 1;
            }
            if cuts > 2 {
                break;
            }
        }
        assert!(cuts > 2, "nothing was cut");
    }
}

async fn a_caller_that_drops_the_transaction_has_both_or_none_at_every_poll<
    DB: Engine,
    G: Recorder,
>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(2).await;
    at_every_poll(async |id, polls, moment| {
        let double = Double::new();
        let mut tx = pool.begin().await.unwrap();
        let outcome = CutAt::new(polls, moment, G::record(&mut tx, &id, &double)).await;
        let finished = outcome.is_some();
        match outcome {
            Some(outcome) => {
                assert!(
                    matches!(outcome, Ok(Outcome::Processed(()))),
                    "{id}: {outcome:?}"
                );
                tx.commit().await.unwrap();
                assert_eq!(db.stored(&id).await, (1, 1), "{id}");
            }
            None => drop(tx),
        }
        assert_both_or_none::<DB, G>(db, &pool, &id).await;
        finished
    })
    .await;
}

/// The caller's own rows share the fate of its transaction. That ends with an
/// error only where the cut came during RELEASE: the savepoint is gone then,
/// and so the roll-back to it, which sqlx has queued, fails.
async fn a_caller_that_commits_has_both_or_none<DB: Engine, G: Recorder>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    for writes_first in [true, false] {
        at_every_poll(async |id, polls, moment| {
            let id = format!("{id}-{writes_first}");
            let double = Double::new();
            let mut tx = pool.begin().await.unwrap();
            let before = format!("INSERT INTO letters (id) VALUES ('before {id}')");
            DB::run(&mut tx, &before).await.unwrap();
            let outcome = CutAt::new(polls, moment, G::record(&mut tx, &id, &double)).await;
            let finished = outcome.is_some();
            let committed = async {
                if writes_first {
                    let after = format!("INSERT INTO letters (id) VALUES ('after {id}')");
                    DB::run(&mut tx, &after).await?;
                }
                tx.commit().await
            }
            .await;
            if let Err(error) = &committed {
                assert!(is_no_such_savepoint(error), "{id}: {error:?}");
                assert!(!finished && double.runs() == 1, "{id}: {error:?}");
                db.until_idle().await;
            }
            let letters =
                format!("SELECT count(*) FROM letters WHERE id IN ('before {id}', 'after {id}')");
            let expected = if committed.is_ok() {
                1 + i64::from(writes_first)
            } else {
                0
            };
            assert_eq!(
                db.number(&letters).await,
                expected,
                "{id}: the caller's own rows"
            );
            if finished {
                assert_eq!(db.stored(&id).await, (1, 1), "{id}");
            }
            assert_both_or_none::<DB, G>(db, &pool, &id).await;
            finished
        })
        .await;
    }
}

fn is_no_such_savepoint(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("3B001" | "42000"))
}

async fn transact_cut_at_every_poll_has_both_or_none<DB: Engine, G: Recorder>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    at_every_poll(async |id, polls, moment| {
        let double = Double::new();
        let delivery = async { transact!(&pool, tx => G::record(tx, &id, &double)).await };
        let outcome = CutAt::new(polls, moment, delivery).await;
        let finished = outcome.is_some();
        if let Some(outcome) = outcome {
            assert!(
                matches!(outcome, Ok(Outcome::Processed(()))),
                "{id}: {outcome:?}"
            );
        }
        // A COMMIT that was on its way is for the database to decide.
        assert_eventually_both_or_none::<DB, G>(db, &pool, &id).await;
        finished
    })
    .await;
}

/// As above, but what was cut off may still be committing.
async fn assert_eventually_both_or_none<DB: Engine, G: Recorder>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    id: &str,
) {
    db.until_idle().await;
    assert_both_or_none::<DB, G>(db, pool, id).await;
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
                assert_eventually_both_or_none::<DB, G>(db, &pool, id).await;
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
