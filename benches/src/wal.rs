//! Bytes of write-ahead log per message on Postgres.
//!
//! Each message is a transaction by itself (a batch: a hundredth of one), and the
//! position of the log is read before and after. Every side has its turn in every
//! round. The effect is one row in a table of payments, which is written alone for
//! comparison. All keys are in the order of time, all scopes equally long.
//!
//! The first rounds, which write the whole pages that follow a checkpoint, are left
//! out; then a few rounds measure just those: the checkpoint comes before each
//! transaction. Autovacuum is off on the tables. What others write to the same
//! server counts, so let nobody else work on it; medians forgive the server's own
//! background work, means do not.
//!
//! ```text
//! cargo run --release -p idempotent-benches --bin wal -- <postgres URL> [rounds] [rounds with checkpoints]
//! ```

use std::process::ExitCode;

use idempotent_benches::{
    Args, Failed, Kind, Place, Server, Spread, exit, interleave, number, on_server, per, run,
};
use idempotent_runtime::{Outcome, Replay, idempotent, migrate, transact};
use sqlx::postgres::{PgPool, PgPoolOptions, Postgres};
use sqlx::{Transaction, query};

const USAGE: &str = "usage: wal <postgres URL> [rounds] [rounds with checkpoints]\n\
     by default 1000 rounds, and 21 with a checkpoint before each transaction";
const WARM_UP: usize = 200;
const BATCH: i64 = 100;
const POSITION: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";

/// About 100 bytes, as JSON.
const RECEIPT: &str = "receipt 0123456789 for a payment of 12.50 EUR from account 4711 to account 4712, value date today";

