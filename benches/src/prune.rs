//! What the index costs a claim, and what it gives a pruner: by kind of index, on a
//! table of which half has expired.
//!
//! Claims are written in transactions of 1 000; log bytes and times are medians over
//! transactions, so that what others write to the same server does not count. The
//! first transactions after the checkpoint, which write whole pages, are left out.
//!
//! ```text
//! cargo run --release -p idempotent-benches --bin prune -- <URL> [rows] [seconds of pruning] [index]
//! ```
//!
//! On SQLite, which uses the file of its log again, bytes of the log are not counted.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use idempotent_benches::{
    Args, Failed, Kind, Place, Server, Spread, exit, number, on_server, per, run,
};
use idempotent_runtime::{Outcome, Store, idempotent, migrate, pruner};
use sqlx::{MySql, Pool, Postgres, Sqlite, Transaction};

const USAGE: &str = "usage: prune <URL> [rows] [seconds of pruning] [index]";
const CLAIMS: i64 = 1_000;
const ROUNDS: i64 = 20;
const WARM_UP: i64 = 5;

#[idempotent(key = "id", scope = "bench.week", retain = "7 days")]
async fn week<DB: Store>(tx: &mut Transaction<'_, DB>, id: i64) -> sqlx::Result<()> {
    let _ = tx;
    Ok(())
}

#[idempotent(key = "id", scope = "bench.ever")]
async fn ever<DB: Store>(tx: &mut Transaction<'_, DB>, id: i64) -> sqlx::Result<()> {
    let _ = tx;
    Ok(())
}

/// A kind of index, and the statement that makes it.
type Index = (&'static str, &'static str);

trait Indexed: Server {
    const INDEXES: &'static [Index];
    const DROP: &'static str;
    /// Half of `{rows}` has expired, in the order of the keys.
    const FILL: &'static [&'static str];
    const SETTLE: &'static [&'static str];
    /// Bytes of the log that were written.
    const LOG: &'static str;
    const DELETE_EXPIRED: &'static str =
        "DELETE FROM processed_messages WHERE expires_at < processed_at + INTERVAL '29' DAY";
    const TABLE_BYTES: &'static str;
    /// Of the index for pruning.
    const INDEX_BYTES: &'static str;
}

impl Indexed for Postgres {
    const INDEXES: &'static [Index] = &[
        ("none", "SELECT 1"),
        (
            "btree",
            "CREATE INDEX expiry ON processed_messages (expires_at)",
        ),
        (
            "partial btree",
            "CREATE INDEX expiry ON processed_messages (expires_at) WHERE expires_at IS NOT NULL",
        ),
        (
            "BRIN",
            "CREATE INDEX expiry ON processed_messages USING brin (expires_at)",
        ),
    ];
    const DROP: &'static str = "DROP INDEX processed_messages_expires_at";
    const FILL: &'static [&'static str] = &[
        "INSERT INTO processed_messages (scope, key, processed_at, expires_at) \
         SELECT 'bench.week', lpad(n::text, 20, '0'), now() - interval '30 days' + n * interval '1 ms', \
         now() - interval '1 day' + (n - {rows} / 2) * interval '1 ms' \
         + CASE WHEN n > {rows} / 2 THEN interval '2 days' ELSE interval '0' END FROM generate_series(1, {rows}) AS n",
    ];
    const SETTLE: &'static [&'static str] = &["VACUUM ANALYZE processed_messages", "CHECKPOINT"];
    const LOG: &'static str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    const TABLE_BYTES: &'static str = "SELECT pg_relation_size('processed_messages')";
    const INDEX_BYTES: &'static str = "SELECT coalesce(pg_relation_size(to_regclass('expiry')), 0)";
}

