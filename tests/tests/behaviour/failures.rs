//! Handlers that fail, and callers that commit all the same.

use idempotent_runtime::{Outcome, transact};
use idempotent_tests::{
    Act, AppError, Double, Engine, Fresh, Guarded, Kind, Recorder, Savepoint, Verify, caught,
};
use sqlx::{Pool, Transaction};

with_every_guard!(
    an_error_leaves_no_key_and_is_the_handlers_own,
    an_early_return_with_an_error_leaves_no_key,
    an_own_unique_violation_is_never_a_duplicate,
    a_panic_leaves_nothing_once_rolled_back,
);

mod savepoint_only {
    use super::after_a_panic_the_caller_may_commit_a_dead_letter;

    on_every_database!(after_a_panic_the_caller_may_commit);

    async fn after_a_panic_the_caller_may_commit<DB: super::Engine>(db: &super::Fresh<DB>) {
        after_a_panic_the_caller_may_commit_a_dead_letter(db).await;
    }
}

mod servers {
    use super::{Engine, Fresh, Savepoint, Verify, another_claims_what_was_rolled_back};

    on_postgres!(a_roll_back_past_the_claim_is_noticed_though_another_consumer_claims_the_key);

    async fn a_roll_back_past_the_claim_is_noticed_though_another_consumer_claims_the_key<
        DB: Engine,
    >(
        db: &Fresh<DB>,
    ) {
        db.prepare().await;
        another_claims_what_was_rolled_back::<DB, Verify>(db, "verify").await;
        another_claims_what_was_rolled_back::<DB, Savepoint>(db, "savepoint").await;
    }
}

/// The row is there, and the transaction is the one that claimed; only the row
/// is another's.
async fn another_claims_what_was_rolled_back<DB: Engine, G: Guarded>(db: &Fresh<DB>, id: &str) {
    let pool = db.pool(2).await;
    let double = Double::new();
    let mut tx = pool.begin().await.unwrap();
    DB::run(&mut tx, "SAVEPOINT caller").await.unwrap();
    let outcome = G::deliver(&mut tx, id, async |tx: &mut Transaction<'_, DB>| {
        DB::run(tx, "ROLLBACK TO SAVEPOINT caller").await?;
        let other = transact!(&pool, tx => G::record(tx, id, &double)).await?;
        assert_eq!(other, Outcome::Processed(()));
        DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
        Ok(())
    })
    .await;
    assert!(outcome.is_err_and(|error| error.is_transaction_lost()));
    drop(tx);
    assert_eq!(db.stored(id).await, (1, 1));
}

/// What is left of a handler's work after its error, when the caller commits:
/// with `savepoint` nothing; with `verify` the rows, which are the caller's to
/// roll back.
fn left_after_error<G: Guarded>() -> i64 {
    i64::from(G::SCOPE != Savepoint::SCOPE)
}

async fn write_letter<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) {
    DB::run(tx, &format!("INSERT INTO letters (id) VALUES ('{id}')"))
        .await
        .expect("the transaction is usable");
}

/// The message comes again, and runs.
async fn redeliver<DB: Engine, G: Guarded>(db: &Fresh<DB>, pool: &Pool<DB>, id: &str) {
    let (_, effects) = db.stored(id).await;
    let double = Double::new();
    let outcome = transact!(pool, tx => G::record(tx, id, &double)).await;
    assert!(matches!(outcome, Ok(Outcome::Processed(()))), "{outcome:?}");
    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored(id).await, (1, effects + 1));
}

async fn an_error_leaves_no_key_and_is_the_handlers_own<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let double = Double::planned([Act::Refuse]);

    let mut tx = pool.begin().await.unwrap();
    let outcome = G::record(&mut tx, "1", &double).await;
    assert!(matches!(outcome, Err(AppError::Refused)), "{outcome:?}");
    write_letter(&mut tx, "1").await;
    tx.commit().await.unwrap();

    assert_eq!(db.stored("1").await, (0, left_after_error::<G>()));
    assert_eq!(db.rows("letters").await, 1);
    redeliver::<DB, G>(db, &pool, "1").await;
}

async fn an_early_return_with_an_error_leaves_no_key<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;

    let mut tx = pool.begin().await.unwrap();
    let outcome = G::deliver(&mut tx, "1", async |tx| {
        let amount: i64 = "not a number".parse().map_err(|_| AppError::Refused)?;
        DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{amount}')")).await?;
        Ok(())
    })
    .await;
    assert!(matches!(outcome, Err(AppError::Refused)), "{outcome:?}");
    write_letter(&mut tx, "1").await;
    tx.commit().await.unwrap();

    assert_eq!(db.stored("1").await, (0, 0));
    assert_eq!(db.rows("letters").await, 1);
    redeliver::<DB, G>(db, &pool, "1").await;
}

async fn an_own_unique_violation_is_never_a_duplicate<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;

    let mut tx = pool.begin().await.unwrap();
    let outcome = G::deliver(&mut tx, "1", async |tx| {
        DB::run(tx, "INSERT INTO accounts (id, amount) VALUES (1, 5)").await?;
        Ok(())
    })
    .await;
    let Err(AppError::Database(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(error.as_database_error().unwrap().is_unique_violation());
    let written = DB::run(&mut tx, "INSERT INTO letters (id) VALUES ('1')").await;
    let committed = tx.commit().await;

    // On Postgres an error aborts the transaction; a savepoint takes it back.
    let is_aborted = DB::KIND == Kind::Postgres && G::SCOPE != Savepoint::SCOPE;
    assert_eq!(written.is_err(), is_aborted, "{written:?}");
    assert!(committed.is_ok());
    assert_eq!(db.rows("letters").await, i64::from(!is_aborted));
    assert_eq!(db.stored("1").await, (0, 0));
    redeliver::<DB, G>(db, &pool, "1").await;
}

async fn a_panic_leaves_nothing_once_rolled_back<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let double = Double::planned([Act::Panic]);

    let caught = {
        let (pool, double) = (pool.clone(), &double);
        caught(async move {
            let _ = transact!(&pool, tx => G::record(tx, "1", double)).await;
        })
        .await
    };
    assert!(caught.is_err(), "the panic went on");

    assert_eq!(double.runs(), 1);
    assert_eq!(db.stored("1").await, (0, 0));
    redeliver::<DB, G>(db, &pool, "1").await;
}

async fn after_a_panic_the_caller_may_commit_a_dead_letter<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let double = Double::planned([Act::Panic]);

    let mut tx = pool.begin().await.unwrap();
    let caught = caught(Savepoint::record(&mut tx, "1", &double)).await;
    assert!(caught.is_err(), "the panic went on");
    write_letter(&mut tx, "1").await;
    tx.commit().await.unwrap();

    assert_eq!(db.stored("1").await, (0, 0));
    assert_eq!(db.rows("letters").await, 1);
    redeliver::<DB, Savepoint>(db, &pool, "1").await;
}
