//! The client sees the end of its connection, and the server does not: what the
//! delivery had begun stays open.

use std::pin::pin;

use idempotent_runtime::{Disposition, disposition};
use idempotent_tests::wire::{End, Proxy};
use idempotent_tests::{AppError, Call, Delivery, Fresh, Known, Wired, is_full, until};
use sqlx::Pool;

use super::attempt::{acknowledged, end};
use super::cuts::every_cut;
use super::scenario::{By, Scenario, Start};

/// It waits, or finds the message committed.
pub(super) async fn a_redelivery_meets_a_session_that_saw_no_end<DB: Wired, G: Delivery<DB>>(
    db: &Fresh<DB>,
) {
    let waiting = DB::WAITING.expect("the server tells who waits");
    let direct = db.prepared(2).await;
    let by = if is_full() {
        &By::ALL[..]
    } else {
        &[By::Transact]
    };
    for &by in by {
        let mut waits = 0;
        let cuts = at_every_message::<DB, G>(db, &direct, by, async |call, proxy, pool| {
            let mut delivery = pin!(acknowledged(by, call, pool));
            let is_waiting = until("it waits", async || {
                proxy.seen().cut_at.is_some() && db.number(waiting).await > 0
            });
            tokio::select! {
                _ = &mut delivery => return,
                () = is_waiting => waits += 1,
            }
            let _ = call.is_processed().await;
            proxy.let_go();
            let _ = delivery.await;
        })
        .await;
        eprintln!("by {by:?}: {cuts} cut points, at {waits} of them a redelivery waited");
        assert!(waits > 0);
    }
    db.until_idle().await;
}

/// With `busy = "fail"` it is told so, and runs nothing.
pub(super) async fn at_once_a_redelivery_fails_meanwhile<DB: Wired, G: Delivery<DB>>(
    db: &Fresh<DB>,
) {
    let direct = db.prepared(2).await;
    let mut failures = 0;
    let cuts = at_every_message::<DB, G>(db, &direct, By::Hand, async |call, proxy, pool| {
        let mut is_in_flight = false;
        until("it is acknowledged", async || {
            let runs = call.runs();
            match call.by_hand(pool).await {
                Ok(_) => return true,
                Err(AppError::Idempotent(error)) if error.is_in_flight() => {
                    assert_eq!(call.runs(), runs, "nothing is run");
                    is_in_flight = true;
                    proxy.let_go();
                }
                Err(error) => assert_eq!(disposition(&error), Disposition::Redeliver),
            }
            false
        })
        .await;
        failures += usize::from(is_in_flight);
    })
    .await;
    eprintln!("{cuts} cut points, at {failures} of them a redelivery was told to come later");
    assert!(failures > 0);
    db.until_idle().await;
}

/// Delivers a message until it is acknowledged, and checks it; returns how often
/// it was cut.
async fn at_every_message<DB: Wired, G: Delivery<DB>>(
    db: &Fresh<DB>,
    direct: &Pool<DB>,
    by: By,
    mut deliver: impl AsyncFnMut(&Call<'_, DB, G>, &Proxy, &Pool<DB>),
) -> usize {
    let scenario = Scenario {
        known: Known::Nothing,
        by,
        start: Start::Connected,
    };
    every_cut(End::UnseenByServer, async |cut| {
        let name = scenario.message(cut);
        let call = Call::<DB, G>::new(db, direct, &name, scenario.known).await;
        let (proxy, pool) = scenario.start.pool::<DB, G>(db, &name).await;
        proxy.watch(cut);
        deliver(&call, &proxy, &pool).await;
        call.assert_processed_once(direct).await;
        end(&pool).await;
        proxy.finish().await
    })
    .await
}
