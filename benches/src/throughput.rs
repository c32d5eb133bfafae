//! Messages per second on Postgres: our handler against the hand-written consumer.
//!
//! Every side runs once per round, in turn, so that a machine that slows down slows all of them;
//! what is printed are medians of the ratios within a round.
//!
//! ```text
//! cargo run --release -p idempotent-benches -- [postgres URL] [rounds] [messages]
//! ```

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use idempotent_runtime::{Outcome, idempotent, migrate, transact};
use sqlx::postgres::{PgPool, PgPoolOptions, Postgres};
use sqlx::{Executor, Transaction, query};
use tokio::task::JoinSet;

const USAGE: &str = "usage: throughput [postgres URL] [rounds] [messages]";
const LOCAL: &str = "postgres://postgres@%2Fvar%2Frun%2Fpostgresql/postgres";
const ACCOUNTS: i64 = 10_000;

#[idempotent(key = "id", scope = "verify")]
async fn verify(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<()> {
    effect(tx, id).await
}

#[idempotent(key = "id", scope = "savepoint", guard = "savepoint")]
async fn savepoint(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<()> {
    effect(tx, id).await
}

async fn effect(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<()> {
    query("UPDATE accounts SET balance = balance + 1 WHERE id = $1")
        .bind(id % ACCOUNTS)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The consumer as people write it by hand.
async fn hand_written(pool: &PgPool, id: i64) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    let inserted = query("INSERT INTO inbox (id) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(id.to_string())
        .execute(&mut *tx)
        .await?;
    if inserted.rows_affected() == 1 {
        effect(&mut tx, id).await?;
    }
    tx.commit().await
}

async fn by_hand(pool: &PgPool, guard: Consumer, id: i64) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    let outcome: Outcome<()> = match guard {
        Consumer::Savepoint => savepoint(&mut tx, id).await?,
        _ => verify(&mut tx, id).await?,
    };
    std::hint::black_box(outcome.is_duplicate());
    tx.commit().await
}

#[derive(Clone, Copy, PartialEq)]
enum Consumer {
    HandWritten,
    Verify,
    Savepoint,
    Transact,
}

#[derive(Clone, Copy, PartialEq)]
enum Pool {
    Default,
    WithoutPing,
}

#[derive(Clone, Copy)]
struct Side(Consumer, Pool);

impl Display for Side {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Consumer::HandWritten => "hand-written",
            Consumer::Verify => "verify",
            Consumer::Savepoint => "savepoint",
            Consumer::Transact => "transact!",
        })?;
        f.write_str(match self.1 {
            Pool::Default => ", default pool",
            Pool::WithoutPing => ", without ping",
        })
    }
}

const SIDES: [Side; 8] = [
    Side(Consumer::HandWritten, Pool::Default),
    Side(Consumer::HandWritten, Pool::WithoutPing),
    Side(Consumer::Verify, Pool::Default),
    Side(Consumer::Verify, Pool::WithoutPing),
    Side(Consumer::Savepoint, Pool::Default),
    Side(Consumer::Savepoint, Pool::WithoutPing),
    Side(Consumer::Transact, Pool::Default),
    Side(Consumer::Transact, Pool::WithoutPing),
];

/// What the round's messages are.
#[derive(Clone, Copy)]
enum Workload {
    New,
    Duplicate,
}

struct Bench {
    pools: [PgPool; 2],
    next: Arc<AtomicI64>,
    messages: u32,
}

