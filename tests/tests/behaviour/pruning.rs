//! Keys whose time has come go; all others stay; and nobody is disturbed.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use idempotent_runtime::{
    Outcome, Pruner, Replay, Table, forget, idempotent, lookup, migrate, pruner, transact,
};
use idempotent_tests::{
    Act, AppError, CutAt, Double, Engine, Fresh, Guarded, Kind, Recorder, Replayed, Verify,
    at_every_poll, is_full, until,
};
use sqlx::pool::PoolOptions;
use sqlx::{Pool, Postgres, Sqlite, Transaction};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

on_every_database!(
    expired_rows_go_and_others_stay,
    unbounded_rows_of_a_named_scope_go_by_age,
    more_rows_than_a_batch_go_in_batches,
    options_that_make_no_sense_are_refused,
    the_greatest_age_deletes_nothing,
    cancelled_after_three_batches_what_they_deleted_stays,
    a_pruned_key_runs_again,
    another_table_is_pruned,
    two_pruners_and_many_claimers_at_once,
    fifty_workers_and_two_pruners_end_with_each_message_once,
    claims_of_expired_keys_race_with_the_pruner,
    a_stopped_task_ends_its_batch_and_gives_totals,
    a_dropped_task_stops,
    a_task_outlives_errors_that_stay,
    a_task_ends_with_its_pool,
    cut_off_at_every_poll_a_batch_is_whole_or_not,
    a_key_is_looked_up,
    a_forgotten_key_runs_again,
    texts_that_no_handler_stores_are_refused,
    an_existing_table_gets_the_index,
);

mod servers {
    use super::{
        it_goes_on_while_others_hold_rows, it_leaves_rows_that_are_held_for_long,
        it_needs_select_and_delete_only, it_outlives_its_connection,
        without_create_no_index_is_made,
    };

    on_servers!(
        it_goes_on_while_others_hold_rows,
        it_leaves_rows_that_are_held_for_long,
        it_needs_select_and_delete_only,
        it_outlives_its_connection,
        without_create_no_index_is_made,
    );
}

mod one_at_a_time {
    use super::{
        another_pruner_is_seen, it_outlives_its_connection_within_a_batch,
        the_key_of_an_open_delivery_is_not_there_to_forget,
        without_update_a_batch_waits_for_who_holds_a_row,
    };

    on_postgres!(
        the_key_of_an_open_delivery_is_not_there_to_forget,
        without_update_a_batch_waits_for_who_holds_a_row,
        another_pruner_is_seen,
        it_outlives_its_connection_within_a_batch,
    );
}

mod one_writer {
    use super::{Fresh, Sqlite, a_writer_is_waited_for};

    #[test]
    fn a_busy_database_is_tried_again() {
        idempotent_tests::in_fresh_database::<Sqlite>(busy);
    }

    async fn busy(db: &Fresh<Sqlite>) {
        a_writer_is_waited_for(db).await;
    }
}

#[idempotent(key(id), scope = "week", retain = "7 days", replay)]
async fn week<DB: Engine>(tx: &mut Transaction<'_, DB>, id: &str) -> Result<u32, AppError> {
    DB::run(tx, &format!("INSERT INTO effects (id) VALUES ('{id}')")).await?;
    Ok(7)
}

/// How the database writes the time so many seconds from now.
fn after<DB: Engine>(seconds: i64) -> String {
    match DB::KIND {
        Kind::Postgres => format!("clock_timestamp() + interval '{seconds} seconds'"),
        Kind::MariaDb => format!("utc_timestamp(6) + INTERVAL {seconds} SECOND"),
        Kind::Sqlite => format!(
            "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + {seconds} * 1000000"
        ),
    }
}

/// Which rows to write: their scope, their number, when they were processed, and
/// when they expire.
pub(super) struct Rows<'a>(
    pub(super) &'a str,
    pub(super) u32,
    pub(super) i64,
    pub(super) Option<i64>,
);

pub(super) async fn fill_table<DB: Engine>(db: &Fresh<DB>, table: &str, rows: Rows<'_>) {
    let Rows(scope, number, processed, expires) = rows;
    let key = db.key_column();
    let processed = after::<DB>(processed);
    let expires = expires.map_or("NULL".to_owned(), after::<DB>);
    let values: Vec<_> = (0..number)
        .map(|number| format!("('{scope}', 'k{number:06}', {processed}, {expires})"))
        .collect();
    for values in values.chunks(1_000) {
        db.run(&format!(
            "INSERT INTO {table} (scope, {key}, processed_at, expires_at) VALUES {}",
            values.join(", ")
        ))
        .await;
    }
}

async fn fill<DB: Engine>(db: &Fresh<DB>, rows: Rows<'_>) {
    fill_table(db, "processed_messages", rows).await;
}

async fn of_scope<DB: Engine>(db: &Fresh<DB>, scope: &str) -> i64 {
    db.rows(&format!("processed_messages WHERE scope = '{scope}'"))
        .await
}

