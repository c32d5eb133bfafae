//! A copy of the message commits at another node, at every point of a delivery.

use std::iter;
use std::pin::pin;

use idempotent_clusters::{Audit, Nodes, Way, effects, keys, on_galera, paused_at, without_a_key};
use idempotent_runtime::{Attempts, Error, Outcome, transact};
use idempotent_tests::Moment;
use sqlx::MySqlPool;

use Outcome::{Duplicate, Processed};

#[test]
fn a_copy_that_commits_at_another_node_at_any_point_leaves_one_effect() {
    on_galera(async |nodes| {
        at_every_point(nodes, async |pool, way, id| {
            transact!(pool, tx => way.handle(tx, id)).await
        })
        .await;
    });
}

/// A consumer of its own, and what it is told.
#[test]
fn the_conflict_is_an_error_that_may_be_retried_wherever_it_arrives() {
    on_galera(async |nodes| {
        let conflicts = at_every_point(nodes, by_hand).await;
        assert!(conflicts > Way::ALL.len() * 4, "only {conflicts}");
    });
}

/// Or else the test would not see a message that runs twice.
#[test]
fn without_a_key_both_copies_have_their_effect() {
    on_galera(async |nodes| {
        let [here, there] = [nodes.pool(0), nodes.pool(1)];
        let mut ours = here.begin().await.unwrap();
        without_a_key(&mut ours, "1").await.unwrap();
        let mut theirs = there.begin().await.unwrap();
        without_a_key(&mut theirs, "1").await.unwrap();
        theirs.commit().await.unwrap();
        ours.commit().await.unwrap();
        let audit = Audit::of(nodes.observer(2), iter::once("1".to_owned())).await;
        assert_eq!((audit.lost, audit.doubled), (0, 1), "{audit}");
    });
}

async fn by_hand(pool: &MySqlPool, way: Way, id: &str) -> Result<Outcome<()>, Error> {
    let mut tx = pool.begin().await?;
    let outcome = way.handle(&mut tx, id).await?;
    tx.commit().await?;
    Ok(outcome)
}

/// Returns how often our copy was refused.
async fn at_every_point(
    nodes: &Nodes,
    deliver: impl AsyncFn(&MySqlPool, Way, &str) -> Result<Outcome<()>, Error>,
) -> usize {
    let [here, there] = [nodes.pool(0), nodes.pool(1)];
    let (mut points, mut conflicts) = (0, 0);
    for way in Way::ALL {
        for moment in Moment::ALL {
            for polls in 1.. {
                let id = format!("{way:?}-{moment:?}-{polls}");
                let mut ours = pin!(deliver(&here, way, &id));
                if let Some(outcome) = paused_at(ours.as_mut(), polls, moment).await {
                    assert_eq!(outcome.unwrap(), Processed(()), "{id}");
                    break;
                }
                let attempts = Attempts::on(&there).attempts(20);
                let theirs = transact!(attempts, tx => way.handle(tx, &id))
                    .await
                    .unwrap();
                nodes.until_applied(0).await;
                match (ours.await, theirs) {
                    (Ok(Duplicate), Processed(())) | (Ok(Processed(())), Duplicate) => {}
                    (Err(error), Processed(())) => {
                        assert!(error.is_retryable(), "{id}: {error:?}");
                        conflicts += 1;
                    }
                    (ours, theirs) => panic!("{id}: {ours:?}, {theirs:?}"),
                }
                assert_eq!(effects(nodes.observer(2), &id).await, 1, "{id}");
                points += 1;
            }
        }
    }
    println!("{points} points, {conflicts} conflicts");
    assert!(points > Way::ALL.len() * 4, "only {points}");
    assert_eq!(keys(nodes.observer(0)).await, keys(nodes.observer(1)).await);
    conflicts
}
