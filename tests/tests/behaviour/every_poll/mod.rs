//! Every kind of handler, dropped after its first poll, its second, … its last:
//! what holds then, and what is left to the caller.

mod callers;

use idempotent_tests::{Call, CutAt, Delivery, Engine, Fresh, Moment, at_every_poll, is_full};

use callers::{
    a_caller_that_commits_has_both_or_none, a_caller_that_commits_may_lose_the_message,
    a_caller_that_drops_the_transaction_has_none, transact_has_both_or_none,
};
use sqlx::Pool;

mod verify {
    on_every_database_under!(
        idempotent_tests::Verify,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod savepoint {
    on_every_database_under!(
        idempotent_tests::Savepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod replayed {
    on_every_database_under!(
        idempotent_tests::Replayed,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod replayed_under_savepoint {
    on_every_database_under!(
        idempotent_tests::ReplayedUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod batched {
    on_every_database_under!(
        idempotent_tests::Batched,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod batched_under_savepoint {
    on_every_database_under!(
        idempotent_tests::BatchedUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod renamed {
    on_every_database_under!(
        idempotent_tests::Renamed,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod renamed_under_savepoint {
    on_every_database_under!(
        idempotent_tests::RenamedUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

mod busy {
    on_servers_under!(
        idempotent_tests::Busy,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
}

mod busy_under_savepoint {
    on_servers_under!(
        idempotent_tests::BusyUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
}

// On MariaDB a connection on which a statement was being prepared is closed:
// `transact!` does that, the caller must.
mod preparing {
    on_sqlite_under!(
        idempotent_tests::Preparing,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
    on_postgres_under!(
        idempotent_tests::Preparing,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_may_lose_the_message,
        transact_has_both_or_none,
    );
    on_mariadb_under!(idempotent_tests::Preparing, transact_has_both_or_none);
}

mod preparing_under_savepoint {
    on_sqlite_under!(
        idempotent_tests::PreparingUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
    on_postgres_under!(
        idempotent_tests::PreparingUnderSavepoint,
        a_caller_that_drops_the_transaction_has_none,
        a_caller_that_commits_has_both_or_none,
        transact_has_both_or_none,
    );
    on_mariadb_under!(
        idempotent_tests::PreparingUnderSavepoint,
        transact_has_both_or_none,
    );
}

/// Where a future is cut off.
#[derive(Clone, Copy)]
struct Cut {
    polls: u32,
    moment: Moment,
}

impl Cut {
    fn off<F: Future>(self, future: F) -> CutAt<F> {
        CutAt::new(self.polls, self.moment, future)
    }
}

/// Makes calls that are cut off at every poll, whatever is known of their
/// messages, until one is not, as `call` says. `kind` tells those of one test
/// apart.
async fn calls<DB: Engine, G: Delivery<DB>>(
    db: &Fresh<DB>,
    kind: &str,
    mut call: impl AsyncFnMut(&Call<'_, DB, G>, &Pool<DB>, Cut) -> bool,
) {
    // Where each statement is prepared anew there are the most polls.
    let mut pools = vec![db.pool_that_prepares_anew(2).await];
    if is_full() {
        pools.push(db.pool(2).await);
    }
    for (nth, pool) in pools.iter().enumerate() {
        for &known in G::KNOWN {
            let dropped = at_every_poll(async |name, polls, moment| {
                let name = format!("{name}-{nth}-{known:?}-{kind}");
                let messages = Call::new(db, pool, &name, known).await;
                call(&messages, pool, Cut { polls, moment }).await
            })
            .await;
            eprintln!("{known:?} of it known: dropped at {dropped} polls");
        }
    }
}