fn quick<DB: Engine>(pool: &Pool<DB>) -> Pruner<DB> {
    pruner(pool).batch(100).pause(Duration::ZERO)
}

async fn expired_rows_go_and_others_stay<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    assert_eq!(pruner(&pool).run().await.unwrap().rows, 0);
    fill(db, Rows("past", 5, -100, Some(-1))).await;
    fill(db, Rows("long_past", 5, -100, Some(-1_000_000_000))).await;
    fill(db, Rows("future", 5, -100, Some(1_000))).await;
    fill(db, Rows("unbounded", 5, -1_000_000, None)).await;
    let pruned = pruner(&pool).run().await.unwrap();
    assert_eq!((pruned.rows, pruned.batches), (10, 1));
    assert!(!pruned.contended);
    assert_eq!(db.rows("processed_messages").await, 10);
    assert_eq!(of_scope(db, "future").await, 5);
    assert_eq!(of_scope(db, "unbounded").await, 5);
    assert_eq!(pruner(&pool).run().await.unwrap().rows, 0);
}

async fn unbounded_rows_of_a_named_scope_go_by_age<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let key = db.key_column();
    fill(db, Rows("old", 250, -1_000, None)).await;
    fill(db, Rows("older", 250, -10_000, None)).await;
    fill(db, Rows("other", 250, -10_000, None)).await;
    fill(db, Rows("bounded", 5, -10_000, Some(1_000))).await;
    db.run(&format!(
        "UPDATE processed_messages SET processed_at = {} WHERE scope = 'old' AND {key} < 'k000100'",
        after::<DB>(0)
    ))
    .await;
    let hour = Duration::from_hours(1);
    let pruned = quick(&pool)
        .older_than("old", Duration::from_mins(10))
        .older_than("older", hour)
        .older_than("bounded", hour)
        .run()
        .await
        .unwrap();
    assert_eq!((pruned.rows, pruned.batches), (150 + 250, 2 + 3));
    assert_eq!(of_scope(db, "old").await, 100);
    assert_eq!(of_scope(db, "older").await, 0);
    assert_eq!(of_scope(db, "other").await, 250);
    assert_eq!(of_scope(db, "bounded").await, 5);
}

async fn more_rows_than_a_batch_go_in_batches<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    // Some have the same time, some not.
    fill(db, Rows("a", 1_050, -100, Some(-10))).await;
    fill(db, Rows("b", 1_000, -100, Some(-20))).await;
    let reports = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&reports);
    let pruned = quick(&pool)
        .on_progress(move |pruned| {
            let before = counted.fetch_add(1, Ordering::SeqCst);
            assert_eq!(pruned.batches, before + 1);
            assert_eq!(pruned.rows, (pruned.batches * 100).min(2_050));
        })
        .run()
        .await
        .unwrap();
    assert_eq!((pruned.rows, pruned.batches), (2_050, 21));
    assert_eq!(reports.load(Ordering::SeqCst), 21);
    assert_eq!(db.rows("processed_messages").await, 0);
}

async fn options_that_make_no_sense_are_refused<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    fill(db, Rows("past", 5, -100, Some(-1))).await;
    let day = Duration::from_hours(24);
    let refused = [
        (pruner(&pool).batch(0), "batch of 0"),
        (pruner(&pool).every(Duration::ZERO), "period of 0"),
        (pruner(&pool).older_than("s", Duration::ZERO), "age of 0"),
        (
            pruner(&pool).older_than("s", Duration::from_nanos(999)),
            "age of 0",
        ),
        (pruner(&pool).older_than("s", Duration::MAX), "1 000 years"),
        (
            pruner(&pool).older_than("s", GREATEST_AGE + Duration::from_micros(1)),
            "1 000 years",
        ),
        (pruner(&pool).older_than("it's", day), "not a scope"),
        (pruner(&pool).older_than("", day), "not a scope"),
    ];
    for (pruner, fact) in refused {
        let text = format!("{pruner:?}");
        let error = pruner.run().await.unwrap_err();
        assert!(error.to_string().contains(fact), "{text}: {error}");
        assert!(!error.is_retryable());
    }
    for pruner in [
        pruner(&pool).batch(0),
        pruner(&pool).older_than("s", Duration::ZERO),
        pruner(&pool).older_than("s", Duration::MAX),
    ] {
        let text = format!("{pruner:?}");
        assert!(pruner.start().is_err(), "{text}");
    }
    assert_eq!(db.rows("processed_messages").await, 5);
}

const GREATEST_AGE: Duration = Duration::from_hours(1_000 * 365 * 24);

/// It is no more than an age: no time before it is out of range.
async fn the_greatest_age_deletes_nothing<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    fill(db, Rows("old", 5, -1_000_000_000, None)).await;
    let pruned = pruner(&pool).older_than("old", GREATEST_AGE).run();
    assert_eq!(pruned.await.unwrap().rows, 0);
    let pruned = pruner(&pool).older_than("old", Duration::from_secs(999_999_999));
    assert_eq!(pruned.run().await.unwrap().rows, 5);
}

