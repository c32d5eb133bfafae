//! Claims on a table of millions of keys, against an empty one.
//!
//! The same handler, without an effect, claims keys in four tables: empty at the
//! start and filled, with ids in the order of time (as `UUIDv7`) and random ones (as
//! `UUIDv4`). Every table has its turn in every round, and the ratios are taken within
//! the round: of claims with a transaction each, and of claims in one transaction.
//!
//! The server fills the tables itself. Random ids come in two passes in ascending
//! order, the second between the first, so that the pages of the index are as full
//! as those that grew at random. Afterwards the table is vacuumed and a checkpoint
//! made (MariaDB: analyzed). An empty table is as `migrate` makes it: vacuumed while it
//! is empty, a statement that Postgres plans then reads all of it.
//!
//! ```text
//! cargo run --release -p idempotent-benches --bin claims -- <URL> [million rows] [rounds] [claims]
//! ```
//!
//! The URL is one of Postgres, MariaDB, or `sqlite:<directory>`.

use std::process::ExitCode;
use std::time::Instant;

use fastrand::Rng;
use idempotent_benches::{
    Args, Failed, Kind, Place, Server, Spread, exit, interleave, number, on_server, run,
};
use idempotent_runtime::{Outcome, Store, idempotent, migrate, transact};
use sqlx::{MySql, Pool, Postgres, Sqlite, Transaction};

const USAGE: &str = "usage: claims <postgres, mysql or sqlite URL> [million rows] [rounds] [claims per round]\n\
     by default 10 million rows, 9 rounds of 1000 claims";
const MILLION: i64 = 1_000_000;
/// How many rows one statement writes.
const CHUNK: i64 = 500_000;
/// In the first ids in the order of time: milliseconds since 1970.
const FIRST_TIME: i64 = 1_700_000_000_000;

#[idempotent(key = "id", scope = "bench.claims")]
async fn claim<DB: Store>(tx: &mut Transaction<'_, DB>, id: &str) -> sqlx::Result<()> {
    let _ = tx;
    Ok(())
}

trait Filled: Server {
    /// Writes the keys `{from}` to `{to}`, each `{by}`-th. Their first 48 bits are
    /// `{first}` and so many times `{step}`.
    const FILL: &'static str;
    const SETTLE: &'static [&'static str];
}

impl Filled for Postgres {
    const FILL: &'static str = "INSERT INTO processed_messages (scope, key) \
         SELECT 'bench.claims', substr(h, 1, 8) || '-' || substr(h, 9) || '-{version}' || substr(t, 1, 3) \
         || '-8' || substr(t, 4, 3) || '-' || substr(t, 7, 12) \
         FROM (SELECT lpad(to_hex({first} + n * {step}), 12, '0') AS h, md5(n::text) AS t \
         FROM generate_series({from}::bigint, {to}, {by}) AS n) AS ids";
    const SETTLE: &'static [&'static str] = &["VACUUM ANALYZE processed_messages", "CHECKPOINT"];
}

impl Filled for MySql {
    const FILL: &'static str = "INSERT INTO processed_messages (scope, `key`) \
         SELECT 'bench.claims', concat(substr(h, 1, 8), '-', substr(h, 9), '-{version}', substr(t, 1, 3), \
         '-8', substr(t, 4, 3), '-', substr(t, 7, 12)) \
         FROM (SELECT lpad(lower(hex({first} + seq * {step})), 12, '0') AS h, md5(seq) AS t \
         FROM seq_{from}_to_{to}_step_{by}) AS ids";
    const SETTLE: &'static [&'static str] = &["ANALYZE TABLE processed_messages"];
}

impl Filled for Sqlite {
    const FILL: &'static str = "INSERT INTO processed_messages (scope, key) \
         WITH RECURSIVE s(n) AS (SELECT {from} UNION ALL SELECT n + {by} FROM s WHERE n + {by} <= {to}), \
         ids(h, t) AS MATERIALIZED \
         (SELECT printf('%012x', {first} + n * {step}), lower(hex(randomblob(9))) FROM s) \
         SELECT 'bench.claims', substr(h, 1, 8) || '-' || substr(h, 9) || '-{version}' || substr(t, 1, 3) \
         || '-8' || substr(t, 4, 3) || '-' || substr(t, 7, 12) FROM ids";
    const SETTLE: &'static [&'static str] = &["ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"];
}

#[derive(Clone, Copy)]
enum Order {
    Time,
    Random,
}

impl Order {
    const fn name(self) -> &'static str {
        match self {
            Self::Time => "in the order of time",
            Self::Random => "random",
        }
    }

    /// Fills a table with keys of this order.
    async fn fill<DB: Filled>(self, pool: &Pool<DB>, rows: i64) -> Result<(), Failed> {
        let (version, first, step, passes) = match self {
            Self::Time => (7, FIRST_TIME, 1, 1),
            Self::Random => (4, 0, (1 << 48) / (rows + 1), 2),
        };
        let start = Instant::now();
        let mut written = 0;
        for pass in 1..=passes {
            let mut from = pass;
            while from <= rows {
                let to = (from + (CHUNK - 1) * passes).min(rows);
                let fill = DB::FILL
                    .replace("{version}", &version.to_string())
                    .replace("{first}", &first.to_string())
                    .replace("{step}", &step.to_string())
                    .replace("{from}", &from.to_string())
                    .replace("{to}", &to.to_string())
                    .replace("{by}", &passes.to_string());
                run(pool, &fill).await?;
                written += (to - from) / passes + 1;
                from += CHUNK * passes;
                eprintln!(
                    "ids {}: {written} of {rows} rows after {} s",
                    self.name(),
                    start.elapsed().as_secs()
                );
            }
        }
        let counted = number(pool, "SELECT count(*) FROM processed_messages").await?;
        if counted != rows {
            return Err(format!("{counted} rows were written, not {rows}").into());
        }
        Ok(())
    }
}

