//! How long a message takes beside a pruner at work, and without one.
//!
//! Four workers claim with `retain`, write a row and commit; half of the table's
//! rows have expired. Periods without and with a pruner (as it is by default) take
//! turns; the ratios are taken within a round. Before each period the table is put
//! back to its size, and on Postgres vacuumed, with a checkpoint. The pruner is at
//! work to the end of its period: if it runs out of rows, the program says so and
//! fails.
//!
//! The workers send one message after the other, or at a rate: then the time that a
//! message waits for its turn counts, too.
//!
//! ```text
//! cargo run --release -p idempotent-benches --bin latency -- <URL> [rounds] [seconds] [rows] [messages per second]
//! ```
//!
//! The URL is one of Postgres, MariaDB, or `sqlite:<directory>`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use idempotent_benches::{
    Args, Failed, Kind, Place, Server, Spread, at_once, exit, interleave, number, on_server,
    quantile, run,
};
use idempotent_runtime::{idempotent, migrate, pruner, transact};
use sqlx::pool::PoolOptions;
use sqlx::{MySql, Pool, Postgres, Sqlite, Transaction};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until};

const USAGE: &str = "usage: latency <postgres, mysql or sqlite URL> [rounds] [seconds per period] [rows] [messages per second]\n\
     by default 9 rounds of 5 seconds, 1000000 rows, and 0 messages per second: one after the other";
const WORKERS: i64 = 4;
/// How many rows one statement writes.
const CHUNK: i64 = 250_000;
/// What a server may be behind with.
const AT_REST: i64 = 1_000;
/// Keys are in the order of time: expired ones, those that stay, new ones.
const FIRST_KEPT: i64 = 2_000_000_000_000_000_000;
const FIRST_NEW: i64 = 3_000_000_000_000_000_000;
const FIRST_EXPIRED: i64 = 1_000_000_000_000_000_000;

#[idempotent(key = "id", scope = "bench.latency", retain = "7 days")]
async fn paid<DB: Server>(tx: &mut Transaction<'_, DB>, id: i64) -> sqlx::Result<()> {
    DB::pay(tx, id).await
}

trait Expiring: Server {
    /// Writes the keys `{from}` to `{to}`, which expire `{days}` days from now, a
    /// millisecond apart.
    const FILL: &'static str;
    const SETTLE: &'static [&'static str];
    /// What is left to clean up behind a period; `None`: nothing.
    const BEHIND: Option<&'static str>;
    /// Whether any row has expired.
    const IS_DUE: &'static str;
}

impl Expiring for Postgres {
    const FILL: &'static str = "INSERT INTO processed_messages (scope, key, processed_at, expires_at) \
         SELECT 'bench.latency', n::text, t - interval '7 days', t \
         FROM (SELECT n, now() + {days} * interval '1 day' + (n - {to}) * interval '1 ms' AS t \
         FROM generate_series({from}::bigint, {to}) AS n) AS keys";
    const SETTLE: &'static [&'static str] = &["VACUUM ANALYZE processed_messages", "CHECKPOINT"];
    const BEHIND: Option<&'static str> = None;
    const IS_DUE: &'static str =
        "SELECT EXISTS (SELECT FROM processed_messages WHERE expires_at <= now())::int::bigint";
}

impl Expiring for MySql {
    const FILL: &'static str = "INSERT INTO processed_messages (scope, `key`, processed_at, expires_at) \
         SELECT 'bench.latency', n, t - INTERVAL 7 DAY, t \
         FROM (SELECT seq AS n, utc_timestamp(6) + INTERVAL {days} DAY \
         + INTERVAL (CAST(seq AS SIGNED) - {to}) * 1000 MICROSECOND AS t FROM seq_{from}_to_{to}) AS ids";
    const SETTLE: &'static [&'static str] = &[];
    /// Rows that are deleted, and not yet purged.
    const BEHIND: Option<&'static str> = Some(
        "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
         WHERE variable_name = 'INNODB_HISTORY_LIST_LENGTH'",
    );
    const IS_DUE: &'static str = "SELECT CAST(EXISTS (SELECT 1 FROM processed_messages \
         WHERE expires_at <= utc_timestamp(6)) AS SIGNED)";
}