async fn cancelled_after_three_batches_what_they_deleted_stays<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    fill(db, Rows("past", 1_000, -100, Some(-10))).await;
    let third = Arc::new(Notify::new());
    let notify = Arc::clone(&third);
    let pruning = quick(&pool).on_progress(move |pruned| {
        if pruned.batches == 3 {
            notify.notify_one();
        }
    });
    tokio::select! {
        biased;
        () = third.notified() => {}
        pruned = pruning.run() => panic!("{pruned:?}"),
    }
    // Another batch may be under way; it ends before the pool's next statement.
    assert!(lookup(&pool, "past", "k").await.unwrap().is_none());
    let rest = quick(&pool).run().await.unwrap();
    assert!([600, 700].contains(&rest.rows), "{rest:?}");
    assert_eq!(db.rows("processed_messages").await, 0);
    db.until_idle().await;
}

async fn a_pruned_key_runs_again<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for expected in [Replay::Processed(7), Replay::Replayed(7)] {
        let outcome = transact!(&pool, tx => week(tx, "1")).await.unwrap();
        assert_eq!(outcome, expected);
    }
    assert_eq!(pruner(&pool).run().await.unwrap().rows, 0);
    db.run("UPDATE processed_messages SET expires_at = processed_at")
        .await;
    assert_eq!(pruner(&pool).run().await.unwrap().rows, 1);
    let late = transact!(&pool, tx => week(tx, "1")).await.unwrap();
    assert_eq!(late, Replay::Processed(7));
    // The price of a late duplicate.
    assert_eq!(db.stored("1").await, (1, 2));
}

async fn another_table_is_pruned<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let qualified = match DB::KIND {
        Kind::Postgres => "inbox.seen".to_owned(),
        Kind::MariaDb => {
            let database = db.texts("SELECT database()").await.remove(0);
            format!("{database}.seen")
        }
        Kind::Sqlite => "main.seen".to_owned(),
    };
    let table = Table::named(qualified.clone()).unwrap();
    table.migrate(&pool).await.unwrap();
    fill_table(db, &qualified, Rows("past", 5, -100, Some(-1))).await;
    fill_table(db, &qualified, Rows("unbounded", 5, -100, None)).await;
    fill(db, Rows("past", 5, -100, Some(-1))).await;
    let pruned = table
        .pruner(&pool)
        .older_than("unbounded", Duration::from_secs(1))
        .run();
    assert_eq!(pruned.await.unwrap().rows, 10);
    assert_eq!(db.rows(&qualified).await, 0);
    assert_eq!(db.rows("processed_messages").await, 5);
    assert!(!table.forget(&pool, "past", "k000000").await.unwrap());
    assert!(forget(&pool, "past", "k000000").await.unwrap());
}

/// Each pruner has connections of its own, as in another process.
async fn two_pruners_and_many_claimers_at_once<DB: Engine>(db: &Fresh<DB>) {
    let (expired, live, batch) = if is_full() {
        (200_000, 400_000, 1_000)
    } else {
        (3_000, 300, 100)
    };
    let pool = db.prepared(8).await;
    fill(db, Rows("past", expired, -100, Some(-10))).await;
    fill(db, Rows("future", live, -100, Some(100_000))).await;
    fill(db, Rows("unbounded", live, -100, None)).await;
    let pruned = Arc::new(AtomicBool::new(false));
    let mut claims = JoinSet::new();
    for claimer in 0..4 {
        let (pool, pruned) = (pool.clone(), Arc::clone(&pruned));
        claims.spawn(async move {
            let mut latencies = Vec::new();
            while latencies.len() < 50 || !pruned.load(Ordering::SeqCst) {
                let id = format!("{claimer}-{}", latencies.len());
                let start = Instant::now();
                let outcome = transact!(&pool, tx => week(tx, &id)).await?;
                latencies.push(start.elapsed());
                assert_eq!(outcome, Replay::Processed(7), "{id}");
            }
            Ok::<_, AppError>(latencies)
        });
    }
    let mut pruners = JoinSet::new();
    for _ in 0..2 {
        pruners.spawn(quick(&db.pool(1).await).batch(batch).run());
    }
    let mut rows = 0;
    for pruned in pruners.join_all().await {
        rows += pruned.unwrap().rows;
    }
    assert_eq!(rows, u64::from(expired));
    pruned.store(true, Ordering::SeqCst);
    let mut latencies = Vec::new();
    for claimed in claims.join_all().await {
        latencies.extend(claimed.unwrap());
    }
    assert_eq!(of_scope(db, "past").await, 0);
    assert_eq!(of_scope(db, "future").await, i64::from(live));
    assert_eq!(of_scope(db, "unbounded").await, i64::from(live));
    let claimed = i64::try_from(latencies.len()).unwrap();
    assert_eq!(of_scope(db, "week").await, claimed);
    db.until_idle().await;

    latencies.sort();
    let p99 = latencies[latencies.len() * 99 / 100];
    println!(
        "{:?}: p99 of {claimed} claims beside two pruners: {p99:?}",
        DB::KIND
    );
    // One statement for all of them would hold it up for seconds.
    assert!(!is_full() || p99 < Duration::from_secs(1), "{p99:?}");
}

