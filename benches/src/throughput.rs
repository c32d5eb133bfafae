//! Messages per second on Postgres: our handler against the hand-written consumer.
//!
//! Every side runs once per round, in turn, so that a machine that slows down slows all of them;
//! what is printed are medians of the ratios within a round.
//!
//! ```text
//! cargo run --release -p idempotent-benches -- [postgres URL] [rounds] [messages]
//! ```

use std::fmt::{self, Display, Formatter};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use idempotent_benches::{Args, Failed, Place, Spread, at_once, exit, interleave, on_server, run};
use idempotent_runtime::{Outcome, idempotent, migrate, transact};
use sqlx::postgres::{PgPool, PgPoolOptions, Postgres};
use sqlx::{Executor, Transaction, query};

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
    black_box(outcome.is_duplicate());
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
    next: AtomicI64,
    messages: u32,
}

impl Bench {
    async fn round(
        &self,
        side: Side,
        workers: i64,
        workload: Workload,
    ) -> Result<Duration, Failed> {
        let messages = i64::from(self.messages);
        let first = match workload {
            Workload::New => self.next.fetch_add(messages, Ordering::Relaxed),
            Workload::Duplicate => 0,
        };
        let pool = &self.pools[usize::from(side.1 == Pool::WithoutPing)];
        at_once(workers, |worker| {
            let mut id = first + worker;
            let pool = pool.clone();
            async move {
                while id < first + messages {
                    match side.0 {
                        Consumer::HandWritten => hand_written(&pool, id).await?,
                        Consumer::Transact => {
                            let outcome: Outcome<()> =
                                transact!(&pool, tx => verify(tx, id)).await?;
                            black_box(outcome.is_duplicate());
                        }
                        guard => by_hand(&pool, guard, id).await?,
                    }
                    id += workers;
                }
                Ok(())
            }
        })
        .await
    }

    async fn compare(&self, rounds: usize, workers: i64, workload: Workload) -> Result<(), Failed> {
        let times = interleave(rounds, &SIDES, async |side| {
            Ok(self.round(side, workers, workload).await?.as_secs_f64())
        })
        .await?;
        for (row, side) in times.iter().zip(SIDES) {
            let same_pool = usize::from(side.1 == Pool::WithoutPing);
            println!(
                "| {side} | {:.0} | {:.2} | {:.2} |",
                Spread::new(row.iter().map(|time| f64::from(self.messages) / time)).median,
                Spread::of_ratios(&times[same_pool], row),
                Spread::of_ratios(&times[0], row),
            );
        }
        Ok(())
    }
}

async fn program() -> Result<(), Failed> {
    let mut args = Args::new(USAGE);
    let url = args.optional()?.unwrap_or_else(|| LOCAL.to_owned());
    let rounds = args.number("number of rounds", 9, 1)?;
    let messages = args.number("number of messages", 400, 1)?;
    args.end()?;
    on_server(&url, "throughput", async |place| {
        measure(place, rounds, messages).await
    })
    .await
}

async fn measure(place: &mut Place<Postgres>, rounds: usize, messages: u32) -> Result<(), Failed> {
    let pool = |ping| {
        PgPoolOptions::new()
            .max_connections(8)
            .test_before_acquire(ping)
    };
    let pools = place
        .schema_with("messages", [pool(true), pool(false)])
        .await?;
    for table in [
        "CREATE TABLE inbox (id text PRIMARY KEY, processed_at timestamptz NOT NULL DEFAULT now())",
        "CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)",
    ] {
        run(&pools[0], table).await?;
    }
    let fill = query("INSERT INTO accounts SELECT n, 0 FROM generate_series(0, $1 - 1) AS n")
        .bind(ACCOUNTS);
    pools[0].execute(fill).await?;
    migrate(&pools[0]).await?;

    let bench = Bench {
        pools,
        next: AtomicI64::new(i64::from(messages)),
        messages,
    };
    for (workload, name) in [
        (Workload::New, "new messages"),
        (Workload::Duplicate, "duplicates"),
    ] {
        for workers in [1, 8] {
            println!("\n{name}, {workers} at once, {rounds} rounds of {messages} messages\n");
            println!(
                "| side | messages/s | of hand-written, same pool | of hand-written, default pool |"
            );
            println!("| --- | --- | --- | --- |");
            bench.compare(rounds, workers, workload).await?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    exit(program().await)
}
