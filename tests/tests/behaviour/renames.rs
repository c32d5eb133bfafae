//! A handler that had another name, beside the release that still has it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use idempotent_runtime::{Attempts, Outcome, Replay, idempotent, transact};
use idempotent_tests::{Act, AppError, Double, Engine, Fresh, Kind, is_full};
use sqlx::{Pool, Transaction};
use tokio::task::JoinSet;

on_every_database!(
    what_was_processed_under_the_old_name_is_a_duplicate,
    what_is_processed_now_is_a_duplicate_for_the_old_release,
    other_parts_stand_for_the_same_message,
    several_earlier_names,
    a_failure_leaves_no_name_behind,
    a_missing_part_of_an_earlier_key_is_a_missing_key,
    the_result_and_the_fingerprint_are_those_of_the_old_row,
    a_derived_id_does_not_change,
    a_new_name_that_cannot_be_taken_back_is_an_error,
    two_releases_side_by_side_run_each_message_once,
);

struct Order {
    id: u32,
    number: String,
}

fn order(id: u32) -> Order {
    Order {
        id,
        number: format!("A-{id}"),
    }
}

#[idempotent(key(order.number), scope = "old", skip(double))]
async fn old<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    order: &Order,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, &order.id.to_string()).await
}

#[idempotent(key(order.number), scope = "renamed", was("old"), skip(double))]
async fn renamed<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    order: &Order,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, &order.id.to_string()).await
}

#[idempotent(
    key(order.id),
    scope = "by_id",
    was(scope = "renamed", key = "order.number"),
    was(scope = "old", key(order.number)),
    skip(double),
    guard = "savepoint"
)]
async fn by_id<DB: Engine>(
    tx: &mut Transaction<'_, DB>,
    order: &Order,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, &order.id.to_string()).await
}

async fn names<DB: Engine>(db: &Fresh<DB>) -> Vec<String> {
    db.texts("SELECT scope FROM processed_messages ORDER BY scope")
        .await
}

async fn what_was_processed_under_the_old_name_is_a_duplicate<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double, order) = (db.prepared(1).await, Double::new(), order(1));
    let _ = transact!(&pool, tx => old(tx, &order, &double))
        .await
        .unwrap();
    let now = transact!(&pool, tx => renamed(tx, &order, &double))
        .await
        .unwrap();
    assert_eq!(now, Outcome::Duplicate);
    assert_eq!(names(db).await, ["old"], "the new name is not left behind");
    // In one transaction, too.
    let mut tx = pool.begin().await.unwrap();
    let now = by_id(&mut tx, &order, &double).await.unwrap();
    assert_eq!(now, Outcome::Duplicate);
    tx.commit().await.unwrap();
    assert_eq!(names(db).await, ["old"]);
    assert_eq!(double.runs(), 1);
}

async fn what_is_processed_now_is_a_duplicate_for_the_old_release<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double, order) = (db.prepared(1).await, Double::new(), order(1));
    let _ = transact!(&pool, tx => renamed(tx, &order, &double))
        .await
        .unwrap();
    assert_eq!(names(db).await, ["old", "renamed"]);
    let back = transact!(&pool, tx => old(tx, &order, &double))
        .await
        .unwrap();
    assert_eq!(back, Outcome::Duplicate);
    assert_eq!(double.runs(), 1);
}

async fn other_parts_stand_for_the_same_message<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let (one, two) = (order(1), order(2));
    let _ = transact!(&pool, tx => old(tx, &one, &double))
        .await
        .unwrap();
    let now = transact!(&pool, tx => by_id(tx, &one, &double))
        .await
        .unwrap();
    assert_eq!(now, Outcome::Duplicate);
    let now = transact!(&pool, tx => by_id(tx, &two, &double))
        .await
        .unwrap();
    assert_eq!(now, Outcome::Processed(()));
    let now = transact!(&pool, tx => by_id(tx, &two, &double))
        .await
        .unwrap();
    assert_eq!(now, Outcome::Duplicate);
}

async fn several_earlier_names<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double, order) = (db.prepared(1).await, Double::new(), order(1));
    let _ = transact!(&pool, tx => by_id(tx, &order, &double))
        .await
        .unwrap();
    assert_eq!(names(db).await, ["by_id", "old", "renamed"]);
    for _ in 0..2 {
        let back = transact!(&pool, tx => renamed(tx, &order, &double))
            .await
            .unwrap();
        assert_eq!(back, Outcome::Duplicate);
        let back = transact!(&pool, tx => old(tx, &order, &double))
            .await
            .unwrap();
        assert_eq!(back, Outcome::Duplicate);
    }
    assert_eq!(double.runs(), 1);
}