/// The code of the database's that is below an error.
fn code(error: &AppError) -> String {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(sqlx::Error::Database(error)) = error.downcast_ref() {
            return error.code().unwrap_or_default().into_owned();
        }
        source = error.source();
    }
    error.to_string()
}

/// Consumers without `transact!`, so that every conflict is seen and counted. Their
/// keys lie between the keys that are pruned.
async fn fifty_workers_and_two_pruners_end_with_each_message_once<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(20).await;
    workers_and_pruners::<DB, Verify>(db, &pool, Verify::SCOPE).await;
    // With an expiry, a result and a fingerprint.
    workers_and_pruners::<DB, Replayed>(db, &pool, "replayed").await;
}

async fn workers_and_pruners<DB: Engine, R: Recorder>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    scope: &str,
) {
    let keys: u32 = if is_full() { 5_000 } else { 600 };
    let deliveries = keys + keys / 5;
    db.run("DELETE FROM effects").await;
    let expired = keys * 5;
    fill(db, Rows(scope, expired, -100, Some(-10))).await;
    let failures = Arc::new(Mutex::new(Vec::new()));
    let mut pruners = Vec::new();
    for _ in 0..2 {
        let failures = Arc::clone(&failures);
        let pruner = quick(pool)
            .batch(20)
            .every(Duration::from_millis(1))
            .on_error(move |error| failures.lock().unwrap().push(error.to_string()));
        pruners.push(pruner.start().unwrap());
    }
    let double = Arc::new(Double::new());
    let conflicts = Arc::new(Mutex::new(BTreeMap::new()));
    let mut workers = JoinSet::new();
    for worker in 0..50 {
        let (pool, double, conflicts) = (pool.clone(), Arc::clone(&double), Arc::clone(&conflicts));
        workers.spawn(async move {
            let mut processed = 0;
            for delivery in (worker..deliveries).step_by(50) {
                // Scattered; one in five comes twice, at once.
                let message = delivery * 5 / 6 * 1_013 % keys;
                let id = format!("k{:06}-{message}", message * 5);
                loop {
                    let mut tx = pool.begin().await.unwrap();
                    match R::record(&mut tx, &id, &double).await {
                        Ok(outcome) => {
                            tx.commit().await.unwrap();
                            processed += u32::from(!outcome.is_duplicate());
                            break;
                        }
                        Err(error) if error.is_retryable() => {
                            let mut conflicts = conflicts.lock().unwrap();
                            *conflicts.entry(code(&error)).or_insert(0) += 1;
                        }
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
            processed
        });
    }
    let processed: u32 = workers.join_all().await.into_iter().sum();
    let mut pruned = 0;
    for pruner in pruners {
        pruned += pruner.stop().await.rows;
    }
    pruned += quick(pool).run().await.unwrap().rows;
    let conflicts = std::mem::take(&mut *conflicts.lock().unwrap());
    let all: u32 = conflicts.values().sum();
    println!(
        "{:?}, {scope}: {} conflicts per 1000 of {deliveries} deliveries: {conflicts:?}; pruners: {:?}",
        DB::KIND,
        all * 1_000 / deliveries,
        failures.lock().unwrap()
    );
    // The key is inserted first, and a batch waits for nobody: nothing to meet in.
    assert!(all * 100 <= deliveries, "{conflicts:?}");
    assert_eq!((processed, pruned), (keys, u64::from(expired)));
    let keys = i64::from(keys);
    assert_eq!(of_scope(db, scope).await, keys);
    assert_eq!(db.rows("effects").await, keys);
    let distinct = "SELECT count(DISTINCT id) FROM effects";
    assert_eq!(db.number(distinct).await, keys);
}

async fn claims_of_expired_keys_race_with_the_pruner<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(6).await;
    let expired = 600;
    fill(db, Rows("week", expired, -1_000_000, Some(-10))).await;
    db.run(match DB::KIND {
        Kind::Postgres => "UPDATE processed_messages SET result = '7'::bytea",
        _ => "UPDATE processed_messages SET result = X'37'",
    })
    .await;
    let ran = Arc::new(AtomicU64::new(0));
    let mut claims = JoinSet::new();
    // Two claimers of each key, who meet.
    for start in [0, expired / 2, 0, expired / 2] {
        let (pool, ran) = (pool.clone(), Arc::clone(&ran));
        claims.spawn(async move {
            for number in (0..expired).map(|number| (start + number) % expired) {
                let id = format!("k{number:06}");
                let outcome = transact!(&pool, tx => week(tx, &id)).await?;
                ran.fetch_add(u64::from(!outcome.is_replayed()), Ordering::SeqCst);
            }
            Ok::<_, AppError>(())
        });
    }
    let pruned = quick(&pool).batch(7).run().await.unwrap();
    for claimed in claims.join_all().await {
        claimed.unwrap();
    }
    let rest = quick(&pool).run().await.unwrap();
    assert_eq!(pruned.rows + rest.rows, u64::from(expired));
    // What ran is there once, with its effect; what did not is gone.
    let ran = i64::try_from(ran.load(Ordering::SeqCst)).unwrap();
    assert_eq!(of_scope(db, "week").await, ran);
    assert_eq!(db.rows("effects").await, ran);
}

async fn it_goes_on_while_others_hold_rows<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(3).await;
    let key = db.key_column();
    fill(db, Rows("past", 1_000, -100, Some(-10))).await;
    // A pruner by hand: it has deleted the first rows, and will fail.
    let mut other = pool.begin().await.unwrap();
    // One by one, since MariaDB locks what it reads, not what it finds.
    for number in 0..30 {
        let delete = format!(
            "DELETE FROM processed_messages WHERE scope = 'past' AND {key} = 'k{number:06}'"
        );
        assert_eq!(DB::run(&mut other, &delete).await.unwrap(), 1);
    }
    let all_but_those = Arc::new(Notify::new());
    let notify = Arc::clone(&all_but_those);
    let pruning = tokio::spawn(
        quick(&pool)
            .on_progress(move |pruned| {
                if pruned.rows == 970 {
                    notify.notify_one();
                }
            })
            .run(),
    );
    tokio::time::timeout(Duration::from_secs(20), all_but_those.notified())
        .await
        .unwrap();
    // A delivery of one of them waits for the other pruner, too.
    let double = Double::new();
    other.rollback().await.unwrap();
    let pruned = pruning.await.unwrap().unwrap();
    assert_eq!(pruned.rows, 1_000);
    assert_eq!(db.rows("processed_messages").await, 0);

    // The other way round: a claim waits for a pruner, and then is new.
    fill(db, Rows(Verify::SCOPE, 1, -100, Some(-10))).await;
    let mut other = pool.begin().await.unwrap();
    DB::run(&mut other, "DELETE FROM processed_messages")
        .await
        .unwrap();
    let claiming = async { transact!(&pool, tx => Verify::record(tx, "k000000", &double)).await };
    let (outcome, ()) = tokio::join!(claiming, async {
        db.until_waiting(1).await;
        other.commit().await.unwrap();
    });
    assert_eq!(outcome.unwrap(), Outcome::Processed(()));
    assert_eq!(db.stored("k000000").await, (1, 1));
}

async fn it_leaves_rows_that_are_held_for_long<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(3).await;
    fill(db, Rows("past", 100, -100, Some(-10))).await;
    let mut other = pool.begin().await.unwrap();
    let hold = "UPDATE processed_messages SET result = NULL, processed_at = expires_at WHERE scope = 'past' \
         AND {key} = 'k000050'";
    let hold = hold.replace("{key}", db.key_column());
    DB::run(&mut other, &hold).await.unwrap();
    let pruned = quick(&pool).run().await.unwrap();
    assert_eq!(pruned.rows, 99);
    assert!(pruned.contended);
    other.rollback().await.unwrap();
    let pruned = quick(&pool).run().await.unwrap();
    assert_eq!((pruned.rows, pruned.contended), (1, false));
}

