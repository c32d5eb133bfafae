//! A primary that is killed, and its standby that takes over.

use std::error::Error as _;
use std::slice;

use idempotent_clusters::{Audit, Broker, Following, Way, consume, effects, keys, on_replicated};
use idempotent_runtime::{Disposition, Error, Outcome, disposition, transact};
use idempotent_tests::{Engine, until};
use sqlx::{PgPool, Postgres, Transaction};

use Outcome::{Duplicate, Processed};

#[test]
fn a_standby_that_commits_wait_for_loses_and_doubles_nothing() {
    for following in [Following::Written, Following::Applied] {
        on_replicated(following, async |servers| {
            let pool = servers.pool();
            let broker = Broker::with(6_000);
            let consumers = consume(&broker, 16, slice::from_ref(&pool));
            broker.until_acknowledged(40).await;
            servers.crash_primary();
            servers.promote().await;
            let failures: usize = consumers.join_all().await.into_iter().sum();
            assert!(failures > 0, "nobody was there when the primary was killed");
            let audit = Audit::of(&pool, broker.ids()).await;
            println!("{following:?}: {audit} failures={failures}");
            assert!(audit.is_clean(), "{audit}");
        });
    }
}

/// Or else the test above would not see a message that is lost.
#[test]
fn the_audit_finds_what_an_asynchronous_standby_loses() {
    on_replicated(Following::Asynchronous, async |servers| {
        let pool = servers.pool();
        let broker = Broker::with(1_000);
        let consumers = consume(&broker, 16, slice::from_ref(&pool));
        broker.until_acknowledged(40).await;
        servers.cut_standby_off().await;
        broker.until_acknowledged(60).await;
        servers.crash_primary();
        servers.promote().await;
        consumers.join_all().await;
        let audit = Audit::of(&pool, broker.ids()).await;
        println!("{audit}");
        assert!(audit.lost > 0, "{audit}");
        assert_eq!(audit.doubled, 0, "{audit}");
    });
}

/// What was acknowledged meanwhile is lost, each message as a whole.
#[test]
fn a_standby_that_no_commit_waits_for_loses_what_it_did_not_get() {
    on_replicated(Following::Asynchronous, async |servers| {
        let pool = servers.pool();
        for way in Way::ALL {
            assert_eq!(
                deliver(&pool, way, &id("before", way)).await.unwrap(),
                Processed(())
            );
        }
        servers.until_standby_has_all().await;
        servers.cut_standby_off().await;
        for way in Way::ALL {
            assert_eq!(
                deliver(&pool, way, &id("after", way)).await.unwrap(),
                Processed(())
            );
        }
        servers.crash_primary();
        servers.promote().await;
        for way in Way::ALL {
            let kept = deliver_until_settled(&pool, way, &id("before", way)).await;
            assert_eq!(kept, Duplicate, "{way:?}");
            assert_eq!(effects(&pool, &id("after", way)).await, 0, "{way:?}");
            let lost = deliver_until_settled(&pool, way, &id("after", way)).await;
            assert_eq!(lost, Processed(()), "{way:?}");
        }
    });
}

/// The same break as above, when commits wait: nothing is acknowledged that could be lost.
#[test]
fn without_its_standby_no_delivery_ends() {
    on_replicated(Following::Written, async |servers| {
        let pool = servers.pool();
        servers.cut_standby_off().await;
        let deliveries = Way::ALL.map(|way| {
            let pool = pool.clone();
            tokio::spawn(async move { deliver(&pool, way, &id("cut off", way)).await })
        });
        servers.until_commits_wait(Way::ALL.len()).await;
        // What is not answered yet is not seen yet: a copy is no duplicate.
        let copy = {
            let pool = pool.clone();
            let id = id("cut off", Way::Verify);
            tokio::spawn(async move { deliver(&pool, Way::Verify, &id).await })
        };
        servers.until_claims_wait(1).await;
        assert!(deliveries.iter().all(|delivery| !delivery.is_finished()));
        assert!(!copy.is_finished());
        servers.crash_primary();
        servers.promote().await;
        for (delivery, way) in deliveries.into_iter().zip(Way::ALL) {
            // `transact!` has tried again meanwhile, at the standby.
            if let Err(error) = delivery.await.unwrap() {
                assert_eq!(disposition(&error), Disposition::Redeliver, "{error:?}");
                let _ = deliver_until_settled(&pool, way, &id("cut off", way)).await;
            }
            assert_eq!(effects(&pool, &id("cut off", way)).await, 1, "{way:?}");
        }
        let _ = copy.await.unwrap();
        assert_eq!(effects(&pool, &id("cut off", Way::Verify)).await, 1);
    });
}