/// New ids, later than those that fill the table, or between them.
struct Ids {
    order: Order,
    millisecond: i64,
    random: Rng,
}

impl Ids {
    fn next(&mut self) -> String {
        let (low, high) = (self.random.u64(..), self.random.u64(..));
        let (version, first) = match self.order {
            Order::Time => {
                self.millisecond += 1;
                (7, self.millisecond.cast_unsigned())
            }
            Order::Random => (4, high >> 16),
        };
        format!(
            "{:08x}-{:04x}-{version}{:03x}-8{:03x}-{:012x}",
            first >> 16,
            first & 0xffff,
            high & 0xfff,
            low & 0xfff,
            low >> 16
        )
    }
}

/// One of the tables, and the ids that are claimed in it.
struct Keys<DB: Filled> {
    pool: Pool<DB>,
    ids: Ids,
}

/// In milliseconds, each.
#[derive(Clone, Copy)]
struct Times {
    /// With a transaction of its own.
    alone: f64,
    /// In a transaction with all others.
    together: f64,
}

impl<DB: Filled> Keys<DB> {
    async fn new(
        place: &mut Place<DB>,
        order: Order,
        name: &str,
        rows: i64,
        seed: u64,
    ) -> Result<Self, Failed> {
        let pool = place.schema(name, 1).await?;
        migrate(&pool).await?;
        if rows > 0 {
            order.fill(&pool, rows).await?;
            for settle in DB::SETTLE {
                run(&pool, settle).await?;
            }
        }
        let ids = Ids {
            order,
            millisecond: FIRST_TIME + rows,
            random: Rng::with_seed(seed),
        };
        Ok(Self { pool, ids })
    }

    async fn round(&mut self, claims: u32) -> Result<Times, Failed> {
        let pool = &self.pool;
        let start = Instant::now();
        for _ in 0..claims {
            let id = self.ids.next();
            is_new(transact!(pool, tx => claim(tx, &id)).await?)?;
        }
        let alone = start.elapsed().as_secs_f64() * 1e3 / f64::from(claims);
        let start = Instant::now();
        let mut tx = pool.begin().await?;
        for _ in 0..claims {
            let id = self.ids.next();
            is_new(claim(&mut tx, &id).await?)?;
        }
        tx.commit().await?;
        let together = start.elapsed().as_secs_f64() * 1e3 / f64::from(claims);
        Ok(Times { alone, together })
    }
}

fn is_new(outcome: Outcome<()>) -> Result<(), Failed> {
    if outcome.is_duplicate() {
        return Err("an id came twice".into());
    }
    Ok(())
}

async fn compare<DB: Filled>(
    place: &mut Place<DB>,
    rows: i64,
    rounds: usize,
    claims: u32,
) -> Result<(), Failed> {
    let mut tables = [
        Keys::new(place, Order::Time, "empty_ordered", 0, 1).await?,
        Keys::new(place, Order::Time, "filled_ordered", rows, 2).await?,
        Keys::new(place, Order::Random, "empty_random", 0, 3).await?,
        Keys::new(place, Order::Random, "filled_random", rows, 4).await?,
    ];
    let times = interleave(rounds, &[0, 1, 2, 3], async |table: usize| {
        tables[table].round(claims).await
    })
    .await?;

    println!(
        "\n{}, {rounds} rounds of {claims} claims; median (lowest–highest)\n",
        DB::TITLE
    );
    println!(
        "| ids | rows at the start | a transaction each: ms per claim | of the empty table | in one transaction: µs per claim | of the empty table |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (table, times_of) in times.iter().enumerate() {
        let is_filled = table % 2 == 1;
        let base = &times[table - usize::from(is_filled)];
        let alone = |times: &[Times]| times.iter().map(|times| times.alone).collect::<Vec<_>>();
        let together =
            |times: &[Times]| times.iter().map(|times| times.together).collect::<Vec<_>>();
        println!(
            "| {} | {} | {:.2} | {:.2} | {:.0} | {:.2} |",
            tables[table].ids.order.name(),
            if is_filled { rows } else { 0 },
            Spread::new(alone(times_of)).median,
            Spread::of_ratios(&alone(times_of), &alone(base)),
            Spread::new(together(times_of).into_iter().map(|time| time * 1e3)).median,
            Spread::of_ratios(&together(times_of), &together(base)),
        );
    }
    Ok(())
}

async fn program() -> Result<(), Failed> {
    let mut args = Args::new(USAGE);
    let url = args.text("URL")?;
    let rows = args.number("number of million rows", 10, 1)? * MILLION;
    let rounds = args.number("number of rounds", 9, 1)?;
    let claims = args.number("number of claims", 1_000, 1)?;
    args.end()?;
    match Kind::of(&url)? {
        Kind::Postgres => {
            on_server::<Postgres>(&url, "claims", async |place| {
                compare(place, rows, rounds, claims).await
            })
            .await
        }
        Kind::MariaDb => {
            on_server::<MySql>(&url, "claims", async |place| {
                compare(place, rows, rounds, claims).await
            })
            .await
        }
        Kind::Sqlite => {
            on_server::<Sqlite>(&url, "claims", async |place| {
                compare(place, rows, rounds, claims).await
            })
            .await
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit(program().await)
}
