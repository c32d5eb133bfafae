//! Messages per second in batches, against one message per transaction.
//!
//! Each message has a real effect, a row in a table of payments; a batch writes
//! its rows in one statement. Every side runs once per round, in turn, and the
//! ratios are taken within the round. The pool is a default one of eight
//! connections; on SQLite the log is written ahead and synchronized at each
//! commit, as the servers do by default.
//!
//! ```text
//! cargo run --release -p idempotent-benches --bin batch -- <URL> [rounds] [messages]
//! ```
//!
//! The URL is one of Postgres, MariaDB, or `sqlite:<directory>`.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use idempotent_benches::{
    Args, Failed, Kind, Place, Server, Spread, at_once, exit, interleave, on_server, run,
};
use idempotent_runtime::{idempotent, migrate, transact};
use sqlx::{MySql, Pool, Postgres, Sqlite, Transaction};

const USAGE: &str = "usage: batch <postgres, mysql or sqlite URL> [rounds] [messages per round]\n\
     by default 9 rounds of 4000 messages; whole thousands";
const LARGEST: i64 = 1_000;

#[derive(Clone, Copy)]
struct Paid {
    id: i64,
}

#[idempotent(key = "paid.id", scope = "bench.paid")]
async fn one<DB: Server>(tx: &mut Transaction<'_, DB>, paid: Paid) -> sqlx::Result<()> {
    DB::pay(tx, paid.id).await
}

#[idempotent(key = "paid.id", each = "paid in batch", scope = "bench.paid")]
async fn many<DB: Server>(tx: &mut Transaction<'_, DB>, batch: Vec<Paid>) -> sqlx::Result<()> {
    let ids: Vec<i64> = batch.iter().map(|paid| paid.id).collect();
    DB::pay_all(tx, &ids).await
}

/// How the messages are taken.
#[derive(Clone, Copy)]
enum Way {
    /// So many workers, each one message per transaction.
    Single { workers: i64 },
    /// One worker, so many messages per transaction.
    Batch { size: i64 },
}

const WAYS: [(&str, Way); 5] = [
    ("one by one", Way::Single { workers: 1 }),
    ("eight at once", Way::Single { workers: 8 }),
    ("batches of 10", Way::Batch { size: 10 }),
    ("batches of 100", Way::Batch { size: 100 }),
    ("batches of 1 000", Way::Batch { size: LARGEST }),
];

/// What the messages are.
#[derive(Clone, Copy)]
enum Workload {
    New,
    Duplicate,
}

struct Bench<DB: Server> {
    pool: Pool<DB>,
    next: AtomicI64,
    messages: i64,
}

impl<DB: Server> Bench<DB> {
    /// Returns the seconds that the messages took.
    async fn round(&self, way: Way, workload: Workload) -> Result<f64, Failed> {
        let (first, expected) = match workload {
            Workload::New => {
                let first = self.next.fetch_add(self.messages, Ordering::Relaxed);
                (first, self.messages)
            }
            Workload::Duplicate => (0, 0),
        };
        let end = first + self.messages;
        let (workers, size) = match way {
            Way::Single { workers } => (workers, 1),
            Way::Batch { size } => (1, size),
        };
        let processed = Arc::new(AtomicI64::new(0));
        let time = at_once(workers, |worker| {
            let (pool, processed) = (self.pool.clone(), Arc::clone(&processed));
            async move {
                let mut id = first + worker * size;
                while id < end {
                    let fresh = match way {
                        Way::Single { .. } => single(&pool, Paid { id }).await?,
                        Way::Batch { .. } => batch(&pool, id..id + size).await?,
                    };
                    processed.fetch_add(fresh, Ordering::Relaxed);
                    id += workers * size;
                }
                Ok(())
            }
        })
        .await?;
        if processed.load(Ordering::Relaxed) != expected {
            return Err("the messages were not what they should be".into());
        }
        Ok(time.as_secs_f64())
    }
}

/// Returns how many messages were processed.
async fn single<DB: Server>(pool: &Pool<DB>, paid: Paid) -> sqlx::Result<i64> {
    let outcome = transact!(pool, tx => one(tx, paid)).await?;
    Ok(i64::from(!outcome.is_duplicate()))
}

/// Returns how many messages were processed.
async fn batch<DB: Server>(pool: &Pool<DB>, ids: Range<i64>) -> sqlx::Result<i64> {
    let messages: Vec<Paid> = ids.map(|id| Paid { id }).collect();
    let batch = transact!(pool, tx => many(tx, messages.clone())).await?;
    Ok(batch.processed().try_into().unwrap_or(i64::MAX))
}

async fn compare<DB: Server>(
    place: &mut Place<DB>,
    rounds: usize,
    messages: u32,
) -> Result<(), Failed> {
    let pool = place.schema("messages", 8).await?;
    run(&pool, DB::PAYMENTS).await?;
    migrate(&pool).await?;
    let bench = Bench {
        pool,
        next: AtomicI64::new(0),
        messages: i64::from(messages),
    };
    // The first messages are those that come again.
    bench
        .round(Way::Batch { size: LARGEST }, Workload::New)
        .await?;

    let sides: Vec<(Way, Workload)> = [Workload::New, Workload::Duplicate]
        .into_iter()
        .flat_map(|workload| WAYS.map(|(_, way)| (way, workload)))
        .collect();
    let times = interleave(rounds, &sides, async |(way, workload)| {
        bench.round(way, workload).await
    })
    .await?;

    println!(
        "\n{}, {rounds} rounds of {messages} messages; median (lowest–highest)\n",
        DB::TITLE
    );
    println!(
        "| messages | new: messages/s | of one by one | the same, all duplicates: messages/s | of one by one |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let (new, duplicates) = times.split_at(WAYS.len());
    for (((name, _), new_times), times) in WAYS.iter().zip(new).zip(duplicates) {
        let rate = |times: &[f64]| Spread::new(times.iter().map(|time| f64::from(messages) / time));
        println!(
            "| {name} | {:.0} | {:.2} | {:.0} | {:.2} |",
            rate(new_times).median,
            Spread::of_ratios(&new[0], new_times),
            rate(times).median,
            Spread::of_ratios(&duplicates[0], times),
        );
    }
    Ok(())
}

async fn program() -> Result<(), Failed> {
    let mut args = Args::new(USAGE);
    let url = args.text("URL")?;
    let rounds = args.number("number of rounds", 9, 1)?;
    let messages = args.number("number of messages", 4_000, 1_000)?;
    if i64::from(messages) % LARGEST != 0 {
        return Err(args.refused("the messages must be whole thousands"));
    }
    args.end()?;
    match Kind::of(&url)? {
        Kind::Postgres => {
            on_server::<Postgres>(&url, "batch", async |place| {
                compare(place, rounds, messages).await
            })
            .await
        }
        Kind::MariaDb => {
            on_server::<MySql>(&url, "batch", async |place| {
                compare(place, rounds, messages).await
            })
            .await
        }
        Kind::Sqlite => {
            on_server::<Sqlite>(&url, "batch", async |place| {
                compare(place, rounds, messages).await
            })
            .await
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit(program().await)
}