async fn another_pruner_is_seen(db: &Fresh<Postgres>) {
    let pool = db.prepared(3).await;
    fill(db, Rows("past", 100, -100, Some(-10))).await;
    fill(db, Rows("old", 100, -100, None)).await;
    // As another instance holds it in its batch.
    let mut other = pool.begin().await.unwrap();
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('idempotent-runtime pruner ' \
         || 'processed_messages'::regclass::oid, 0))";
    Postgres::run(&mut other, lock).await.unwrap();
    let pruned = quick(&pool).run().await.unwrap();
    assert_eq!((pruned.rows, pruned.batches), (0, 0));
    assert!(pruned.contended);

    // In the background it waits for its turn.
    let done = Arc::new(Notify::new());
    let notify = Arc::clone(&done);
    let task = quick(&pool)
        .every(Duration::from_millis(5))
        .on_progress(move |_| notify.notify_one())
        .start()
        .unwrap();
    other.rollback().await.unwrap();
    done.notified().await;
    assert_eq!(task.stop().await.rows, 100);
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(db.number(locks).await, 0);
}

/// One connection without a ping before its use, so that it is found dead in a
/// statement.
async fn unpinged<DB: Engine>(db: &Fresh<DB>) -> (Pool<DB>, i64) {
    let options = PoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false);
    let pool = db.pool_with(options).await;
    let mut conn = pool.acquire().await.unwrap();
    let session = DB::number(&mut conn, DB::SESSION.unwrap()).await.unwrap();
    drop(conn);
    (pool, session)
}

