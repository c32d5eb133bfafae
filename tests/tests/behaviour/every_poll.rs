//! Every kind of handler, dropped after its first poll, its second, … its last:
//! what holds then, and what is left to the caller.

use idempotent_runtime::{Attempts, Outcome};
use idempotent_tests::{
    AppError, Call, CutAt, Delivery, Engine, Fresh, Kind, Known, at_every_poll, is_full,
};
use sqlx::Pool;
use sqlx::error::DatabaseError;

mod verify {
    on_every_database_under!(
        idempotent_tests::Verify,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod savepoint {
    on_every_database_under!(
        idempotent_tests::Savepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod replayed {
    on_every_database_under!(
        idempotent_tests::Replayed,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod replayed_under_savepoint {
    on_every_database_under!(
        idempotent_tests::ReplayedUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod batched {
    on_every_database_under!(
        idempotent_tests::Batched,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod batched_under_savepoint {
    on_every_database_under!(
        idempotent_tests::BatchedUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod renamed {
    on_every_database_under!(
        idempotent_tests::Renamed,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod renamed_under_savepoint {
    on_every_database_under!(
        idempotent_tests::RenamedUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod busy {
    on_servers_under!(
        idempotent_tests::Busy,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod busy_under_savepoint {
    on_servers_under!(
        idempotent_tests::BusyUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

// On MariaDB a connection on which a statement was being prepared is closed:
// `transact!` does that, the caller must.
mod preparing {
    on_sqlite_under!(
        idempotent_tests::Preparing,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
    on_postgres_under!(
        idempotent_tests::Preparing,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
    on_mariadb_under!(idempotent_tests::Preparing, transact_has_both_or_none);
}

mod preparing_under_savepoint {
    on_sqlite_under!(
        idempotent_tests::PreparingUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
    on_postgres_under!(
        idempotent_tests::PreparingUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
    on_mariadb_under!(
        idempotent_tests::PreparingUnderSavepoint,
        transact_has_both_or_none,
    );
}

/// With statements that are prepared at each use there are the most polls.
async fn pools<DB: Engine>(db: &Fresh<DB>) -> Vec<Pool<DB>> {
    db.prepare().await;
    let mut pools = vec![db.pool_that_prepares_anew(2).await];
    if is_full() {
        pools.push(db.pool(2).await);
    }
    pools
}

fn report(polls: usize, known: Known) {
    eprintln!("dropped at {polls} polls, {known:?} of it known");
}

async fn a_caller_that_drops_the_transaction_has_none<DB: Engine, G: Delivery<DB>>(db: &Fresh<DB>) {
    for (nth, pool) in pools(db).await.iter().enumerate() {
        for &known in G::KNOWN {
            let polls = at_every_poll(async |name, polls, moment| {
                let name = format!("{name}-{nth}-{known:?}");
                let call = Call::<DB, G>::new(db, pool, &name, known).await;
                let mut tx = pool.begin().await.unwrap();
                let outcome = CutAt::new(polls, moment, call.process(&mut tx)).await;
                let finished = outcome.is_some();
                if let Some(outcome) = outcome {
                    assert_eq!(outcome.unwrap().is_duplicate(), known == Known::All);
                    tx.commit().await.unwrap();
                } else {
                    drop(tx);
                }
                let is_processed = call.is_processed().await;
                assert_eq!(is_processed, finished || call.fresh().is_empty(), "{name}");
                call.assert_comes_again(pool).await;
                finished
            })
            .await;
            report(polls, known);
        }
    }
}

/// sqlx gives the answer to a statement that was cut off to the next one, which is
/// not sent then: on MariaDB the claim of a duplicate is answered with an error.
fn is_the_claims_answer<DB: Engine>(error: &sqlx::Error, known: Known) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    DB::KIND == Kind::MariaDb && known == Known::All && code.as_deref() == Some("23000")
}

/// Under `savepoint` nothing is asked of the caller, whose own rows stay.
async fn a_caller_that_commits_has_both_or_none<DB: Engine, G: Delivery<DB>>(db: &Fresh<DB>) {
    for (nth, pool) in pools(db).await.iter().enumerate() {
        for &known in G::KNOWN {
            for letters in [["before", "after"].as_slice(), &["before"]] {
                let polls = at_every_poll(async |name, polls, moment| {
                    let name = format!("{name}-{nth}-{known:?}-{}", letters.len());
                    let call = Call::<DB, G>::new(db, pool, &name, known).await;
                    let write =
                        |letter| format!("INSERT INTO letters (id) VALUES ('{letter} {name}')");
                    let mut tx = pool.begin().await.unwrap();
                    DB::run(&mut tx, &write(letters[0])).await.unwrap();
                    let outcome = CutAt::new(polls, moment, call.process(&mut tx)).await;
                    let finished = outcome.is_some();
                    let committed = async {
                        for letter in &letters[1..] {
                            DB::run(&mut tx, &write(letter)).await?;
                        }
                        tx.commit().await
                    }
                    .await;
                    let expected = match &committed {
                        Ok(()) => letters.len(),
                        Err(error) => {
                            assert!(!finished, "{name}: {error}");
                            assert!(is_the_claims_answer::<DB>(error, known), "{name}: {error}");
                            0
                        }
                    };
                    let written = format!("SELECT count(*) FROM letters WHERE id LIKE '% {name}'");
                    assert_eq!(Ok(db.number(&written).await), expected.try_into(), "{name}");
                    if let Some(outcome) = outcome {
                        assert_eq!(outcome.unwrap().is_duplicate(), known == Known::All);
                        assert!(call.is_processed().await, "{name}");
                    }
                    call.assert_comes_again(pool).await;
                    finished
                })
                .await;
                report(polls, known);
            }
        }
    }
}

/// Under `verify` the caller must roll back when it cuts the handler off. If it
/// commits, there is never an effect without its key; but there are keys without
/// their effects, or without their results, and no redelivery repairs that.
async fn a_caller_that_commits_may_lose_the_message<DB: Engine, G: Delivery<DB>>(db: &Fresh<DB>) {
    for (nth, pool) in pools(db).await.iter().enumerate() {
        for &known in G::KNOWN {
            let mut lost = 0;
            let polls = at_every_poll(async |name, polls, moment| {
                let name = format!("{name}-{nth}-{known:?}");
                let call = Call::<DB, G>::new(db, pool, &name, known).await;
                let mut tx = pool.begin().await.unwrap();
                let outcome = CutAt::new(polls, moment, call.process(&mut tx)).await;
                let committed = tx.commit().await;
                let finished = outcome.is_some();
                if let Some(outcome) = outcome {
                    assert_eq!(outcome.unwrap().is_duplicate(), known == Known::All);
                    committed.unwrap();
                    call.assert_comes_again(pool).await;
                } else if let Err(error) = committed {
                    assert!(is_the_claims_answer::<DB>(&error, known), "{name}: {error}");
                    call.assert_comes_again(pool).await;
                } else {
                    lost += usize::from(is_lost(db, pool, &call).await);
                }
                finished
            })
            .await;
            report(polls, known);
            eprintln!("lost at {lost} of them");
            assert_eq!(lost == 0, known == Known::All, "{known:?}");
        }
    }
}

/// Says whether a message of a call that was cut off and committed has a key,
/// and no effect.
async fn is_lost<DB: Engine, G: Delivery<DB>>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    call: &Call<'_, DB, G>,
) -> bool {
    let mut before = Vec::new();
    for id in call.fresh() {
        before.push(db.stored(id).await);
    }
    let is_claimed = before.iter().all(|&(keys, _)| keys == G::KEYS);
    let is_new = before.iter().all(|&stored| stored == (0, 0));
    assert!(is_claimed || is_new, "keys and effects {before:?}");
    if is_new && !is_claimed {
        call.assert_comes_again(pool).await;
        return false;
    }

    let runs = call.runs();
    match call.transact(Attempts::on(pool)).await {
        Ok(Outcome::Duplicate) => {}
        Err(AppError::Idempotent(error)) if error.is_result_unreadable() => {}
        said => panic!("it has its keys: {said:?}"),
    }
    assert_eq!(call.runs(), runs, "it has its keys");
    let mut is_lost = false;
    for (id, stored) in call.fresh().iter().zip(before) {
        assert_eq!(db.stored(id).await, stored, "{id}");
        let (_, effects) = stored;
        assert!(effects <= 1, "{id}: {effects} effects");
        is_lost |= effects == 0;
    }
    is_lost
}

async fn transact_has_both_or_none<DB: Engine, G: Delivery<DB>>(db: &Fresh<DB>) {
    for (nth, pool) in pools(db).await.iter().enumerate() {
        for &known in G::KNOWN {
            let polls = at_every_poll(async |name, polls, moment| {
                let name = format!("{name}-{nth}-{known:?}");
                let call = Call::<DB, G>::new(db, pool, &name, known).await;
                let outcome = CutAt::new(polls, moment, call.transact(Attempts::on(pool))).await;
                let finished = outcome.is_some();
                if let Some(outcome) = outcome {
                    assert_eq!(outcome.unwrap().is_duplicate(), known == Known::All);
                    assert!(call.is_processed().await, "{name}");
                }
                // A COMMIT that was on its way is for the database to decide.
                db.until_idle().await;
                call.assert_comes_again(pool).await;
                finished
            })
            .await;
            report(polls, known);
        }
    }
}
