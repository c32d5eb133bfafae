//! What a caller makes of a handler that it has cut off.

use idempotent_runtime::{Attempts, Outcome};
use idempotent_tests::{AppError, Call, Delivery, Engine, Fresh, Kind};
use sqlx::Pool;
use sqlx::error::DatabaseError;

use super::calls;

pub(super) async fn a_caller_that_drops_the_transaction_has_none<DB: Engine, G: Delivery<DB>>(
    db: &Fresh<DB>,
) {
    db.prepare().await;
    calls::<DB, G>(db, "", async |call, pool, cut| {
        let mut tx = pool.begin().await.unwrap();
        let outcome = cut.off(call.process(&mut tx)).await;
        let finished = outcome.is_some();
        if let Some(outcome) = outcome {
            call.assert_outcome(outcome);
            tx.commit().await.unwrap();
        } else {
            drop(tx);
        }
        let expected = finished || call.fresh().is_empty();
        assert_eq!(call.is_processed().await, expected, "{}", call.name());
        call.assert_comes_again(pool).await;
        finished
    })
    .await;
}

pub(super) async fn transact_has_both_or_none<DB: Engine, G: Delivery<DB>>(db: &Fresh<DB>) {
    db.prepare().await;
    calls::<DB, G>(db, "", async |call, pool, cut| {
        let outcome = cut.off(call.transact(Attempts::on(pool))).await;
        let finished = outcome.is_some();
        if let Some(outcome) = outcome {
            call.assert_outcome(outcome);
            assert!(call.is_processed().await, "{}", call.name());
        }
        // A COMMIT that was on its way is for the database to decide.
        db.until_idle().await;
        call.assert_comes_again(pool).await;
        finished
    })
    .await;
}

/// Under `savepoint` nothing is asked of the caller, whose own rows stay, written
/// before the call or after it.
pub(super) async fn a_caller_that_commits_has_both_or_none<DB: Engine, G: Delivery<DB>>(
    db: &Fresh<DB>,
) {
    db.prepare().await;
    for rows_after in [1, 0] {
        calls::<DB, G>(db, &rows_after.to_string(), async |call, pool, cut| {
            let name = call.name();
            let letter = format!("INSERT INTO letters (id) VALUES ('{name}')");
            let mut tx = pool.begin().await.unwrap();
            DB::run(&mut tx, &letter).await.unwrap();
            let outcome = cut.off(call.process(&mut tx)).await;
            let finished = outcome.is_some();
            let committed = async {
                for _ in 0..rows_after {
                    DB::run(&mut tx, &letter).await?;
                }
                tx.commit().await
            }
            .await;

            let letters = format!("SELECT count(*) FROM letters WHERE id = '{name}'");
            let letters = db.number(&letters).await;
            if let Err(error) = &committed {
                assert!(!finished, "{name}: {error}");
                assert!(is_the_claims_answer(call, error), "{name}: {error}");
                assert_eq!(letters, 0, "{name}");
            } else {
                assert_eq!(letters, 1 + rows_after, "{name}");
            }
            if let Some(outcome) = outcome {
                call.assert_outcome(outcome);
                assert!(call.is_processed().await, "{name}");
            }
            call.assert_comes_again(pool).await;
            finished
        })
        .await;
    }
}

/// sqlx gives the answer to a statement that was cut off to the next one, which it
/// does not send then: on MariaDB the claim of a duplicate is answered with an
/// error.
fn is_the_claims_answer<DB: Engine, G: Delivery<DB>>(
    call: &Call<'_, DB, G>,
    error: &sqlx::Error,
) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    DB::KIND == Kind::MariaDb && call.fresh().is_empty() && code.as_deref() == Some("23000")
}

/// Under `verify` the caller must roll back when it cuts the handler off. If it
/// commits, there is never an effect without its key; but there are keys without
/// their effects, or without their results, and no redelivery repairs that.
pub(super) async fn a_caller_that_commits_may_lose_the_message<DB: Engine, G: Delivery<DB>>(
    db: &Fresh<DB>,
) {
    db.prepare().await;
    let mut lost = 0;
    calls::<DB, G>(db, "", async |call, pool, cut| {
        let mut tx = pool.begin().await.unwrap();
        let outcome = cut.off(call.process(&mut tx)).await;
        let finished = outcome.is_some();
        match (outcome, tx.commit().await) {
            (Some(outcome), committed) => {
                call.assert_outcome(outcome);
                committed.unwrap();
                call.assert_comes_again(pool).await;
            }
            (None, Ok(())) => lost += usize::from(is_lost(db, pool, call).await),
            (None, Err(error)) => {
                assert!(
                    is_the_claims_answer(call, &error),
                    "{}: {error}",
                    call.name()
                );
                call.assert_comes_again(pool).await;
            }
        }
        finished
    })
    .await;
    eprintln!("lost at {lost} of them");
    assert!(lost > 0, "nothing is asked of the caller, after all");
}

/// Says whether a message of a call that was cut off and committed has a key, and
/// no effect.
async fn is_lost<DB: Engine, G: Delivery<DB>>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    call: &Call<'_, DB, G>,
) -> bool {
    let mut left = Vec::new();
    for id in call.fresh() {
        left.push(db.stored(id).await);
    }
    if !left.is_empty() && left.iter().all(|&stored| stored == (0, 0)) {
        call.assert_comes_again(pool).await;
        return false;
    }

    let runs = call.runs();
    match call.transact(Attempts::on(pool)).await {
        Ok(Outcome::Duplicate) => {}
        Err(AppError::Idempotent(error)) if error.is_result_unreadable() => {}
        said => panic!("{}: it has its keys: {said:?}", call.name()),
    }
    assert_eq!(call.runs(), runs, "{}: it has its keys", call.name());
    for (id, &(keys, effects)) in call.fresh().iter().zip(&left) {
        assert_eq!(db.stored(id).await, (keys, effects), "{id}");
        assert!(
            keys == G::KEYS && effects <= 1,
            "{id}: {keys} keys, {effects} effects"
        );
    }
    left.iter().any(|&(_, effects)| effects == 0)
}
