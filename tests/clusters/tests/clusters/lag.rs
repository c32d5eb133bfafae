//! A node that has not applied yet what another one has committed.

use idempotent_clusters::{Nodes, Way, effects, on_galera};
use idempotent_runtime::{Outcome, transact};
use idempotent_tests::Engine;
use sqlx::{Executor, MySql, MySqlPool};

/// The node that lags.
const BEHIND: usize = 1;

/// It claims the key, runs, and waits at COMMIT until the node has caught up, which refuses it.
#[test]
fn a_duplicate_at_a_node_that_lags_runs_in_vain() {
    on_galera(async |nodes| {
        let refusals = duplicates(nodes, &nodes.pool(BEHIND), "COMMIT").await;
        assert!(refusals >= i64::try_from(Way::ALL.len()).unwrap());
    });
}

#[test]
fn where_reads_are_causal_it_does_not_run() {
    on_galera(async |nodes| {
        let pool = nodes.observer(BEHIND);
        let refusals = duplicates(nodes, pool, "START TRANSACTION").await;
        assert_eq!(refusals, 0);
    });
}

/// Delivers to the node that lags what another one has processed; returns how often the node
/// refused that. `held_at` is the statement that waits until the node has caught up.
async fn duplicates(nodes: &Nodes, pool: &MySqlPool, held_at: &str) -> i64 {
    let [ahead, behind] = [nodes.pool(0), nodes.pool(BEHIND)];
    run(&ahead, "CREATE TABLE brake (id int PRIMARY KEY)").await;
    nodes.until_applied(BEHIND).await;
    let before = refusals(nodes).await;
    for (round, way) in Way::ALL.into_iter().enumerate() {
        let id = format!("{way:?}");
        // What is applied waits for this lock, and all that comes after waits with it.
        let mut brake = behind.acquire().await.unwrap();
        brake.execute("LOCK TABLES brake READ").await.unwrap();
        run(&ahead, &format!("INSERT INTO brake (id) VALUES ({round})")).await;
        let first = transact!(&ahead, tx => way.handle(tx, &id)).await;
        assert_eq!(first.unwrap(), Outcome::Processed(()), "{id}");
        assert_eq!(effects(&behind, &id).await, 0, "the node does not lag");

        let duplicate = async { transact!(pool, tx => way.handle(tx, &id)).await };
        let catch_up = async {
            nodes.until_held(BEHIND, held_at).await;
            brake.execute("UNLOCK TABLES").await.unwrap();
        };
        let (duplicate, ()) = tokio::join!(duplicate, catch_up);
        assert_eq!(duplicate.unwrap(), Outcome::Duplicate, "{id}");
        assert_eq!(effects(nodes.observer(BEHIND), &id).await, 1, "{id}");
    }
    refusals(nodes).await - before
}

/// How many transactions the node rolled back for one of another node.
async fn refusals(nodes: &Nodes) -> i64 {
    nodes.status(BEHIND, "WSREP_LOCAL_CERT_FAILURES").await
        + nodes.status(BEHIND, "WSREP_LOCAL_BF_ABORTS").await
}

async fn run(pool: &MySqlPool, statement: &str) {
    let mut conn = pool.acquire().await.unwrap();
    MySql::run(&mut conn, statement).await.unwrap();
}
