//! The wire to the server is cut at every message, in each direction, before and
//! after the message is forwarded. What was being delivered comes again until it
//! is acknowledged: then it is stored once, whatever the cut has left behind.
//!
//! Each scenario prints how many cut points were tried.

mod attempt;
mod cuts;
mod scenario;
mod unseen;

use idempotent_tests::wire::End;
use idempotent_tests::{Delivery, Fresh, Known, Wired, is_full};
use sqlx::Pool;

use attempt::attempt;
use cuts::every_cut;
use scenario::{By, Scenario, Start};
use unseen::{a_redelivery_meets_a_session_that_saw_no_end, at_once_a_redelivery_fails_meanwhile};

mod verify {
    on_servers_under!(
        idempotent_tests::Verify,
        a_first_delivery_and_its_connection,
        a_duplicate,
        a_redelivery_meets_a_session_that_saw_no_end,
    );
}

// MariaDB puts the session back as it was, after the commit.
mod verify_with_timeouts {
    on_mariadb_under!(idempotent_tests::Verify, a_first_delivery_with_timeouts);
}

mod savepoint {
    on_servers_under!(
        idempotent_tests::Savepoint,
        a_first_delivery,
        a_duplicate,
        a_redelivery_meets_a_session_that_saw_no_end,
    );
}

mod replayed {
    on_servers_under!(idempotent_tests::Replayed, a_first_delivery, a_duplicate);
}

mod replayed_under_savepoint {
    on_servers_under!(
        idempotent_tests::ReplayedUnderSavepoint,
        a_first_delivery,
        a_duplicate,
    );
}

mod batched {
    on_servers_under!(
        idempotent_tests::Batched,
        a_batch_of_which_half_is_known,
        a_redelivery_meets_a_session_that_saw_no_end,
    );
}

mod batched_under_savepoint {
    on_servers_under!(
        idempotent_tests::BatchedUnderSavepoint,
        a_batch_of_which_half_is_known,
    );
}

mod busy {
    on_servers_under!(idempotent_tests::Busy, at_once_a_redelivery_fails_meanwhile,);
}

async fn a_first_delivery<DB: Wired, G: Delivery<DB>>(db: &Fresh<DB>) {
    in_every_way::<DB, G>(db, Known::Nothing, &[Start::Connected, Start::Warm]).await;
}

async fn a_first_delivery_and_its_connection<DB: Wired, G: Delivery<DB>>(db: &Fresh<DB>) {
    let starts = [Start::Cold, Start::Connected, Start::Warm];
    in_every_way::<DB, G>(db, Known::Nothing, &starts).await;
}

async fn a_first_delivery_with_timeouts<DB: Wired, G: Delivery<DB>>(db: &Fresh<DB>) {
    let scenario = Scenario {
        known: Known::Nothing,
        by: By::TransactWithTimeouts,
        start: Start::Connected,
    };
    let direct = db.prepared(2).await;
    is_cut_at_every_message::<DB, G>(db, &direct, scenario).await;
}

async fn a_duplicate<DB: Wired, G: Delivery<DB>>(db: &Fresh<DB>) {
    in_every_way::<DB, G>(db, Known::All, &[Start::Connected, Start::Warm]).await;
}

async fn a_batch_of_which_half_is_known<DB: Wired, G: Delivery<DB>>(db: &Fresh<DB>) {
    in_every_way::<DB, G>(db, Known::Half, &[Start::Connected, Start::Warm]).await;
}

/// In the short form with the first start only, and without timeouts.
async fn in_every_way<DB: Wired, G: Delivery<DB>>(db: &Fresh<DB>, known: Known, starts: &[Start]) {
    let direct = db.prepared(2).await;
    let (starts, by) = if is_full() {
        (starts, By::ALL.as_slice())
    } else {
        (&starts[..1], &[By::Hand, By::Transact][..])
    };
    for &start in starts {
        for &by in by {
            let scenario = Scenario { known, by, start };
            is_cut_at_every_message::<DB, G>(db, &direct, scenario).await;
        }
    }
}

async fn is_cut_at_every_message<DB: Wired, G: Delivery<DB>>(
    db: &Fresh<DB>,
    direct: &Pool<DB>,
    scenario: Scenario,
) {
    let mut committed = 0;
    let cuts = every_cut(End::Seen, async |cut| {
        let tried = attempt::<DB, G>(db, direct, scenario, cut).await;
        committed += usize::from(tried.was_committed);
        tried.seen
    })
    .await;
    eprintln!("{scenario}: {cuts} cut points, {committed} of them after the commit");
    // Begin, claim, end and a write are a question and an answer each.
    assert!(cuts >= 16, "{cuts}");
    // The lost answer to COMMIT is among them.
    assert_eq!(committed > 0, scenario.known != Known::All);
    db.until_idle().await;
}