impl Expiring for Sqlite {
    const FILL: &'static str = "INSERT INTO processed_messages (scope, key, processed_at, expires_at) \
         WITH RECURSIVE ids(n, t) AS (SELECT {from}, \
         CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + {days} * 86400000000 + ({from} - {to}) * 1000 \
         UNION ALL SELECT n + 1, t + 1000 FROM ids WHERE n < {to}) \
         SELECT 'bench.latency', CAST(n AS TEXT), t - 7 * 86400000000, t FROM ids";
    const SETTLE: &'static [&'static str] = &["PRAGMA wal_checkpoint(TRUNCATE)"];
    const BEHIND: Option<&'static str> = None;
    const IS_DUE: &'static str = "SELECT EXISTS (SELECT 1 FROM processed_messages \
         WHERE expires_at <= CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))";
}

#[derive(Clone, Copy, PartialEq)]
enum Period {
    Quiet,
    Pruning,
}

/// Of a period; times in milliseconds.
struct Measured {
    p50: f64,
    p99: f64,
    p999: f64,
    /// Per second.
    messages: f64,
    pruned: f64,
}

struct Bench<DB: Expiring> {
    pool: Pool<DB>,
    /// For the pruner.
    aside: Pool<DB>,
    seconds: u32,
    /// Between two messages of a worker.
    pace: Option<Duration>,
    /// The next message.
    next: Arc<AtomicI64>,
    next_expired: i64,
    /// Expired rows that are missing.
    missing: i64,
}

impl<DB: Expiring> Bench<DB> {
    /// Writes rows that expire so many days from now.
    async fn fill(&self, mut from: i64, rows: i64, days: i64) -> Result<(), Failed> {
        let end = from + rows;
        while from < end {
            let to = (from + CHUNK).min(end) - 1;
            let fill = DB::FILL
                .replace("{days}", &days.to_string())
                .replace("{from}", &from.to_string())
                .replace("{to}", &to.to_string());
            run(&self.pool, &fill).await?;
            from = to + 1;
        }
        Ok(())
    }

    /// Puts back what was pruned, and waits until the server has come to rest.
    async fn prepare(&mut self) -> Result<(), Failed> {
        self.fill(self.next_expired, self.missing, -1).await?;
        self.next_expired += self.missing;
        self.missing = 0;
        for settle in DB::SETTLE {
            run(&self.pool, settle).await?;
        }
        self.come_to_rest().await
    }

    async fn come_to_rest(&self) -> Result<(), Failed> {
        let Some(behind) = DB::BEHIND else {
            return Ok(());
        };
        let mut before = i64::MAX;
        loop {
            let left = number(&self.pool, behind).await?;
            if left <= AT_REST {
                return Ok(());
            }
            if left >= before {
                eprintln!("the server does not purge {left} transactions: does one stay open?");
                return Ok(());
            }
            before = left;
            sleep(Duration::from_secs(2)).await;
        }
    }

    async fn period(&mut self, period: Period) -> Result<Measured, Failed> {
        self.prepare().await?;
        if period == Period::Quiet {
            return self.work().await;
        }
        let start = Instant::now();
        let pruning = pruner(&self.aside)
            .on_error(|error| eprintln!("pruning: {error}"))
            .start()?;
        let worked = self.work().await;
        let pruned = pruning.stop().await;
        let seconds = start.elapsed().as_secs_f64();
        let mut measured = worked?;
        if number(&self.pool, DB::IS_DUE).await? == 0 {
            return Err(format!(
                "the pruner ran out of rows: it deleted {} in {seconds:.1} s; ask for more rows, or for fewer seconds",
                pruned.rows
            )
            .into());
        }
        self.missing = pruned.rows.try_into()?;
        measured.pruned = f64::from(u32::try_from(pruned.rows)?) / seconds;
        Ok(measured)
    }

    /// Lets the workers work; they report their times.
    async fn work(&self) -> Result<Measured, Failed> {
        let (report, mut reports) = mpsc::unbounded_channel();
        let (pace, length) = (self.pace, Duration::from_secs(self.seconds.into()));
        let time = at_once(WORKERS, |worker| {
            let (pool, next, report) = (self.pool.clone(), Arc::clone(&self.next), report.clone());
            async move {
                let start = Instant::now();
                let mut due = start;
                if let Some(pace) = pace {
                    due += pace * u32::try_from(worker)? / u32::try_from(WORKERS)?;
                }
                let mut times = Vec::new();
                while start.elapsed() < length {
                    let began = match pace {
                        Some(_) => due,
                        None => Instant::now(),
                    };
                    if let Some(pace) = pace {
                        sleep_until(due.into()).await;
                        due += pace;
                    }
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    if transact!(&pool, tx => paid(tx, id)).await?.is_duplicate() {
                        return Err("a message came twice".into());
                    }
                    times.push(began.elapsed().as_secs_f64() * 1e3);
                }
                Ok(report.send(times)?)
            }
        })
        .await?;
        drop(report);
        let mut times = Vec::new();
        while let Some(reported) = reports.recv().await {
            times.extend(reported);
        }
        times.sort_by(f64::total_cmp);
        Ok(Measured {
            p50: quantile(&times, 500),
            p99: quantile(&times, 990),
            p999: quantile(&times, 999),
            messages: f64::from(u32::try_from(times.len())?) / time.as_secs_f64(),
            pruned: 0.0,
        })
    }
}