impl Indexed for MySql {
    const INDEXES: &'static [Index] = &[
        ("none", "SELECT 1"),
        (
            "btree",
            "CREATE INDEX expiry ON processed_messages (expires_at)",
        ),
    ];
    const DROP: &'static str = "DROP INDEX expires_at ON processed_messages";
    const FILL: &'static [&'static str] = &[
        "INSERT INTO processed_messages (scope, `key`, processed_at, expires_at) \
         SELECT 'bench.week', lpad(seq, 20, '0'), utc_timestamp(6) - INTERVAL 30 DAY + INTERVAL seq * 1000 MICROSECOND, \
         utc_timestamp(6) - INTERVAL 1 DAY + INTERVAL (CAST(seq AS SIGNED) - {rows} DIV 2) * 1000 MICROSECOND \
         + INTERVAL IF(seq > {rows} DIV 2, 2, 0) DAY FROM seq_1_to_{rows}",
    ];
    const SETTLE: &'static [&'static str] = &["ANALYZE TABLE processed_messages"];
    const LOG: &'static str = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
         WHERE variable_name = 'INNODB_LSN_CURRENT'";
    const TABLE_BYTES: &'static str = "SELECT CAST(data_length AS SIGNED) FROM information_schema.tables \
         WHERE table_schema = database() AND table_name = 'processed_messages'";
    const INDEX_BYTES: &'static str = "SELECT CAST(index_length AS SIGNED) FROM information_schema.tables \
         WHERE table_schema = database() AND table_name = 'processed_messages'";
}

impl Indexed for Sqlite {
    const INDEXES: &'static [Index] = &[
        ("none", "SELECT 1"),
        (
            "btree",
            "CREATE INDEX expiry ON processed_messages (expires_at)",
        ),
        (
            "partial btree",
            "CREATE INDEX expiry ON processed_messages (expires_at) WHERE expires_at IS NOT NULL",
        ),
    ];
    const DROP: &'static str = "DROP INDEX processed_messages_expires_at";
    const FILL: &'static [&'static str] = &[
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {rows}), \
         t (t) AS (SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)) \
         INSERT INTO processed_messages (scope, key, processed_at, expires_at) \
         SELECT 'bench.week', printf('%020d', n), t - 30 * 86400000000 + n * 1000, \
         t - 86400000000 + (n - {rows} / 2) * 1000 + iif(n > {rows} / 2, 2 * 86400000000, 0) FROM n, t",
    ];
    const SETTLE: &'static [&'static str] = &["ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"];
    const LOG: &'static str = "SELECT 0"; // see above
    const DELETE_EXPIRED: &'static str =
        "DELETE FROM processed_messages WHERE expires_at < processed_at + 29 * 86400000000";
    const TABLE_BYTES: &'static str =
        "SELECT sum(pgsize) FROM dbstat WHERE name = 'processed_messages'";
    const INDEX_BYTES: &'static str =
        "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = 'expiry'";
}

/// The median of a claim: bytes of the log, and microseconds.
struct Claim(f64, f64);

async fn claims<DB: Indexed>(pool: &Pool<DB>, retained: bool) -> Result<Claim, Failed> {
    let (mut bytes, mut times) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let (before, start) = (number(pool, DB::LOG).await?, Instant::now());
        let mut tx = pool.begin().await?;
        for id in 0..CLAIMS {
            let id = 1_000_000_000_000 + round * CLAIMS + id;
            let outcome: Outcome<()> = if retained {
                week(&mut tx, id).await?
            } else {
                ever(&mut tx, id).await?
            };
            assert!(!outcome.is_duplicate());
        }
        tx.commit().await?;
        let time = start.elapsed().as_secs_f64() * 1e6;
        if round >= WARM_UP {
            let written = number(pool, DB::LOG).await? - before;
            bytes.push(per(written, CLAIMS));
            times.push(time / per(CLAIMS, 1));
        }
    }
    Ok(Claim(Spread::new(bytes).median, Spread::new(times).median))
}

