//! What a message costs on the wire: round trips on Postgres that the consumer
//! waits for, warm, counted by a proxy. The test prints the table that it asserts: run it with
//! `--nocapture`.

use idempotent_runtime::{Batch, Outcome, idempotent, transact};
use idempotent_tests::{
    AppError, Double, Engine, Fresh, Proxy, Recorder, Replayed, ReplayedUnderSavepoint, Savepoint,
    Verify, until,
};
use sqlx::pool::PoolOptions;
use sqlx::{PgPool, Postgres, Transaction};
use tokio::task::JoinSet;

on_postgres!(a_message_costs_as_many_round_trips_as_pinned);

#[derive(Clone, Copy, Debug)]
enum Consumer {
    /// What people write: begin, insert on conflict, the effect, commit.
    Handwritten,
    VerifyByHand,
    SavepointByHand,
    VerifyTransact,
    SavepointTransact,
    ReplayTransact,
    ReplaySavepointTransact,
    BusyTransact,
    WasTransact,
    RetainTransact,
    /// A hundred messages.
    Batch,
    BatchSavepoint,
}

impl Consumer {
    const ALL: [Self; 12] = [
        Self::Handwritten,
        Self::VerifyByHand,
        Self::SavepointByHand,
        Self::VerifyTransact,
        Self::SavepointTransact,
        Self::ReplayTransact,
        Self::ReplaySavepointTransact,
        Self::BusyTransact,
        Self::WasTransact,
        Self::RetainTransact,
        Self::Batch,
        Self::BatchSavepoint,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Handwritten => "written by hand, no guard",
            Self::VerifyByHand => "`verify`, begin and commit by hand",
            Self::SavepointByHand => "`savepoint`, begin and commit by hand",
            Self::VerifyTransact => "`verify`, `transact!`",
            Self::SavepointTransact => "`savepoint`, `transact!`",
            Self::ReplayTransact => "`replay`, `verify`",
            Self::ReplaySavepointTransact => "`replay`, `savepoint`",
            Self::BusyTransact => "`busy = \"fail\"`",
            Self::WasTransact => "`was`",
            Self::RetainTransact => "`retain`, metrics on",
            Self::Batch => "`each`, 100 at once",
            Self::BatchSavepoint => "`each`, `savepoint`",
        }
    }

    /// Round trips of a new message and of a duplicate, without the ping that
    /// a default pool adds.
    const fn expected(self) -> (usize, usize) {
        match self {
            Self::Handwritten => (4, 3),
            Self::VerifyByHand
            | Self::VerifyTransact
            | Self::BusyTransact
            | Self::WasTransact
            | Self::Batch => (5, 3),
            // The duplicate's row is read.
            Self::ReplayTransact | Self::RetainTransact => (5, 4),
            Self::SavepointByHand | Self::SavepointTransact | Self::BatchSavepoint => (7, 5),
            Self::ReplaySavepointTransact => (7, 6),
        }
    }

    async fn deliver(self, pool: &PgPool, id: &str) -> Outcome<()> {
        let double = Double::new();
        match self {
            Self::Handwritten => by_hand(pool, id).await.unwrap(),
            Self::VerifyByHand => guarded::<Verify>(pool, id, &double).await,
            Self::SavepointByHand => guarded::<Savepoint>(pool, id, &double).await,
            Self::VerifyTransact => transacted::<Verify>(pool, id, &double).await,
            Self::SavepointTransact => transacted::<Savepoint>(pool, id, &double).await,
            Self::ReplayTransact => transacted::<Replayed>(pool, id, &double).await,
            Self::ReplaySavepointTransact => {
                transacted::<ReplayedUnderSavepoint>(pool, id, &double).await
            }
            Self::BusyTransact => transact!(pool, tx => busy(tx, id, &double)).await.unwrap(),
            Self::WasTransact => transact!(pool, tx => was(tx, id, &double)).await.unwrap(),
            Self::RetainTransact => transact!(pool, tx => retained(tx, id, &double))
                .await
                .unwrap(),
            Self::Batch => {
                let ids = hundred(id);
                let batch = transact!(pool, tx => batch(tx, ids.clone(), &double)).await;
                all_alike(&batch.unwrap())
            }
            Self::BatchSavepoint => {
                let ids = hundred(id);
                let batch =
                    transact!(pool, tx => batch_under_savepoint(tx, ids.clone(), &double)).await;
                all_alike(&batch.unwrap())
            }
        }
    }
}

fn hundred(id: &str) -> Vec<String> {
    (0..100).map(|n| format!("{id}-{n}")).collect()
}

fn all_alike(batch: &Batch<()>) -> Outcome<()> {
    assert_eq!(batch.outcomes.len(), 100);
    match batch.processed() {
        100 => Outcome::Processed(()),
        0 => Outcome::Duplicate,
        some => panic!("{some} of 100 were processed"),
    }
}

#[idempotent(key(id), skip(double), scope = "busy", busy = "fail")]
async fn busy(
    tx: &mut Transaction<'_, Postgres>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(key(id), skip(double), scope = "renamed", was("before"))]
async fn was(
    tx: &mut Transaction<'_, Postgres>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(key(id), skip(double), scope = "retained", retain = "1 hour")]
async fn retained(
    tx: &mut Transaction<'_, Postgres>,
    id: &str,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, id).await
}

#[idempotent(key(id), each = "id in ids", skip(double), scope = "batch")]
async fn batch(
    tx: &mut Transaction<'_, Postgres>,
    ids: Vec<String>,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, &ids.concat()[..300]).await
}

