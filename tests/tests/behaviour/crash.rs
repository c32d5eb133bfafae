//! Consumers that are killed, and what they leave behind: nothing.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use idempotent_runtime::{Outcome, transact};
use idempotent_tests::{
    Act, AppError, CutAt, Double, Engine, Fresh, Guarded, Kind, Moment, is_full, until,
};
use sqlx::{ConnectOptions as _, Pool};
use tokio::task::JoinSet;

with_every_guard!(
    a_killed_consumers_message_runs_again_at_once,
    errors_cuts_and_panics_leave_no_locks_and_no_transactions,
);

async fn a_killed_consumers_message_runs_again_at_once<DB: Engine, G: Guarded>(db: &Fresh<DB>) {
    let pool = db.prepared(2).await;
    let url = db.options.to_url_lossy().to_string();
    let mut consumer = Command::new(env!("CARGO_BIN_EXE_stuck-consumer"))
        .args([&url, G::SCOPE, "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let stdout = consumer.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut said).unwrap();
    assert_eq!(said, "stuck\n");
    assert_eq!(db.stored("1").await, (0, 0));

    // SIGKILL.
    consumer.kill().unwrap();
    consumer.wait().unwrap();
    let double = Double::new();
    let delivery = async { transact!(&pool, tx => G::record(tx, "1", &double)).await };
    let outcome = tokio::time::timeout(Duration::from_secs(10), delivery).await;
    assert_eq!(outcome.unwrap().unwrap(), Outcome::Processed(()));
    assert_eq!(db.stored("1").await, (1, 1));
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

async fn errors_cuts_and_panics_leave_no_locks_and_no_transactions<DB: Engine, G: Guarded>(
    db: &Fresh<DB>,
) {
    let pool = db.prepared(8).await;
    let messages = if is_full() { 1_000 } else { 300 };
    let mut tasks = JoinSet::new();
    for worker in 0..10 {
        let pool = pool.clone();
        tasks.spawn(async move {
            let mut random = Random(0x5eed + worker);
            for message in (worker..messages).step_by(10) {
                misfortune::<DB, G>(&pool, &message.to_string(), &mut random).await;
            }
        });
    }
    for worker in tasks.join_all().await {
        let () = worker;
    }

    // Everything comes again until it is done.
    let double = Double::new();
    for message in 0..messages {
        let id = message.to_string();
        let _ = transact!(&pool, tx => G::record(tx, &id, &double))
            .await
            .unwrap();
    }
    let messages = i64::try_from(messages).unwrap();
    assert_eq!(db.rows("processed_messages").await, messages);
    assert_eq!(db.rows("effects").await, messages);
    assert_eq!(
        db.number("SELECT count(DISTINCT id) FROM effects").await,
        messages
    );
    db.until_idle().await;
    assert_no_locks(db, &pool).await;
}

/// Three deliveries, each of which may fail, panic, or be cut at any poll.
async fn misfortune<DB: Engine, G: Guarded>(pool: &Pool<DB>, id: &str, random: &mut Random) {
    for _ in 0..3 {
        let plan = match random.below(4) {
            0 => vec![Act::Refuse],
            1 => vec![Act::Panic],
            _ => vec![],
        };
        let polls = u32::try_from(random.below(24)).unwrap() + 1;
        let moment = Moment::ALL[usize::try_from(random.below(2)).unwrap()];
        let (pool, id) = (pool.clone(), id.to_owned());
        let delivery = tokio::spawn(async move {
            let double = Arc::new(Double::planned(plan));
            let delivery = async { transact!(&pool, tx => G::record(tx, &id, &double)).await };
            CutAt::new(polls, moment, delivery).await
        });
        match delivery.await {
            Ok(None | Some(Ok(_) | Err(AppError::Refused))) => {}
            Ok(Some(Err(error))) => panic!("{error:?}"),
            Err(error) => assert!(error.is_panic()),
        }
    }
}

async fn assert_no_locks<DB: Engine>(db: &Fresh<DB>, pool: &Pool<DB>) {
    match DB::KIND {
        Kind::Postgres => {
            let advisory = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            assert_eq!(db.number(advisory).await, 0);
        }
        Kind::MariaDb => {
            // `GET_LOCK` belongs to a session: each is asked.
            let mut conns = Vec::new();
            while let Some(mut conn) = pool.try_acquire() {
                let released = "SELECT CAST(RELEASE_ALL_LOCKS() AS SIGNED)";
                assert_eq!(DB::number(&mut conn, released).await.unwrap(), 0);
                conns.push(conn);
            }
            assert!(!conns.is_empty());
        }
        Kind::Sqlite => {}
    }
    until("all connections are back", async || {
        usize::try_from(pool.size()).unwrap() == pool.num_idle()
    })
    .await;
}