async fn it_outlives_its_connection<DB: Engine>(db: &Fresh<DB>) {
    db.prepare().await;
    fill(db, Rows("past", 1_000, -100, Some(-10))).await;
    let (pool, session) = unpinged(db).await;
    let kill = DB::kill(session);
    let observer = db.observer.clone();
    let pruned = quick(&pool)
        .on_progress(move |pruned| {
            if pruned.batches == 3 {
                let killing = async {
                    let mut conn = observer.acquire().await.unwrap();
                    DB::run(&mut conn, &kill).await.unwrap();
                };
                let runtime = tokio::runtime::Handle::current();
                tokio::task::block_in_place(|| runtime.block_on(killing));
            }
        })
        .run();
    let pruned = pruned.await.unwrap();
    assert_eq!((pruned.rows, pruned.batches), (1_000, 10));
    assert_ne!(unpinged(db).await.1, session);
    assert_eq!(db.rows("processed_messages").await, 0);
}

async fn it_outlives_its_connection_within_a_batch(db: &Fresh<Postgres>) {
    db.prepare().await;
    fill(db, Rows("past", 1_000, -100, Some(-10))).await;
    let (pool, session) = unpinged(db).await;
    let mut other = db.observer.begin().await.unwrap();
    // It lets the look through, and not the batch.
    let lock = "LOCK TABLE processed_messages IN SHARE MODE";
    Postgres::run(&mut other, lock).await.unwrap();
    let pruning = tokio::spawn(quick(&pool).run());
    db.until_waiting(1).await;
    db.run(&Postgres::kill(session)).await;
    other.rollback().await.unwrap();
    assert_eq!(pruning.await.unwrap().unwrap().rows, 1_000);
}

async fn a_writer_is_waited_for(db: &Fresh<Sqlite>) {
    db.prepare().await;
    fill(db, Rows("past", 1_000, -100, Some(-10))).await;
    let options = db.options.clone().busy_timeout(Duration::from_millis(1));
    let pool = PoolOptions::<Sqlite>::new()
        .connect_with(options)
        .await
        .unwrap();
    let writer = db.observer.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let pruning = tokio::spawn(quick(&pool).run());
    // Nobody can be seen to wait: it is refused, and comes again.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!pruning.is_finished());
    writer.rollback().await.unwrap();
    assert_eq!(pruning.await.unwrap().unwrap().rows, 1_000);
}

async fn a_stopped_task_ends_its_batch_and_gives_totals<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    fill(db, Rows("past", 1_000, -100, Some(-10))).await;
    let begun = Arc::new(Notify::new());
    let notify = Arc::clone(&begun);
    let task = pruner(&pool)
        .batch(100)
        // It would rest for an hour after its first batch.
        .pause(Duration::from_hours(1))
        .on_progress(move |_| notify.notify_one())
        .start()
        .unwrap();
    begun.notified().await;
    let pruned = task.stop().await;
    assert_eq!((pruned.rows, pruned.batches), (100, 1));
    assert_eq!(db.rows("processed_messages").await, 900);
    db.until_idle().await;

    // Stopped while it rests with nothing to do.
    let done = Arc::new(Notify::new());
    let notify = Arc::clone(&done);
    let task = quick(&pool)
        .batch(900)
        .every(Duration::from_hours(1))
        .on_progress(move |_| notify.notify_one())
        .start()
        .unwrap();
    done.notified().await;
    assert_eq!(task.stop().await.rows, 900);
}

async fn a_dropped_task_stops<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    fill(db, Rows("past", 1_000, -100, Some(-10))).await;
    let begun = Arc::new(Notify::new());
    let notify = Arc::clone(&begun);
    let task = pruner(&pool)
        .batch(100)
        .pause(Duration::from_hours(1))
        .on_progress(move |_| notify.notify_one())
        .start()
        .unwrap();
    begun.notified().await;
    drop(task);
    // The callback, which holds the other end, goes with the task.
    until("the task has ended", async || {
        Arc::strong_count(&begun) == 1
    })
    .await;
    assert_eq!(db.rows("processed_messages").await, 900);
}

async fn a_task_outlives_errors_that_stay<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    db.run("ALTER TABLE processed_messages RENAME TO elsewhere")
        .await;
    fill_table(db, "elsewhere", Rows("past", 100, -100, Some(-10))).await;
    let (failed, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (on_failed, on_done) = (Arc::clone(&failed), Arc::clone(&done));
    let task = quick(&pool)
        .every(Duration::from_millis(5))
        .on_error(move |error| {
            assert!(!error.is_retryable(), "{error}");
            on_failed.notify_one();
        })
        .on_progress(move |_| on_done.notify_one())
        .start()
        .unwrap();
    for _ in 0..2 {
        failed.notified().await;
    }
    db.run("ALTER TABLE elsewhere RENAME TO processed_messages")
        .await;
    done.notified().await;
    assert_eq!(task.stop().await.rows, 100);
}

