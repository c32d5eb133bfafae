//! What a copy sees of one that is open at another node.

use idempotent_clusters::{Nodes, Way, effects, on_galera};
use idempotent_runtime::{Error, Outcome, transact};
use sqlx::{MySql, MySqlPool, Transaction};

use Outcome::{Duplicate, Processed};

/// So that `busy = "fail"` does not tell it: the body runs, and one of the two is refused.
#[test]
fn a_copy_does_not_see_it() {
    on_galera(async |nodes| {
        let theirs = nodes.pool(1);
        for way in Way::ALL {
            let id = format!("{way:?}");
            let ours = opened(&nodes.pool(0), way, &id).await;
            let outcome = transact!(&theirs, tx => way.handle(tx, &id)).await;
            assert_eq!(outcome.unwrap(), Processed(()), "{id}");
            let error = Error::from(ours.commit().await.unwrap_err());
            assert!(error.is_retryable(), "{error:?}");
            assert_eq!(effects(nodes.observer(2), &id).await, 1, "{id}");
        }
    });
}

#[test]
fn where_nodes_stream_a_copy_waits_for_it() {
    on_galera(async |nodes| {
        let theirs = nodes.pool(1);
        for way in Way::ALL {
            let id = format!("{way:?}");
            let ours = opened(&nodes.streaming_pool(0), way, &id).await;
            nodes.until_applied(1).await;
            if matches!(way, Way::Busy) {
                let mut tx = theirs.begin().await.unwrap();
                let error = way.handle(&mut tx, &id).await.unwrap_err();
                assert!(error.is_in_flight(), "{error:?}");
                tx.rollback().await.unwrap();
                ours.commit().await.unwrap();
            } else {
                waits_for(nodes, ours, &theirs, way, &id).await;
            }
            assert_eq!(effects(nodes.observer(2), &id).await, 1, "{id}");
        }
    });
}

async fn waits_for(
    nodes: &Nodes,
    ours: Transaction<'_, MySql>,
    theirs: &MySqlPool,
    way: Way,
    id: &str,
) {
    let copy = async { transact!(theirs, tx => way.handle(tx, id)).await };
    let commit = async {
        nodes.until_held(1, "INSERT%").await;
        ours.commit().await.unwrap();
    };
    let (copy, ()) = tokio::join!(copy, commit);
    assert_eq!(copy.unwrap(), Duplicate, "{id}");
}

/// Handled, and not committed.
async fn opened(pool: &MySqlPool, way: Way, id: &str) -> Transaction<'static, MySql> {
    let mut tx = pool.begin().await.unwrap();
    let outcome = way.handle(&mut tx, id).await;
    assert_eq!(outcome.unwrap(), Processed(()), "{id}");
    tx
}