async fn a_failure_leaves_no_name_behind<DB: Engine>(db: &Fresh<DB>) {
    let (pool, order) = (db.prepared(1).await, order(1));
    // By hand, without a roll-back.
    for guard in ["verify", "savepoint"] {
        let double = Double::planned([Act::Refuse]);
        let mut tx = pool.begin().await.unwrap();
        let said = match guard {
            "verify" => renamed(&mut tx, &order, &double).await,
            _ => by_id(&mut tx, &order, &double).await,
        };
        assert!(matches!(said, Err(AppError::Refused)), "{said:?}");
        tx.commit().await.unwrap();
        assert_eq!(names(db).await, [""; 0], "{guard}");
    }
    let double = Double::new();
    let now = transact!(&pool, tx => renamed(tx, &order, &double))
        .await
        .unwrap();
    assert_eq!(now, Outcome::Processed(()));
}

async fn a_missing_part_of_an_earlier_key_is_a_missing_key<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let order = Order {
        id: 1,
        number: String::new(),
    };
    let said = transact!(&pool, tx => by_id(tx, &order, &double))
        .await
        .unwrap_err();
    assert!(
        matches!(&said, AppError::Idempotent(error) if error.is_missing_key()),
        "{said}"
    );
    assert_eq!(names(db).await, [""; 0]);
}

async fn the_result_and_the_fingerprint_are_those_of_the_old_row<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), fingerprint(amount), scope = "pay.old", replay)]
    async fn pay_old<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: u32,
        amount: i64,
    ) -> Result<i64, AppError> {
        let _ = tx;
        Ok(amount)
    }

    #[idempotent(key(id), fingerprint(amount), scope = "pay", was("pay.old"), replay)]
    async fn pay<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: u32,
        amount: i64,
    ) -> Result<i64, AppError> {
        let _ = tx;
        Ok(amount + 1000)
    }

    #[idempotent(
        key(id),
        fingerprint(amount),
        scope = "pay.sp",
        was("pay.old"),
        replay,
        guard = "savepoint"
    )]
    async fn pay_under_savepoint<DB: Engine>(
        tx: &mut Transaction<'_, DB>,
        id: u32,
        amount: i64,
    ) -> Result<i64, AppError> {
        let _ = tx;
        Ok(amount + 2000)
    }

    let pool = db.prepared(1).await;
    let _ = transact!(&pool, tx => pay_old(tx, 1, 10)).await.unwrap();
    let now = transact!(&pool, tx => pay(tx, 1, 10)).await.unwrap();
    assert_eq!(now, Replay::Replayed(10));
    let said = transact!(&pool, tx => pay(tx, 1, 99)).await.unwrap_err();
    assert!(
        matches!(&said, AppError::Idempotent(error) if error.is_key_reused()),
        "{said}"
    );
    // The release is rolled back: the old one finds what the new one did.
    let now = transact!(&pool, tx => pay(tx, 2, 10)).await.unwrap();
    assert_eq!(now, Replay::Processed(1010));
    let back = transact!(&pool, tx => pay_old(tx, 2, 10)).await.unwrap();
    assert_eq!(back, Replay::Replayed(1010));
    let now = transact!(&pool, tx => pay_under_savepoint(tx, 3, 10))
        .await
        .unwrap();
    assert_eq!(now, Replay::Processed(2010));
    let back = transact!(&pool, tx => pay_old(tx, 3, 10)).await.unwrap();
    assert_eq!(back, Replay::Replayed(2010));
    let again = transact!(&pool, tx => pay_under_savepoint(tx, 3, 10))
        .await
        .unwrap();
    assert_eq!(again, Replay::Replayed(2010));
}

