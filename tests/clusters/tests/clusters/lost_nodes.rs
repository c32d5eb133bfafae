//! Nodes that are killed.

use idempotent_clusters::{Audit, Broker, Nodes, Way, consume, effects, keys, on_galera};
use idempotent_runtime::{Attempts, Disposition, Outcome, disposition, transact};
use idempotent_tests::Engine;
use sqlx::MySql;

/// Each node is killed in the middle of its work, and comes back.
#[test]
fn killed_nodes_lose_and_double_nothing() {
    on_galera(async |nodes| {
        let broker = Broker::with(8_000);
        let pools = [0, 1, 2].map(|node| nodes.impatient_pool(node));
        let consumers = consume(&broker, 24, &pools);
        for (percent, node) in [(15, 1), (45, 2), (75, 0)] {
            broker.until_acknowledged(percent).await;
            nodes.crash(node);
            broker.until_acknowledged(percent + 15).await;
            nodes.rejoin(node).await;
        }
        let failures: usize = consumers.join_all().await.into_iter().sum();
        assert!(failures > 0, "nobody was there when the nodes were killed");
        for node in 0..3 {
            let audit = Audit::of(nodes.observer(node), broker.ids()).await;
            println!("node {}: {audit} failures={failures}", node + 1);
            assert!(audit.is_clean(), "{audit}");
        }
        let expected = keys(nodes.observer(0)).await;
        for node in 1..3 {
            assert_eq!(keys(nodes.observer(node)).await, expected);
        }
    });
}

/// The last node cannot know whether the others go on without it.
#[test]
fn a_commit_at_a_node_that_has_lost_the_others_is_no_success() {
    on_galera(async |nodes| {
        let pool = nodes.pool(0);
        let mut opened = Vec::new();
        for way in Way::ALL {
            let mut tx = pool.begin().await.unwrap();
            let outcome = way.handle(&mut tx, &id(way)).await;
            assert_eq!(outcome.unwrap(), Outcome::Processed(()));
            opened.push(tx);
        }
        nodes.crash(1);
        nodes.crash(2);
        // The first of them finds out what has happened, after some seconds.
        for tx in opened {
            let error = idempotent_runtime::Error::from(tx.commit().await.unwrap_err());
            assert!(error.is_retryable(), "{error:?}");
        }
        for way in Way::ALL {
            let id = id(way);
            let refused = Attempts::on(&pool).attempts(2);
            let refused = transact!(refused, tx => way.handle(tx, &id)).await;
            let error = refused.unwrap_err();
            assert!(error.is_retryable(), "{error:?}");
            assert_eq!(disposition(&error), Disposition::Redeliver);
        }
        found_anew(nodes).await;
        for way in Way::ALL {
            let id = id(way);
            let outcome = transact!(&pool, tx => way.handle(tx, &id)).await;
            assert_eq!(outcome.unwrap(), Outcome::Processed(()), "{id}");
            assert_eq!(effects(&pool, &id).await, 1, "{id}");
        }
    });
}

fn id(way: Way) -> String {
    format!("{way:?}")
}

/// Makes the node that is left a cluster of its own.
async fn found_anew(nodes: &Nodes) {
    const FOUND: &str = "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'";
    let mut conn = nodes.pool(0).acquire().await.unwrap();
    MySql::run(&mut conn, FOUND).await.unwrap();
    nodes.until_ready(0).await;
}