#[derive(Clone, Copy)]
struct Sizes {
    rounds: usize,
    seconds: u32,
    rows: i64,
    /// Messages per second; 0: one after the other.
    rate: u32,
}

async fn compare<DB: Expiring>(place: &mut Place<DB>, sizes: Sizes) -> Result<(), Failed> {
    let Sizes {
        rounds,
        seconds,
        rows,
        rate,
    } = sizes;
    let workers = PoolOptions::new().max_connections(u32::try_from(WORKERS)?);
    let [pool, aside] = place
        .schema_with("keys", [workers, PoolOptions::new().max_connections(1)])
        .await?;
    run(&pool, DB::PAYMENTS).await?;
    migrate(&pool).await?;
    let interval = f64::from(u32::try_from(WORKERS)?) / f64::from(rate.max(1));
    let mut bench = Bench {
        pool,
        aside,
        seconds,
        pace: (rate > 0).then(|| Duration::from_secs_f64(interval)),
        next: Arc::new(AtomicI64::new(FIRST_NEW)),
        next_expired: FIRST_EXPIRED,
        missing: rows / 2,
    };
    eprintln!("filling the table with {rows} rows");
    bench.fill(FIRST_KEPT, rows - rows / 2, 1).await?;
    let periods = [Period::Quiet, Period::Pruning];
    let measured = interleave(rounds, &periods, async |period| bench.period(period).await).await?;

    let load = if rate == 0 {
        format!("{WORKERS} workers, one message after the other")
    } else {
        format!("{rate} messages/s of {WORKERS} workers")
    };
    println!(
        "\n{}, {rows} rows of which half have expired, {load}, {rounds} rounds of {seconds} s; median (lowest–highest)\n",
        DB::TITLE
    );
    println!("| period | p50, ms | p99, ms | p99.9, ms | messages/s | pruned rows/s |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, measured) in ["without a pruner", "with a pruner"].iter().zip(&measured) {
        let [p50, p99, p999, messages, pruned] =
            FIGURES.map(|of| Spread::new(measured.iter().map(of)));
        println!("| {name} | {p50:.2} | {p99:.2} | {p999:.2} | {messages:.0} | {pruned:.0} |");
    }
    let [p50, p99, p999, messages, _] = FIGURES.map(|of| {
        let [quiet, pruning] =
            [0, 1].map(|period: usize| measured[period].iter().map(of).collect::<Vec<_>>());
        Spread::of_ratios(&pruning, &quiet)
    });
    println!("| ratio within a round | {p50:.2} | {p99:.2} | {p999:.2} | {messages:.2} | |");
    Ok(())
}

const FIGURES: [fn(&Measured) -> f64; 5] = [
    |measured| measured.p50,
    |measured| measured.p99,
    |measured| measured.p999,
    |measured| measured.messages,
    |measured| measured.pruned,
];

async fn program() -> Result<(), Failed> {
    let mut args = Args::new(USAGE);
    let url = args.text("URL")?;
    let sizes = Sizes {
        rounds: args.number("number of rounds", 9, 1)?,
        seconds: args.number("number of seconds", 5, 1)?,
        rows: args.number("number of rows", 1_000_000, 2)?,
        rate: args.number("number of messages per second", 0, 0)?,
    };
    args.end()?;
    match Kind::of(&url)? {
        Kind::Postgres => {
            on_server::<Postgres>(&url, "latency", async |place| compare(place, sizes).await).await
        }
        Kind::MariaDb => {
            on_server::<MySql>(&url, "latency", async |place| compare(place, sizes).await).await
        }
        Kind::Sqlite => {
            on_server::<Sqlite>(&url, "latency", async |place| compare(place, sizes).await).await
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit(program().await)
}
