//! Many messages in one transaction.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idempotent_runtime::{Attempts, Batch, Outcome, Verdict, idempotent, transact};
use idempotent_tests::{AppError, Engine, Fresh};
use sqlx::{Pool, Transaction};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use Verdict::{Duplicate, Processed};

on_every_database!(
    each_message_has_its_verdict,
    an_empty_batch_runs_nothing,
    one_failing_message_fails_the_batch_and_one_by_one_finds_it,
    a_message_without_a_key_fails_the_batch_before_it_runs,
    a_batch_and_single_deliveries_share_their_keys,
    overlapping_batches_in_opposite_orders_end_with_each_message_once,
    ten_thousand_messages_in_one_call,
    a_batch_whose_transaction_is_lost_says_so,
    keys_of_a_batch_expire_too,
    parts_of_the_batch_and_of_the_message_make_the_key,
    another_unique_index_of_the_table_is_never_a_duplicate,
);

#[derive(Clone, Debug)]
struct Msg {
    id: String,
    is_poison: bool,
}

fn msg(id: impl Display) -> Msg {
    Msg {
        id: id.to_string(),
        is_poison: false,
    }
}

fn msgs(ids: &[u32]) -> Vec<Msg> {
    ids.iter().map(msg).collect()
}

/// The effects of a batch in one statement.
async fn write<DB: Engine>(tx: &mut Transaction<'_, DB>, msgs: &[Msg]) -> Result<usize, AppError> {
    if msgs.iter().any(|msg| msg.is_poison) {
        return Err(AppError::Refused);
    }
    let rows: Vec<String> = msgs.iter().map(|msg| format!("('{}')", msg.id)).collect();
    DB::run(
        tx,
        &format!("INSERT INTO effects (id) VALUES {}", rows.join(", ")),
    )
    .await?;
    Ok(msgs.len())
}

#[idempotent(key(msg.id), each = "msg in msgs", skip(runs), scope = "verified")]
async fn verified<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    msgs: Vec<Msg>,
    runs: &AtomicUsize,
) -> Result<usize, AppError> {
    runs.fetch_add(1, Ordering::SeqCst);
    write(tx, &msgs).await
}

#[idempotent(
    key = "msg.id",
    each = "msg in msgs",
    skip(runs),
    scope = "under_savepoint",
    guard = "savepoint"
)]
async fn under_savepoint<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    mut msgs: Vec<Msg>,
    runs: &AtomicUsize,
) -> Result<usize, AppError> {
    runs.fetch_add(1, Ordering::SeqCst);
    msgs.reverse();
    write(tx, &msgs).await
}

/// In the scope of `verified`, for one message.
#[idempotent(key(msg.id), scope = "verified")]
async fn single<DB: Engine>(tx: &mut Transaction<'_, DB>, msg: &Msg) -> Result<(), AppError> {
    write(tx, std::slice::from_ref(msg)).await.map(drop)
}

const GUARDS: [&str; 2] = ["verified", "under_savepoint"];

async fn deliver<DB: Engine>(
    pool: &Pool<DB>,
    guard: &str,
    msgs: &[Msg],
    runs: &AtomicUsize,
) -> Result<Batch<usize>, AppError> {
    let attempts = Attempts::on(pool).attempts(50);
    match guard {
        "verified" => transact!(attempts, tx => verified(tx, msgs.to_vec(), runs)).await,
        _ => transact!(attempts, tx => under_savepoint(tx, msgs.to_vec(), runs)).await,
    }
}

/// The effects of each id that has some.
async fn effects<DB: Engine>(db: &Fresh<DB>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for id in db.texts("SELECT id FROM effects").await {
        *counts.entry(id).or_default() += 1;
    }
    counts
}

async fn each_message_has_its_verdict<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for guard in GUARDS {
        db.run("DELETE FROM effects").await;
        let runs = AtomicUsize::new(0);
        // 3 is in the batch twice.
        let first = deliver(&pool, guard, &msgs(&[3, 1, 3, 2]), &runs)
            .await
            .unwrap();
        assert_eq!(first.value, Some(3));
        assert_eq!(first.outcomes, [Processed, Processed, Duplicate, Processed]);
        let second = deliver(&pool, guard, &msgs(&[2, 4, 1, 5]), &runs)
            .await
            .unwrap();
        assert_eq!(second.value, Some(2));
        assert_eq!(
            second.outcomes,
            [Duplicate, Processed, Duplicate, Processed]
        );
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        let third = deliver(&pool, guard, &msgs(&[5, 4, 3, 2, 1]), &runs)
            .await
            .unwrap();
        assert_eq!(third.value, None);
        assert_eq!(third.outcomes, [Duplicate; 5]);
        assert_eq!(runs.load(Ordering::SeqCst), 2, "the body was not called");
        assert_eq!(effects(db).await.len(), 5);
        assert!(effects(db).await.values().all(|count| *count == 1));
    }
}