/// Milliseconds of a run with nothing to do.
async fn look<DB: Indexed>(pool: &Pool<DB>) -> Result<f64, Failed> {
    let mut times = Vec::new();
    for _ in 0..11 {
        let start = Instant::now();
        let pruned = pruner(pool).run().await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(pruned.rows, 0);
    }
    Ok(Spread::new(times).median)
}

/// Rows per second, and how many there were, within the time.
async fn prune<DB: Indexed>(pool: &Pool<DB>, limit: Duration) -> Result<(f64, u64), Failed> {
    let rows = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&rows);
    let start = Instant::now();
    let pruning = pruner(pool)
        .pause(Duration::ZERO)
        .on_progress(move |pruned| counted.store(pruned.rows, Ordering::Relaxed))
        .run();
    if let Ok(pruned) = tokio::time::timeout(limit, pruning).await {
        pruned?;
    }
    let rows = rows.load(Ordering::Relaxed);
    let count = f64::from(u32::try_from(rows)?);
    Ok((count / start.elapsed().as_secs_f64(), rows))
}

async fn measure<DB: Indexed>(
    pool: &Pool<DB>,
    (name, create): Index,
    rows: i64,
    limit: Duration,
) -> Result<(), Failed> {
    run(pool, "DROP TABLE IF EXISTS processed_messages").await?;
    migrate(pool).await?;
    run(pool, DB::DROP).await?;
    run(pool, create).await?;
    for fill in DB::FILL {
        run(pool, &fill.replace("{rows}", &rows.to_string())).await?;
    }
    for settle in DB::SETTLE {
        run(pool, settle).await?;
    }
    let table = per(number(pool, DB::TABLE_BYTES).await?, rows);
    let index = per(number(pool, DB::INDEX_BYTES).await?, rows);
    let retained = claims(pool, true).await?;
    let kept = claims(pool, false).await?;
    let (rate, pruned) = prune(pool, limit).await?;
    // What the limit cut off would be due at each look.
    run(pool, DB::DELETE_EXPIRED).await?;
    let dead = look(pool).await?;
    for settle in DB::SETTLE {
        run(pool, settle).await?;
    }
    let settled = look(pool).await?;
    println!(
        "| {name} | {:.0} / {:.0} | {:.0} / {:.0} | {rate:.0} ({pruned}) | {dead:.2} | {settled:.2} | {table:.0} + {index:.1} |",
        retained.0, kept.0, retained.1, kept.1
    );
    Ok(())
}

async fn compare<DB: Indexed>(
    place: &mut Place<DB>,
    rows: i64,
    limit: Duration,
    only: Option<&str>,
) -> Result<(), Failed> {
    let pool = place.schema("keys", 2).await?;
    println!("\n{rows} rows, half of them expired; of claims: with `retain` / without\n");
    println!(
        "| index | log bytes per claim | µs per claim | pruned rows/s (rows) | look, after pruning, ms | look, later, ms | table + index, bytes per row |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let wanted = |index: &&Index| only.is_none_or(|only| only == index.0);
    for index in DB::INDEXES.iter().filter(wanted) {
        measure(&pool, *index, rows, limit).await?;
    }
    Ok(())
}

async fn program() -> Result<(), Failed> {
    let mut args = Args::new(USAGE);
    let url = args.text("URL")?;
    let rows = args.number("number of rows", 1_000_000, 2)?;
    let limit = args.number("number of seconds", 20, 1)?;
    let limit = Duration::from_secs(limit);
    let only = args.optional()?;
    let only = only.as_deref();
    args.end()?;
    match Kind::of(&url)? {
        Kind::Postgres => {
            on_server::<Postgres>(&url, "prune", async |place| {
                compare(place, rows, limit, only).await
            })
            .await
        }
        Kind::MariaDb => {
            on_server::<MySql>(&url, "prune", async |place| {
                compare(place, rows, limit, only).await
            })
            .await
        }
        Kind::Sqlite => {
            on_server::<Sqlite>(&url, "prune", async |place| {
                compare(place, rows, limit, only).await
            })
            .await
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit(program().await)
}
