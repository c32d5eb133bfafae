//! A delivery over a wire that is cut once, until it is acknowledged, and a write
//! after it.

use std::time::Duration;

use idempotent_runtime::{Disposition, Outcome, disposition};
use idempotent_tests::wire::{Cut, Proxy, Seen};
use idempotent_tests::{Call, Delivery, Fresh, Known, Wired, until};
use sqlx::Pool;
use tokio::time::timeout;

use super::scenario::{By, Scenario};

pub(super) struct Tried {
    pub(super) seen: Seen,
    /// It was committed, and the client was told of an error.
    pub(super) was_committed: bool,
}

/// `direct` has another wire.
pub(super) async fn attempt<DB: Wired, G: Delivery<DB>>(
    db: &Fresh<DB>,
    direct: &Pool<DB>,
    scenario: Scenario,
    cut: Option<Cut>,
) -> Tried {
    let Scenario { known, by, start } = scenario;
    let name = scenario.message(cut);
    let call = Call::<DB, G>::new(db, direct, &name, known).await;
    let (proxy, pool) = start.pool::<DB, G>(db, &name).await;
    proxy.watch(cut);

    let outcome = acknowledged(by, &call, &pool).await;
    // Only what is committed is acknowledged.
    call.assert_processed_once(direct).await;
    let (runs, new) = (call.runs(), call.fresh().len());
    let was_committed = outcome.is_duplicate() && known != Known::All;
    if proxy.seen().cut_at.is_none() {
        assert!(runs == new && !was_committed, "{name}");
    } else if outcome.is_duplicate() {
        assert_eq!(runs, new, "{name}");
    } else {
        assert!(runs >= new, "{name}");
    }
    assert_a_later_write_is_kept(db, &pool, &proxy, &name).await;
    end(&pool).await;
    Tried {
        seen: proxy.finish().await,
        was_committed,
    }
}

/// Delivers until it is acknowledged. One cut is one failure, which `transact!`
/// does not even show.
pub(super) async fn acknowledged<DB: Wired, G: Delivery<DB>>(
    by: By,
    call: &Call<'_, DB, G>,
    pool: &Pool<DB>,
) -> Outcome<()> {
    let mut deliveries = 0;
    loop {
        deliveries += 1;
        let delivery = timeout(Duration::from_mins(1), by.deliver(call, pool));
        let error = match delivery.await.expect("it does not hang") {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        assert!(by == By::Hand && deliveries == 1, "{by:?}: {error:?}");
        assert_eq!(disposition(&error), Disposition::Redeliver, "{error:?}");
    }
}

/// On its way back a connection is pinged, unless the pool is closed by then.
pub(super) async fn end<DB: Wired>(pool: &Pool<DB>) {
    until("the connection is back", async || {
        pool.num_idle() == pool.size() as usize
    })
    .await;
    pool.close().await;
}

/// It fails only where it is cut itself; then nobody knows whether it was
/// committed.
async fn assert_a_later_write_is_kept<DB: Wired>(
    db: &Fresh<DB>,
    pool: &Pool<DB>,
    proxy: &Proxy,
    name: &str,
) {
    let is_sound = proxy.seen().cut_at.is_some();
    let write = async || {
        let mut conn = pool.acquire().await?;
        let write = format!("INSERT INTO letters (id) VALUES ('{name}')");
        DB::run(&mut conn, &write).await
    };
    let is_cut = match write().await {
        Ok(_) => false,
        Err(error) => {
            assert!(!is_sound, "{name}: {error}");
            write().await.unwrap();
            true
        }
    };
    let letters = format!("SELECT count(*) FROM letters WHERE id = '{name}'");
    let letters = db.number(&letters).await;
    assert!(letters == 1 || letters == 2 && is_cut, "{name}: {letters}");
}