async fn a_task_ends_with_its_pool<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let told = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&told);
    let task = quick(&pool)
        .every(Duration::from_millis(5))
        .on_error(move |_| tell.store(true, Ordering::SeqCst))
        .start()
        .unwrap();
    pool.close().await;
    until("it is told", async || told.load(Ordering::SeqCst)).await;
    until("it has ended", async || Arc::strong_count(&told) == 1).await;
    assert_eq!(task.stop().await.rows, 0);
}

async fn cut_off_at_every_poll_a_batch_is_whole_or_not<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    at_every_poll(async |id, polls, moment| {
        db.run("DELETE FROM processed_messages").await;
        fill(db, Rows("past", 25, -100, Some(-10))).await;
        let pruning = pruner(&pool).batch(10).pause(Duration::ZERO).run();
        let pruned = CutAt::new(polls, moment, pruning)
            .await
            .transpose()
            .unwrap();
        // The pool works on, and nothing is left open on it: what was under way is
        // done before the next statement.
        let rest = async {
            assert!(lookup(&pool, "past", "k").await.unwrap().is_none());
            pruner(&pool).run().await.unwrap()
        };
        let rest = tokio::time::timeout(Duration::from_secs(10), rest).await;
        let rest = rest.unwrap_or_else(|_| panic!("{id}: the pool is stuck"));
        assert!([25, 15, 5, 0].contains(&rest.rows), "{id}: {rest:?}");
        db.until_idle().await;
        assert_eq!(db.rows("processed_messages").await, 0, "{id}");
        pruned.is_some()
    })
    .await;
}

async fn a_key_is_looked_up<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    assert_eq!(lookup(&pool, "week", "1").await.unwrap(), None);
    let _ = transact!(&pool, tx => week(tx, "1")).await.unwrap();
    let week = lookup(&pool, "week", "1").await.unwrap().unwrap();
    let kept = week.expires_at.unwrap().duration_since(week.processed_at);
    let kept = kept.unwrap().as_secs_f64();
    assert!((kept - 7.0 * 86_400.0).abs() < 5.0, "{kept}");
    let ago = SystemTime::now().duration_since(week.processed_at);
    assert!(ago.unwrap() < Duration::from_mins(1));
    assert!(!week.has_fingerprint);
    assert_eq!(week.result.as_deref(), Some(&b"7"[..]));
    assert_eq!(lookup(&pool, "weak", "1").await.unwrap(), None);

    let double = Double::new();
    let _ = transact!(&pool, tx => Verify::record(tx, "a b", &double)).await;
    let ever = lookup(&pool, Verify::SCOPE, "a%20b")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((ever.expires_at, ever.result), (None, None));

    // To the microsecond.
    db.run(match DB::KIND {
        Kind::Sqlite => "UPDATE processed_messages SET processed_at = 946684799123457",
        _ => "UPDATE processed_messages SET processed_at = '1999-12-31 23:59:59.123457'",
    })
    .await;
    let ever = lookup(&pool, Verify::SCOPE, "a%20b")
        .await
        .unwrap()
        .unwrap();
    let since = ever.processed_at.duration_since(SystemTime::UNIX_EPOCH);
    assert_eq!(since.unwrap().as_micros(), 946_684_799_123_457);
}

async fn a_forgotten_key_runs_again<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    for id in ["1", "2"] {
        let _ = transact!(&pool, tx => week(tx, id)).await.unwrap();
    }
    assert!(!forget(&pool, "weak", "1").await.unwrap());
    assert!(forget(&pool, "week", "1").await.unwrap());
    assert!(!forget(&pool, "week", "1").await.unwrap());
    assert_eq!(lookup(&pool, "week", "1").await.unwrap(), None);
    let again = transact!(&pool, tx => week(tx, "1")).await.unwrap();
    assert_eq!(again, Replay::Processed(7));
    assert_eq!(db.stored("1").await, (1, 2));
    assert_eq!(db.stored("2").await, (1, 1));
}

async fn texts_that_no_handler_stores_are_refused<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => week(tx, "1")).await.unwrap();
    for (scope, key) in [
        ("", "1"),
        ("week ", "1"),
        ("wëek", "1"),
        ("week", "1 "),
        ("week", "' OR '1' = '1"),
        ("week", "1\0"),
        ("week", "ä"),
    ] {
        assert!(lookup(&pool, scope, key).await.is_err(), "{scope} {key}");
        assert!(forget(&pool, scope, key).await.is_err(), "{scope} {key}");
    }
    assert_eq!(lookup(&pool, "week", "WEEK").await.unwrap(), None);
    assert_eq!(lookup(&pool, "WEEK", "1").await.unwrap(), None);
    assert_eq!(db.stored("1").await, (1, 1));
}