async fn an_empty_batch_runs_nothing<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for guard in GUARDS {
        let runs = AtomicUsize::new(0);
        let batch = deliver(&pool, guard, &[], &runs).await.unwrap();
        assert_eq!((batch.value, batch.outcomes.len()), (None, 0));
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    }
}

async fn one_failing_message_fails_the_batch_and_one_by_one_finds_it<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for guard in GUARDS {
        db.run("DELETE FROM effects").await;
        db.run("DELETE FROM processed_messages").await;
        let runs = AtomicUsize::new(0);
        let mut batch = msgs(&[1, 2, 3]);
        batch[1].is_poison = true;
        let said = deliver(&pool, guard, &batch, &runs).await;
        assert!(matches!(said, Err(AppError::Refused)), "{said:?}");
        assert_eq!(db.rows("processed_messages").await, 0);
        assert_eq!(db.rows("effects").await, 0);
        // The fall-back.
        let mut refused = Vec::new();
        for msg in &batch {
            if deliver(&pool, guard, std::slice::from_ref(msg), &runs)
                .await
                .is_err()
            {
                refused.push(msg.id.clone());
            }
        }
        assert_eq!(refused, ["2"]);
        assert_eq!(db.rows("processed_messages").await, 2);
        assert_eq!(db.rows("effects").await, 2);
    }
    // By hand, without a roll-back: the keys are gone all the same.
    let runs = AtomicUsize::new(0);
    let mut batch = msgs(&[11, 12, 13]);
    batch[0].is_poison = true;
    let mut tx = pool.begin().await.unwrap();
    let said = verified(&mut tx, batch, &runs).await;
    assert!(matches!(said, Err(AppError::Refused)), "{said:?}");
    tx.commit().await.unwrap();
    assert_eq!(db.rows("processed_messages").await, 2);
}

async fn a_message_without_a_key_fails_the_batch_before_it_runs<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for guard in GUARDS {
        let runs = AtomicUsize::new(0);
        let batch = [msg(1), msg(""), msg(2)];
        let said = deliver(&pool, guard, &batch, &runs).await.unwrap_err();
        let AppError::Idempotent(said) = said else {
            panic!("{said}");
        };
        assert!(said.is_missing_key());
        assert!(
            said.to_string().contains("message 2 of 3 in the batch"),
            "{said}"
        );
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        assert_eq!(db.rows("processed_messages").await, 0);
    }
}

async fn a_batch_and_single_deliveries_share_their_keys<DB: Engine>(db: &Fresh<DB>) {
    let (pool, runs) = (db.prepared(1).await, AtomicUsize::new(0));
    let one = msg(1);
    let _ = transact!(&pool, tx => single(tx, &one)).await.unwrap();
    let batch = deliver(&pool, "verified", &msgs(&[1, 2]), &runs)
        .await
        .unwrap();
    assert_eq!(batch.outcomes, [Duplicate, Processed]);
    let two = msg(2);
    let again = transact!(&pool, tx => single(tx, &two)).await.unwrap();
    assert_eq!(again, Outcome::Duplicate);
    // Also in one transaction.
    let mut tx = pool.begin().await.unwrap();
    let first = verified(&mut tx, msgs(&[7, 8]), &runs).await.unwrap();
    let second = verified(&mut tx, msgs(&[8, 9]), &runs).await.unwrap();
    assert_eq!(first.outcomes, [Processed; 2]);
    assert_eq!(second.outcomes, [Duplicate, Processed]);
    tx.commit().await.unwrap();
    assert!(effects(db).await.values().all(|count| *count == 1));
}