impl Bench {
    async fn round(&self, side: Side, at_once: i64, workload: Workload) -> sqlx::Result<Duration> {
        let first = match workload {
            Workload::New => self
                .next
                .fetch_add(i64::from(self.messages), Ordering::Relaxed),
            Workload::Duplicate => 0,
        };
        let pool = &self.pools[usize::from(side.1 == Pool::WithoutPing)];
        let start = Instant::now();
        let mut workers: JoinSet<sqlx::Result<()>> = JoinSet::new();
        for worker in 0..at_once {
            let ids = (first + worker..first + i64::from(self.messages))
                .step_by(usize::try_from(at_once).unwrap_or(1));
            let pool = pool.clone();
            workers.spawn(async move {
                for id in ids {
                    match side.0 {
                        Consumer::HandWritten => hand_written(&pool, id).await?,
                        Consumer::Transact => {
                            let outcome: Outcome<()> =
                                transact!(&pool, tx => verify(tx, id)).await?;
                            std::hint::black_box(outcome.is_duplicate());
                        }
                        guard => by_hand(&pool, guard, id).await?,
                    }
                }
                Ok(())
            });
        }
        while let Some(done) = workers.join_next().await {
            done.map_err(|error| sqlx::Error::AnyDriverError(Box::new(error)))??;
        }
        Ok(start.elapsed())
    }

    async fn compare(&self, rounds: usize, at_once: i64, workload: Workload) -> sqlx::Result<()> {
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); SIDES.len()];
        for round in 0..=rounds {
            for (times, side) in times.iter_mut().zip(SIDES) {
                let time = self.round(side, at_once, workload).await?.as_secs_f64();
                if round > 0 {
                    times.push(time); // the first round warms up
                }
            }
            eprint!("\rround {round} of {rounds} ");
        }
        eprintln!();
        for (row, side) in times.iter().zip(SIDES) {
            let same_pool = usize::from(side.1 == Pool::WithoutPing);
            println!(
                "| {side} | {:.0} | {} | {} |",
                median(row.iter().map(|time| f64::from(self.messages) / time)).1,
                ratio(&times[same_pool], row),
                ratio(&times[0], row),
            );
        }
        Ok(())
    }
}

/// How many times as fast as the base, within each round.
fn ratio(base: &[f64], side: &[f64]) -> String {
    let (low, middle, high) = median(base.iter().zip(side).map(|(base, side)| base / side));
    format!("{middle:.2} ({low:.2}–{high:.2})")
}

fn median(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| LOCAL.to_owned());
    let rounds = args
        .next()
        .map_or(Ok(9), |rounds| rounds.parse())
        .map_err(|_| USAGE)?;
    let messages = args
        .next()
        .map_or(Ok(400), |messages| messages.parse())
        .map_err(|_| USAGE)?;

    let admin = PgPool::connect(&url).await?;
    let schema = format!("throughput_{}", std::process::id());
    admin
        .execute(sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}")))
        .await?;
    let result = run(&url, &schema, rounds, messages).await;
    admin
        .execute(sqlx::AssertSqlSafe(format!("DROP SCHEMA {schema} CASCADE")))
        .await?;
    result
}

async fn run(
    url: &str,
    schema: &str,
    rounds: usize,
    messages: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let options: sqlx::postgres::PgConnectOptions = url.parse()?;
    let options = options.options([("search_path", schema)]);
    let pool = |test| {
        PgPoolOptions::new()
            .max_connections(8)
            .test_before_acquire(test)
            .connect_with(options.clone())
    };
    let pools = [pool(true).await?, pool(false).await?];
    pools[0].execute("CREATE TABLE inbox (id text PRIMARY KEY, processed_at timestamptz NOT NULL DEFAULT now())").await?;
    pools[0]
        .execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)")
        .await?;
    let fill = query("INSERT INTO accounts SELECT n, 0 FROM generate_series(0, $1 - 1) AS n")
        .bind(ACCOUNTS);
    pools[0].execute(fill).await?;
    migrate(&pools[0]).await?;

    let bench = Bench {
        pools,
        next: Arc::new(AtomicI64::new(i64::from(messages))),
        messages,
    };
    for (workload, name) in [
        (Workload::New, "new messages"),
        (Workload::Duplicate, "duplicates"),
    ] {
        for at_once in [1, 8] {
            println!("\n{name}, {at_once} at once, {rounds} rounds of {messages} messages\n");
            println!(
                "| side | messages/s | of hand-written, same pool | of hand-written, default pool |"
            );
            println!("| --- | --- | --- | --- |");
            bench.compare(rounds, at_once, workload).await?;
        }
    }
    Ok(())
}