async fn it_needs_select_and_delete_only<DB: Engine>(db: &Fresh<DB>) {
    db.prepare().await;
    fill(db, Rows("past", 250, -100, Some(-10))).await;
    fill(db, Rows("old", 250, -100, None)).await;
    fill(db, Rows("future", 5, -100, Some(1_000))).await;
    let options = DB::create_role(&db.options, "SELECT, DELETE")
        .await
        .unwrap();
    let pool = PoolOptions::<DB>::new()
        .connect_with(options)
        .await
        .unwrap();
    let pruned = quick(&pool)
        .older_than("old", Duration::from_secs(1))
        .run()
        .await
        .unwrap();
    assert_eq!(pruned.rows, 500);
    assert!(lookup(&pool, "future", "k000000").await.unwrap().is_some());
    assert!(forget(&pool, "future", "k000000").await.unwrap());
    assert_eq!(db.rows("processed_messages").await, 4);
}

/// Counts the indexes that begin with `expires_at`.
async fn indexes<DB: Engine>(db: &Fresh<DB>) -> i64 {
    db.number(match DB::KIND {
        Kind::Postgres => "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%(expires_at)%'",
        Kind::MariaDb => {
            "SELECT count(*) FROM information_schema.statistics WHERE table_schema = database() \
             AND column_name = 'expires_at'"
        }
        Kind::Sqlite => {
            "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND sql LIKE '%(expires_at)%'"
        }
    })
    .await
}

async fn drop_index<DB: Engine>(db: &Fresh<DB>) {
    db.run(match DB::KIND {
        Kind::MariaDb => "DROP INDEX expires_at ON processed_messages",
        _ => "DROP INDEX processed_messages_expires_at",
    })
    .await;
}

async fn an_existing_table_gets_the_index<DB: Engine>(db: &Fresh<DB>) {
    let pool = db.prepared(8).await;
    assert_eq!(indexes(db).await, 1);
    drop_index(db).await;
    fill(db, Rows("past", 250, -100, Some(-10))).await;
    // It is no fault, and pruning works.
    idempotent_runtime::verify_schema(&pool).await.unwrap();
    assert_eq!(quick(&pool).run().await.unwrap().rows, 250);

    let mut migrations = JoinSet::new();
    for _ in 0..8 {
        let pool = pool.clone();
        migrations.spawn(async move { migrate(&pool).await });
    }
    for migrated in migrations.join_all().await {
        migrated.unwrap();
    }
    assert_eq!(indexes(db).await, 1);

    // Any other that begins with the column will do.
    drop_index(db).await;
    db.run("CREATE INDEX by_hand ON processed_messages (expires_at)")
        .await;
    migrate(&pool).await.unwrap();
    assert_eq!(indexes(db).await, 1);
}

async fn without_create_no_index_is_made<DB: Engine>(db: &Fresh<DB>) {
    db.prepare().await;
    drop_index(db).await;
    let options = DB::create_role(&db.options, "SELECT, INSERT, DELETE").await;
    let pool = PoolOptions::<DB>::new().connect_with(options.unwrap());
    migrate(&pool.await.unwrap()).await.unwrap();
    assert_eq!(indexes(db).await, 0);

    // One that may make it does not wait for long either.
    let mut other = db.observer.begin().await.unwrap();
    DB::run(&mut other, "DELETE FROM processed_messages")
        .await
        .unwrap();
    migrate(&db.pool(1).await).await.unwrap();
    assert_eq!(indexes(db).await, 0);
    other.rollback().await.unwrap();
    migrate(&db.observer).await.unwrap();
    assert_eq!(indexes(db).await, 1);
}

async fn the_key_of_an_open_delivery_is_not_there_to_forget(db: &Fresh<Postgres>) {
    let pool = db.prepared(3).await;
    let (here, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let double = Double::planned([Act::Hold(Arc::clone(&here), Arc::clone(&go))]);
    let delivery = async { transact!(&pool, tx => Verify::record(tx, "1", &double)).await };
    let (outcome, ()) = tokio::join!(delivery, async {
        here.notified().await;
        assert_eq!(lookup(&pool, Verify::SCOPE, "1").await.unwrap(), None);
        assert!(!forget(&pool, Verify::SCOPE, "1").await.unwrap());
        go.add_permits(1);
    });
    assert_eq!(outcome.unwrap(), Outcome::Processed(()));
    assert_eq!(db.stored("1").await, (1, 1));
}

async fn without_update_a_batch_waits_for_who_holds_a_row(db: &Fresh<Postgres>) {
    db.prepare().await;
    fill(db, Rows("past", 250, -100, Some(-10))).await;
    let options = Postgres::create_role(&db.options, "SELECT, DELETE").await;
    let pool = PoolOptions::<Postgres>::new().connect_with(options.unwrap());
    let pool = pool.await.unwrap();
    let mut other = db.observer.begin().await.unwrap();
    let hold = "SELECT 1 FROM processed_messages WHERE key = 'k000005' FOR UPDATE";
    Postgres::run(&mut other, hold).await.unwrap();
    let pruning = tokio::spawn(quick(&pool).run());
    db.until_waiting(1).await;
    other.rollback().await.unwrap();
    let pruned = pruning.await.unwrap().unwrap();
    assert_eq!((pruned.rows, pruned.contended), (250, false));
}
