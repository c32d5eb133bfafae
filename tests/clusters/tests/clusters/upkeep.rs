//! The table itself, made and pruned at several nodes at once.

use idempotent_clusters::{Audit, Broker, consume, keys, on_galera};
use idempotent_runtime::{migrate, pruner};
use idempotent_tests::Engine;
use sqlx::{MySql, MySqlPool};
use tokio::task::JoinSet;

#[test]
fn three_nodes_make_the_table_at_once() {
    on_galera(async |nodes| {
        let pools = [0, 1, 2].map(|node| nodes.pool(node));
        for round in 0..5 {
            run(&pools[0], "DROP TABLE processed_messages").await;
            let mut tasks = JoinSet::new();
            for service in 0..12 {
                let pool = pools[service % 3].clone();
                tasks.spawn(async move { migrate(&pool).await });
            }
            for migrated in tasks.join_all().await {
                assert!(migrated.is_ok(), "round {round}: {migrated:?}");
            }
        }
    });
}

/// They are in each other's way, and in nobody else's.
#[test]
fn pruners_at_three_nodes_beside_claims_prune_each_key_once() {
    const EXPIRED: u64 = 20_000;
    on_galera(async |nodes| {
        let pools = [0, 1, 2].map(|node| nodes.pool(node));
        let expired = format!(
            "INSERT INTO processed_messages (scope, `key`, expires_at) \
             SELECT 'expired', seq, utc_timestamp(6) FROM seq_1_to_{EXPIRED}"
        );
        run(&pools[0], &expired).await;
        for node in 1..3 {
            nodes.until_applied(node).await;
        }
        let broker = Broker::with(1_000);
        let consumers = consume(&broker, 12, &pools);
        let mut tasks = JoinSet::new();
        for pool in pools.clone() {
            tasks.spawn(async move { pruner(&pool).run().await });
        }
        let pruned: u64 = tasks
            .join_all()
            .await
            .into_iter()
            .map(|done| done.unwrap().rows)
            .sum();
        assert_eq!(pruned, EXPIRED);
        let failures: usize = consumers.join_all().await.into_iter().sum();
        println!("{failures} deliveries came again");
        let audit = Audit::of(nodes.observer(2), broker.ids()).await;
        assert!(audit.is_clean(), "{audit}");
        let expired = "SELECT count(*) FROM processed_messages WHERE scope = 'expired'";
        for node in 0..3 {
            let mut conn = nodes.observer(node).acquire().await.unwrap();
            assert_eq!(MySql::number(&mut conn, expired).await.unwrap(), 0);
        }
        assert!(keys(nodes.observer(0)).await >= 1_000);
    });
}

async fn run(pool: &MySqlPool, statement: &str) {
    let mut conn = pool.acquire().await.unwrap();
    MySql::run(&mut conn, statement).await.unwrap();
}