async fn overlapping_batches_in_opposite_orders_end_with_each_message_once<DB: Engine>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(8).await;
    for guard in GUARDS {
        db.run("DELETE FROM effects").await;
        for round in 0..5_u32 {
            let barrier = Arc::new(Barrier::new(8));
            let mut workers = JoinSet::new();
            for worker in 0..8_u32 {
                let (pool, barrier) = (pool.clone(), Arc::clone(&barrier));
                let mut ids: Vec<u32> = (0..40).map(|id| round * 100 + id + worker).collect();
                if worker % 2 == 1 {
                    ids.reverse();
                }
                workers.spawn(async move {
                    barrier.wait().await;
                    // No attempt is spare: a deadlock would fail the test.
                    let runs = AtomicUsize::new(0);
                    let attempts = Attempts::on(&pool).attempts(1);
                    let batch = msgs(&ids);
                    let done = if guard == "verified" {
                        transact!(attempts, tx => verified(tx, batch.clone(), &runs)).await
                    } else {
                        transact!(attempts, tx => under_savepoint(tx, batch.clone(), &runs)).await
                    };
                    done.unwrap().processed()
                });
            }
            let processed: usize = workers.join_all().await.into_iter().sum();
            assert_eq!(processed, 47);
        }
        assert_eq!(effects(db).await.len(), 5 * 47);
        assert!(effects(db).await.values().all(|count| *count == 1));
    }
}

async fn ten_thousand_messages_in_one_call<DB: Engine>(db: &Fresh<DB>) {
    let (pool, runs) = (db.prepared(1).await, AtomicUsize::new(0));
    for guard in GUARDS {
        db.run("DELETE FROM effects").await;
        let long = "x".repeat(240);
        let mut batch: Vec<Msg> = (0..10_000).map(|id| msg(format!("{long}{id}"))).collect();
        batch.extend_from_within(..100);
        let done = deliver(&pool, guard, &batch, &runs).await.unwrap();
        assert_eq!(done.processed(), 10_000);
        assert_eq!(done.outcomes[10_000..], [Duplicate; 100]);
        let again = deliver(&pool, guard, &batch, &runs).await.unwrap();
        assert_eq!(again.value, None);
        assert_eq!(db.rows("effects").await, 10_000);
    }
}

async fn a_batch_whose_transaction_is_lost_says_so<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(msg.id), each = "msg in msgs", scope = "lost")]
    async fn rolls_back<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        msgs: Vec<Msg>,
    ) -> Result<(), AppError> {
        write(tx, &msgs).await?;
        DB::run(tx, "ROLLBACK").await?;
        Ok(())
    }

    let pool = db.prepared(1).await;
    let mut tx = pool.begin().await.unwrap();
    let said = rolls_back(&mut tx, msgs(&[1, 2])).await.unwrap_err();
    assert!(said.is_transaction_lost(), "{said}");
    drop(tx);
    assert_eq!(db.rows("processed_messages").await, 0);
}

async fn keys_of_a_batch_expire_too<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(msg.id), each = "msg in msgs", scope = "week", retain = "7 days")]
    async fn week<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        msgs: Vec<Msg>,
    ) -> Result<(), AppError> {
        write(tx, &msgs).await.map(drop)
    }

    let pool = db.prepared(1).await;
    let batch = msgs(&[1, 2]);
    let _ = transact!(&pool, tx => week(tx, batch.clone()))
        .await
        .unwrap();
    let kept = "SELECT count(*) FROM processed_messages WHERE expires_at > processed_at";
    assert_eq!(db.number(kept).await, 2);
}

async fn parts_of_the_batch_and_of_the_message_make_the_key<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(tenant, msg.id), each = "msg in msgs", scope = "tenants")]
    async fn of_tenant<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        tenant: &str,
        msgs: Vec<Msg>,
    ) -> Result<usize, AppError> {
        let _ = tx;
        Ok(msgs.len())
    }

    let pool = db.prepared(1).await;
    for (tenant, fresh) in [("a", Some(2)), ("b", Some(2)), ("a", None)] {
        let batch = msgs(&[1, 2]);
        let done = transact!(&pool, tx => of_tenant(tx, tenant, batch.clone())).await;
        assert_eq!(done.unwrap().value, fresh);
    }
    let keys = format!(
        "SELECT {} FROM processed_messages ORDER BY 1",
        db.key_column()
    );
    assert_eq!(db.texts(&keys).await, ["a/1", "a/2", "b/1", "b/2"]);
}

async fn another_unique_index_of_the_table_is_never_a_duplicate<DB: Engine>(db: &Fresh<DB>) {
    let (pool, runs) = (db.prepared(1).await, AtomicUsize::new(0));
    db.run("CREATE UNIQUE INDEX other ON processed_messages (scope)")
        .await;
    let _ = deliver(&pool, "verified", &msgs(&[1]), &runs)
        .await
        .unwrap();
    let said = deliver(&pool, "verified", &msgs(&[1, 2]), &runs).await;
    assert!(said.is_err(), "{said:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
