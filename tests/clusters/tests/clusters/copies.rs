//! Copies and overlapping batches at all nodes at once.

use std::sync::Arc;

use idempotent_clusters::{Audit, Nodes, Way, effects, on_galera};
use idempotent_runtime::{Attempts, Batch, Error, Outcome, idempotent, transact};
use idempotent_tests::Engine;
use sqlx::{MySqlPool, Transaction};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// More than their share of bad luck.
const ATTEMPTS: u32 = 40;

#[test]
fn of_sixty_copies_at_three_nodes_one_runs() {
    on_galera(async |nodes| of_sixty_copies_one_runs(nodes, &pools(nodes)).await);
}

/// There a copy waits for that of another node, as it does on one server.
#[test]
fn of_sixty_copies_at_three_nodes_that_stream_one_runs() {
    on_galera(async |nodes| {
        let pools = [0, 1, 2].map(|node| nodes.streaming_pool(node));
        of_sixty_copies_one_runs(nodes, &pools).await;
    });
}

#[test]
fn opposite_orders_of_two_handlers_end_with_each_message_once() {
    on_galera(async |nodes| {
        let pools = pools(nodes);
        let mut tasks = JoinSet::new();
        for message in 0..60 {
            for (node, pool) in pools.iter().enumerate() {
                let pool = pool.clone();
                tasks.spawn(async move {
                    let (mut a, mut b) = (format!("{message}-a"), format!("{message}-b"));
                    if node == 1 {
                        std::mem::swap(&mut a, &mut b);
                    }
                    let (way, attempts) = (Way::Verify, Attempts::on(&pool).attempts(ATTEMPTS));
                    let run = transact!(attempts, tx => way.handle(tx, &a), way.handle(tx, &b));
                    run.await.unwrap()
                });
            }
        }
        let outcomes = tasks.join_all().await;
        let is_new = |outcomes: &&_| **outcomes == (Outcome::Processed(()), Outcome::Processed(()));
        assert_eq!(outcomes.iter().filter(is_new).count(), 60);
        let ids = (0..60).flat_map(|message| ["a", "b"].map(|part| format!("{message}-{part}")));
        let audit = Audit::of(nodes.observer(2), ids).await;
        assert!(audit.is_clean(), "{audit}");
    });
}

#[test]
fn overlapping_batches_in_opposite_orders_end_with_each_message_once() {
    on_galera(async |nodes| {
        let pools = pools(nodes);
        let mut tasks = JoinSet::new();
        for first in (0..200).step_by(10) {
            for (node, pool) in pools.iter().enumerate() {
                let pool = pool.clone();
                tasks.spawn(async move {
                    let mut ids: Vec<_> = (first..first + 20).map(|id| id.to_string()).collect();
                    if node == 1 {
                        ids.reverse();
                    }
                    let attempts = Attempts::on(&pool).attempts(ATTEMPTS);
                    let batch: Batch<()> = transact!(attempts, tx => of_a_batch(tx, ids.clone()))
                        .await
                        .unwrap();
                    batch.processed()
                });
            }
        }
        let processed: usize = tasks.join_all().await.into_iter().sum();
        assert_eq!(processed, 210);
        let audit = Audit::of(nodes.observer(2), (0..210).map(|id| id.to_string())).await;
        assert!(audit.is_clean(), "{audit}");
    });
}

#[idempotent(key(id), each = "id in ids", scope = "overlapping")]
async fn of_a_batch(tx: &mut Transaction<'_, sqlx::MySql>, ids: Vec<String>) -> Result<(), Error> {
    // The three rows of an effect.
    for _ in 0..3 {
        let rows: Vec<_> = ids.iter().map(|id| format!("('{id}')")).collect();
        let insert = format!("INSERT INTO effects (id) VALUES {}", rows.join(", "));
        sqlx::MySql::run(tx, &insert).await?;
    }
    Ok(())
}

fn pools(nodes: &Nodes) -> [MySqlPool; 3] {
    [0, 1, 2].map(|node| nodes.pool(node))
}

async fn of_sixty_copies_one_runs(nodes: &Nodes, pools: &[MySqlPool; 3]) {
    for way in Way::ALL {
        for round in 0..5 {
            let id = format!("{way:?}-{round}");
            assert_eq!(deliver_everywhere(pools, way, &id).await, 1, "{id}");
            for node in 0..3 {
                assert_eq!(effects(nodes.observer(node), &id).await, 1, "{id}");
            }
        }
    }
}

/// Returns how many of sixty copies were processed.
async fn deliver_everywhere(pools: &[MySqlPool; 3], way: Way, id: &str) -> usize {
    let barrier = Arc::new(Barrier::new(60));
    let mut tasks = JoinSet::new();
    for copy in 0..60 {
        let (pool, id) = (pools[copy % 3].clone(), id.to_owned());
        let barrier = Arc::clone(&barrier);
        tasks.spawn(async move {
            barrier.wait().await;
            let attempts = Attempts::on(&pool).attempts(ATTEMPTS);
            transact!(attempts, tx => way.handle(tx, &id)).await
        });
    }
    let outcomes = tasks.join_all().await;
    let is_new = |outcome: Result<Outcome<()>, Error>| !outcome.unwrap().is_duplicate();
    outcomes
        .into_iter()
        .map(is_new)
        .filter(|is_new| *is_new)
        .count()
}