#[idempotent(
    key(id),
    each = "id in ids",
    skip(double),
    scope = "batch_under_savepoint",
    guard = "savepoint"
)]
async fn batch_under_savepoint(
    tx: &mut Transaction<'_, Postgres>,
    ids: Vec<String>,
    double: &Double,
) -> Result<(), AppError> {
    double.run(tx, &ids.concat()[..300]).await
}

async fn by_hand(pool: &PgPool, id: &str) -> sqlx::Result<Outcome<()>> {
    let mut tx = pool.begin().await?;
    let claim = "INSERT INTO processed_messages (scope, key) VALUES ('by hand', $1) \
         ON CONFLICT (scope, key) DO NOTHING";
    let claimed = sqlx::query(claim).bind(id).execute(&mut *tx).await?;
    if claimed.rows_affected() == 0 {
        tx.commit().await?;
        return Ok(Outcome::Duplicate);
    }
    Postgres::run(
        &mut tx,
        &format!("INSERT INTO effects (id) VALUES ('{id}')"),
    )
    .await?;
    tx.commit().await?;
    Ok(Outcome::Processed(()))
}

async fn transacted<G: Recorder>(pool: &PgPool, id: &str, double: &Double) -> Outcome<()> {
    transact!(pool, tx => G::record(tx, id, double))
        .await
        .unwrap()
}

async fn guarded<G: Recorder>(pool: &PgPool, id: &str, double: &Double) -> Outcome<()> {
    let mut tx = pool.begin().await.unwrap();
    let outcome = G::record(&mut tx, id, double).await.unwrap();
    tx.commit().await.unwrap();
    outcome
}

/// Delivers these messages, at once; returns the round trips per message.
async fn measured(
    consumer: Consumer,
    pool: &PgPool,
    proxy: &Proxy,
    ids: &[String],
    expected: Outcome<()>,
) -> usize {
    // A connection that was just returned may still be on its way.
    let size = usize::try_from(pool.size()).unwrap();
    until("all connections are idle", async || pool.num_idle() == size).await;
    let _ = proxy.take_round_trips();
    let mut tasks = JoinSet::new();
    for id in ids {
        let (pool, id) = (pool.clone(), id.clone());
        tasks.spawn(async move { consumer.deliver(&pool, &id).await });
    }
    for outcome in tasks.join_all().await {
        assert_eq!(outcome, expected);
    }
    until("all connections are idle", async || pool.num_idle() == size).await;
    let round_trips = proxy.take_round_trips();
    assert_eq!(
        round_trips % ids.len(),
        0,
        "{round_trips} for {} messages",
        ids.len()
    );
    // sqlx pings a connection that comes back, in a task of its own: nobody waits
    // for that one.
    round_trips / ids.len() - 1
}

async fn a_message_costs_as_many_round_trips_as_pinned(db: &Fresh<Postgres>) {
    db.prepare().await;
    println!("| consumer | pool | messages at once | new | duplicate |");
    println!("| --- | --- | --- | --- | --- |");
    for consumer in Consumer::ALL {
        for (ping, pool_name) in [(1, "default"), (0, "`test_before_acquire(false)`")] {
            let (proxy, options) = db.behind_proxy().await;
            let pool = PoolOptions::new()
                .min_connections(8)
                .max_connections(8)
                .test_before_acquire(ping == 1)
                .connect_with(options)
                .await
                .unwrap();
            let name = |kind: &str, n: usize| format!("{consumer:?}-{ping}-{kind}-{n}");
            warm_up(consumer, &pool, &name("warm", 0)).await;
            for at_once in [1, 8] {
                let ids: Vec<_> = (0..at_once)
                    .map(|n| name(&at_once.to_string(), n))
                    .collect();
                let new = measured(consumer, &pool, &proxy, &ids, Outcome::Processed(())).await;
                let again = measured(consumer, &pool, &proxy, &ids, Outcome::Duplicate).await;
                println!(
                    "| {} | {pool_name} | {at_once} | {new} | {again} |",
                    consumer.name()
                );
                let (expected_new, expected_again) = consumer.expected();
                assert_eq!(
                    (new, again),
                    (expected_new + ping, expected_again + ping),
                    "{}, {pool_name}",
                    consumer.name()
                );
            }
            pool.close().await;
        }
    }
}

/// Every connection has prepared what it needs.
async fn warm_up(consumer: Consumer, pool: &PgPool, id: &str) {
    until("all are connected", async || pool.size() == 8).await;
    let mut conns = Vec::new();
    for _ in 0..8 {
        conns.push(pool.acquire().await.unwrap());
    }
    // One at a time: the others are held.
    for turn in 0..8 {
        drop(conns.remove(0));
        until("it is idle", async || pool.num_idle() > 0).await;
        for round in 0..2 {
            let id = format!("{id}-{turn}-{round}");
            for _ in 0..2 {
                let _ = consumer.deliver(pool, &id).await;
                until("it is idle", async || pool.num_idle() > 0).await;
            }
        }
        conns.push(pool.acquire().await.unwrap());
    }
}