/// On Postgres the failure takes the transaction along, in which another message was processed.
async fn a_new_name_that_cannot_be_taken_back_is_an_error<DB: Engine>(db: &Fresh<DB>) {
    let (pool, double) = (db.prepared(1).await, Double::new());
    let (one, two) = (order(1), order(2));
    let _ = transact!(&pool, tx => old(tx, &one, &double))
        .await
        .unwrap();
    db.run(match DB::KIND {
        Kind::Postgres => {
            "CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS \
             $$BEGIN RAISE 'refused' USING ERRCODE = '40001'; END$$; \
             CREATE TRIGGER refuses BEFORE DELETE ON processed_messages \
             FOR EACH ROW EXECUTE FUNCTION refuses()"
        }
        Kind::MariaDb => {
            "CREATE TRIGGER refuses BEFORE DELETE ON processed_messages \
             FOR EACH ROW SIGNAL SQLSTATE '45000'"
        }
        Kind::Sqlite => {
            "CREATE TRIGGER refuses BEFORE DELETE ON processed_messages \
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        }
    })
    .await;
    let mut tx = pool.begin().await.unwrap();
    let other = old(&mut tx, &two, &double).await.unwrap();
    assert_eq!(other, Outcome::Processed(()));
    let error = renamed(&mut tx, &one, &double).await.unwrap_err();
    let AppError::Idempotent(error) = error else {
        panic!("{error:?}");
    };
    assert_eq!(
        error.is_retryable(),
        DB::KIND == Kind::Postgres,
        "{error:?}"
    );
}

async fn a_derived_id_does_not_change<DB: Engine>(db: &Fresh<DB>) {
    #[idempotent(key(id), scope = "a", bind = claim)]
    async fn a<DB: Engine>(tx: &mut Transaction<'_, DB>, id: u32) -> Result<String, AppError> {
        let _ = tx;
        Ok(claim.derive("charge").to_string())
    }

    #[idempotent(key(id), scope = "c", was("b"), was("a"), bind = claim)]
    async fn c<DB: Engine>(tx: &mut Transaction<'_, DB>, id: u32) -> Result<String, AppError> {
        let _ = tx;
        Ok(claim.derive("charge").to_string())
    }

    let pool = db.prepared(1).await;
    // Each in a transaction that is rolled back, so that both run.
    let mut tx = pool.begin().await.unwrap();
    let before = a(&mut tx, 7).await.unwrap().processed();
    tx.rollback().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let now = c(&mut tx, 7).await.unwrap().processed();
    tx.rollback().await.unwrap();
    assert!(before.is_some());
    assert_eq!(before, now);
}

/// A small generator: the test names its seed.
fn random(state: &AtomicU64) -> u64 {
    let mut value = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Ends any session of the database, in whatever it does; says whether there was one.
async fn kill_any<DB: Engine>(observer: &Pool<DB>) -> bool {
    let Some(any) = DB::ANY_SESSION else {
        return false;
    };
    // The other observer may be the victim, and this one be cut off.
    let Ok(mut conn) = observer.acquire().await else {
        return false;
    };
    match DB::number(&mut conn, any).await {
        Ok(session) if session > 0 => DB::run(&mut conn, &DB::kill(session)).await.is_ok(),
        _ => false,
    }
}

/// Two releases, each delivery by one of them, refused, rolled back, cut off or
/// killed at random, until each message was acknowledged by both: the old one
/// runs again at the end, as after a roll-back of the release.
async fn two_releases_side_by_side_run_each_message_once<DB: Engine>(db: &Fresh<DB>) {
    struct Chances {
        state: AtomicU64,
        kills: AtomicU64,
    }

    async fn deliver<DB: Engine>(
        pool: &Pool<DB>,
        observer: &Pool<DB>,
        order: &Order,
        chances: &Chances,
        is_old: bool,
    ) {
        loop {
            let chance = random(&chances.state);
            let double = if chance.is_multiple_of(7) {
                Double::planned([Act::Refuse])
            } else {
                Double::new()
            };
            if chance % 11 == 2 && kill_any(observer).await {
                chances.kills.fetch_add(1, Ordering::SeqCst);
            }
            let attempts = Attempts::on(pool).attempts(20);
            if chance % 5 == 1 {
                // Claimed, written, and gone: a process that is killed.
                let Ok(mut tx) = pool.begin().await else {
                    continue;
                };
                let _ = if is_old {
                    old(&mut tx, order, &double).await
                } else {
                    by_id(&mut tx, order, &double).await
                };
                drop(tx);
                continue;
            }
            let outcome = if is_old {
                transact!(attempts, tx => old(tx, order, &double)).await
            } else {
                transact!(attempts, tx => by_id(tx, order, &double)).await
            };
            match outcome {
                Ok(_) => return,
                Err(AppError::Refused) => {}
                Err(error) if error.is_retryable() => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    let pool = db.prepared(6).await;
    let messages = if is_full() { 2_000 } else { 60 };
    let chances = Arc::new(Chances {
        state: AtomicU64::new(42),
        kills: AtomicU64::new(0),
    });
    let mut workers = JoinSet::new();
    for worker in 0..6_u32 {
        let (pool, observer) = (pool.clone(), db.observer.clone());
        let chances = Arc::clone(&chances);
        workers.spawn(async move {
            for id in 0..messages {
                // Both releases see every message, from both ends.
                let id = if worker % 3 == 0 {
                    messages - 1 - id
                } else {
                    id
                };
                let is_old = worker.is_multiple_of(2);
                deliver(&pool, &observer, &order(id), &chances, is_old).await;
            }
        });
    }
    workers.join_all().await;
    for id in 0..messages {
        deliver(&pool, &db.observer, &order(id), &chances, true).await;
    }
    let kills = chances.kills.load(Ordering::SeqCst);
    println!("messages={messages} kills={kills}");
    assert_eq!(kills > 0, DB::ANY_SESSION.is_some());
    // Its connections may have been killed.
    let observer = db.pool(1).await;
    let effects = "SELECT id FROM effects";
    let stored = DB::texts(&mut observer.acquire().await.unwrap(), effects).await;
    let mut effects: HashMap<String, usize> = HashMap::new();
    for id in stored.unwrap() {
        *effects.entry(id).or_default() += 1;
    }
    assert_eq!(effects.len(), usize::try_from(messages).unwrap(), "lost");
    let doubled: Vec<_> = effects.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
}