/// A commit that waited when the primary was killed is there after its restart, though the standby
/// does not have it. A duplicate writes nothing, and so waits for nobody.
#[test]
fn a_duplicate_waits_for_the_standby_only_if_it_writes() {
    on_replicated(Following::Written, async |servers| {
        let (pool, way) = (servers.pool(), Way::Verify);
        servers.cut_standby_off().await;
        let ids = ["told", "waits"].map(|what| id(what, way));
        let first = ids.clone().map(|id| {
            let pool = pool.clone();
            tokio::spawn(async move { deliver(&pool, way, &id).await })
        });
        servers.until_commits_wait(2).await;
        servers.crash_primary();
        servers.restart_primary();
        for delivery in first {
            let outcome = delivery.await.unwrap();
            assert!(!matches!(outcome, Ok(Processed(()))), "{outcome:?}");
        }
        let [told, waits] = ids;
        assert_eq!(deliver_until_settled(&pool, way, &told).await, Duplicate);
        assert_eq!(effects(&pool, &told).await, 1);

        let waiting = {
            let (pool, id) = (pool.clone(), waits.clone());
            tokio::spawn(async move { transact!(&pool, tx => written(tx, &id)).await })
        };
        servers.until_commits_wait(1).await;
        assert!(!waiting.is_finished());
        servers.crash_primary();
        servers.promote().await;
        let _ = waiting.await.unwrap();
        // Both are gone; only the first of them was acknowledged.
        assert_eq!(effects(&pool, &told).await, 0);
        let _ = deliver_until_settled(&pool, way, &waits).await;
        assert_eq!(effects(&pool, &waits).await, 1);
    });
}

/// A duplicate that leaves a record in the log, for which its commit waits.
async fn written(tx: &mut Transaction<'_, Postgres>, id: &str) -> Result<Outcome<()>, Error> {
    const RECORD: &str = "SELECT pg_logical_emit_message(true, 'idempotent', '')";
    let outcome = Way::Verify.handle(tx, id).await?;
    if outcome.is_duplicate() {
        Postgres::run(tx, RECORD).await?;
    }
    Ok(outcome)
}

/// A server that takes no writes is no reason to lose a message.
#[test]
fn at_a_standby_messages_are_given_back() {
    on_replicated(Following::Written, async |servers| {
        let standby = servers.standby();
        for way in Way::ALL {
            let delivery = deliver(&standby, way, &id("standby", way)).await;
            let error = delivery.unwrap_err();
            assert_eq!(code(&error).as_deref(), Some("25006"), "{error:?}");
            assert_eq!(disposition(&error), Disposition::Redeliver, "{error:?}");
            assert!(!error.is_transaction_lost(), "{error:?}");
        }
        assert_eq!(keys(&standby).await, 0);
    });
}

fn id(what: &str, way: Way) -> String {
    format!("{what}-{way:?}")
}

/// The database's.
fn code(error: &Error) -> Option<String> {
    let error: &sqlx::Error = error.source()?.downcast_ref()?;
    Some(error.as_database_error()?.code()?.into_owned())
}

async fn deliver(pool: &PgPool, way: Way, id: &str) -> Result<Outcome<()>, Error> {
    transact!(pool, tx => way.handle(tx, id)).await
}

/// Delivers a message until it can be acknowledged.
async fn deliver_until_settled(pool: &PgPool, way: Way, id: &str) -> Outcome<()> {
    let mut settled = None;
    until("the message is settled", async || {
        settled = deliver(pool, way, id).await.ok();
        settled.is_some()
    })
    .await;
    settled.expect("it was waited for")
}