#[idempotent(key = "id", scope = "bench.verify")]
async fn verify(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<()> {
    Postgres::pay(tx, id).await
}

#[idempotent(key = "id", scope = "bench.nested", guard = "savepoint")]
async fn savepoint(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<()> {
    Postgres::pay(tx, id).await
}

#[idempotent(key = "id", scope = "bench.retain", retain = "7 days")]
async fn retain(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<()> {
    Postgres::pay(tx, id).await
}

#[idempotent(key = "id", scope = "bench.replay", replay)]
async fn replay(tx: &mut Transaction<'_, Postgres>, id: i64) -> sqlx::Result<String> {
    Postgres::pay(tx, id).await?;
    Ok(RECEIPT.to_owned())
}

#[idempotent(key = "id", each = "id in ids", scope = "bench.batchs")]
async fn batch(tx: &mut Transaction<'_, Postgres>, ids: Vec<i64>) -> sqlx::Result<()> {
    Postgres::pay_all(tx, &ids).await
}

/// The consumer as people write it by hand.
async fn hand_written(pool: &PgPool, id: i64) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    let inserted = query("INSERT INTO inbox (id) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(id.to_string())
        .execute(&mut *tx)
        .await?;
    if inserted.rows_affected() == 1 {
        Postgres::pay(&mut tx, id).await?;
    }
    tx.commit().await
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Effect,
    HandWritten,
    Verify,
    Savepoint,
    Retain,
    Replay,
    Effects,
    Batch,
    HandWrittenAgain,
    VerifyAgain,
    SavepointAgain,
    ReplayAgain,
    BatchAgain,
}

const SIDES: [(Side, &str); 13] = [
    (Side::Effect, "the effect alone"),
    (Side::HandWritten, "hand-written claim and effect"),
    (Side::Verify, "`verify`"),
    (Side::Savepoint, "`savepoint`"),
    (Side::Retain, "`retain`"),
    (Side::Replay, "`replay`, {result} bytes stored"),
    (Side::Effects, "100 effects alone"),
    (Side::Batch, "batch of 100"),
    (Side::HandWrittenAgain, "duplicate, hand-written"),
    (Side::VerifyAgain, "duplicate, `verify`"),
    (Side::SavepointAgain, "duplicate, `savepoint`"),
    (Side::ReplayAgain, "duplicate, replayed"),
    (Side::BatchAgain, "batch of 100 duplicates"),
];

struct Bench {
    pool: PgPool,
    /// Reads the position.
    observer: PgPool,
    /// The next new message.
    next: i64,
}

impl Bench {
    /// Sends a message that is new, or was sent in the first round.
    async fn send(&self, side: Side, id: i64) -> Result<(), Failed> {
        let pool = &self.pool;
        let again = 0;
        let is_new = match side {
            Side::Effect => {
                let mut tx = pool.begin().await?;
                Postgres::pay(&mut tx, id).await?;
                tx.commit().await?;
                true
            }
            Side::HandWritten => {
                hand_written(pool, id).await?;
                true
            }
            Side::Verify => is_new(transact!(pool, tx => verify(tx, id)).await?),
            Side::Savepoint => is_new(transact!(pool, tx => savepoint(tx, id)).await?),
            Side::Retain => is_new(transact!(pool, tx => retain(tx, id)).await?),
            Side::Replay => is_first(&transact!(pool, tx => replay(tx, id)).await?),
            Side::Effects => {
                let ids: Vec<i64> = (id..id + BATCH).collect();
                let mut tx = pool.begin().await?;
                Postgres::pay_all(&mut tx, &ids).await?;
                tx.commit().await?;
                true
            }
            Side::Batch => {
                let batch = transact!(pool, tx => batch(tx, (id..id + BATCH).collect())).await?;
                batch.processed() == batch.outcomes.len()
            }
            Side::HandWrittenAgain => {
                hand_written(pool, again).await?;
                false
            }
            Side::VerifyAgain => is_new(transact!(pool, tx => verify(tx, again)).await?),
            Side::SavepointAgain => is_new(transact!(pool, tx => savepoint(tx, again)).await?),
            Side::ReplayAgain => is_first(&transact!(pool, tx => replay(tx, again)).await?),
            Side::BatchAgain => {
                let batch = transact!(pool, tx => batch(tx, (0..BATCH).collect())).await?;
                batch.processed() > 0
            }
        };
        if is_new == side.is_again() {
            return Err(format!("{side:?}: the message was not what it should be").into());
        }
        Ok(())
    }

    /// Returns the bytes that a transaction wrote.
    async fn bytes(&mut self, side: Side) -> Result<i64, Failed> {
        let id = self.next;
        self.next += BATCH;
        let before = number(&self.observer, POSITION).await?;
        self.send(side, id).await?;
        Ok(number(&self.observer, POSITION).await? - before)
    }
}

impl Side {
    const fn is_again(self) -> bool {
        matches!(
            self,
            Self::HandWrittenAgain
                | Self::VerifyAgain
                | Self::SavepointAgain
                | Self::ReplayAgain
                | Self::BatchAgain
        )
    }

    const fn messages(self) -> i64 {
        match self {
            Self::Effects | Self::Batch | Self::BatchAgain => BATCH,
            _ => 1,
        }
    }
}

const fn is_new(outcome: Outcome<()>) -> bool {
    !outcome.is_duplicate()
}

const fn is_first(outcome: &Replay<String>) -> bool {
    !outcome.is_replayed()
}

/// Bytes per message.
struct Written {
    middle: f64,
    mean: f64,
}

impl Written {
    fn new(side: Side, bytes: &[i64]) -> Self {
        let transactions = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        Self {
            middle: Spread::new(bytes.iter().map(|bytes| per(*bytes, side.messages()))).median,
            mean: per(bytes.iter().sum(), transactions * side.messages()),
        }
    }
}

async fn compare(
    place: &mut Place<Postgres>,
    rounds: usize,
    checkpoints: usize,
) -> Result<(), Failed> {
    let one = || PgPoolOptions::new().max_connections(1);
    let [pool, observer] = place.schema_with("messages", [one(), one()]).await?;
    run(&pool, Postgres::PAYMENTS).await?;
    run(
        &pool,
        "CREATE TABLE inbox (id text PRIMARY KEY, processed_at timestamptz NOT NULL DEFAULT now()) \
         WITH (autovacuum_enabled = off)",
    )
    .await?;
    migrate(&pool).await?;
    run(
        &pool,
        "ALTER TABLE processed_messages SET (autovacuum_enabled = off, toast.autovacuum_enabled = off)",
    )
    .await?;

    let sides = SIDES.map(|(side, _)| side);
    let mut bench = Bench {
        pool,
        observer,
        next: 0,
    };
    // Each scope has a message 0; a payment has it once.
    for side in sides.into_iter().filter(|side| !side.is_again()) {
        bench.send(side, 0).await?;
        run(&bench.pool, "TRUNCATE payments").await?;
    }
    bench.next = BATCH;
    run(&bench.observer, "CHECKPOINT").await?;
    eprintln!("warming up");
    for _ in 0..WARM_UP {
        for side in sides {
            bench.bytes(side).await?;
        }
    }
    let mut bytes: Vec<Vec<i64>> = vec![Vec::new(); sides.len()];
    for round in 1..=rounds {
        for (bytes, side) in bytes.iter_mut().zip(sides) {
            bytes.push(bench.bytes(side).await?);
        }
        if round % 100 == 0 {
            eprintln!("round {round} of {rounds}");
        }
    }
    eprintln!("now with checkpoints");
    let whole_pages = interleave(checkpoints, &sides, async |side| {
        run(&bench.observer, "CHECKPOINT").await?;
        bench.bytes(side).await
    })
    .await?;

    println!(
        "\nPostgres, bytes of write-ahead log per message, {rounds} transactions of each kind\n"
    );
    println!(
        "| transaction | median | mean | beyond the effect | the effect's share | right after a checkpoint, median of {checkpoints} |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut effect = 0.0;
    for (((side, name), bytes), whole_pages) in SIDES.iter().zip(&bytes).zip(&whole_pages) {
        let (written, first) = (Written::new(*side, bytes), Written::new(*side, whole_pages));
        let share = match side {
            Side::Effect | Side::Effects => {
                effect = written.middle;
                "– | –".to_owned()
            }
            again if again.is_again() => "– | –".to_owned(),
            _ => format!(
                "{:.0} | {:.0} %",
                written.middle - effect,
                100.0 * effect / written.middle
            ),
        };
        println!(
            "| {} | {:.0} | {:.0} | {share} | {:.0} |",
            name.replace("{result}", &(RECEIPT.len() + 2).to_string()),
            written.middle,
            written.mean,
            first.middle,
        );
    }
    Ok(())
}

async fn program() -> Result<(), Failed> {
    let mut args = Args::new(USAGE);
    let url = args.text("URL")?;
    let rounds = args.number("number of rounds", 1_000, 1)?;
    let checkpoints = args.number("number of rounds with checkpoints", 21, 1)?;
    if Kind::of(&url)? != Kind::Postgres {
        return Err(args.refused("this is about Postgres"));
    }
    args.end()?;
    on_server(&url, "wal", async |place| {
        compare(place, rounds, checkpoints).await
    })
    .await
}

#[tokio::main]
async fn main() -> ExitCode {
    exit(program().await)
}
