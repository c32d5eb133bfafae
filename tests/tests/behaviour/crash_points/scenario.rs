//! What is delivered, by whom, over what.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use idempotent_runtime::{Attempts, Outcome};
use idempotent_tests::wire::{Cut, Proxy};
use idempotent_tests::{AppError, Call, Delivery, Fresh, Known, Wired, until};
use sqlx::Pool;
use sqlx::pool::PoolOptions;

#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) known: Known,
    pub(super) by: By,
    pub(super) start: Start,
}

/// Who begins and commits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum By {
    Hand,
    Transact,
    /// `transact!` with timeouts, which MariaDB puts back afterwards.
    TransactWithTimeouts,
}

/// What the pool has done before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Start {
    /// Nothing.
    Cold,
    /// It has a connection.
    Connected,
    /// It has delivered another message, so that the statements are prepared.
    Warm,
}

impl Scenario {
    /// A name for the messages of one attempt.
    pub(super) fn message(self, cut: Option<Cut>) -> String {
        let Self { known, by, start } = self;
        let cut = cut.map(|cut| format!("{:?}-{:?}-{}", cut.place, cut.sender, cut.number));
        let cut = cut.as_deref().unwrap_or("uncut");
        format!("{known:?}-{by:?}-{start:?}-{cut}")
    }
}

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { known, by, start } = self;
        write!(f, "{known:?} of it known, by {by:?}, {start:?}")
    }
}

impl By {
    pub(super) const ALL: [Self; 3] = [Self::Hand, Self::Transact, Self::TransactWithTimeouts];

    pub(super) async fn deliver<DB: Wired, G: Delivery<DB>>(
        self,
        call: &Call<'_, DB, G>,
        pool: &Pool<DB>,
    ) -> Result<Outcome<()>, AppError> {
        let attempts = Attempts::on(pool);
        let long = Duration::from_mins(1);
        match self {
            Self::Hand => call.by_hand(pool).await,
            Self::Transact => call.transact(attempts).await,
            Self::TransactWithTimeouts => {
                let attempts = attempts.lock_timeout(long).statement_timeout(long);
                call.transact(attempts).await
            }
        }
    }
}

impl Start {
    /// A pool of one connection, so that the messages have an order.
    pub(super) async fn pool<DB: Wired, G: Delivery<DB>>(
        self,
        db: &Fresh<DB>,
        name: &str,
    ) -> (Proxy, Pool<DB>) {
        let (proxy, options) = db.behind_proxy().await;
        let one = PoolOptions::new().max_connections(1);
        let pool = match self {
            Self::Cold => one.connect_lazy_with(options),
            Self::Connected | Self::Warm => one.connect_with(options).await.unwrap(),
        };
        if self == Self::Warm {
            let call = Call::<DB, G>::new(db, &pool, &format!("warm-{name}"), Known::All).await;
            let again = call.transact(Attempts::on(&pool)).await.unwrap();
            assert!(again.is_duplicate());
        }
        if self != Self::Cold {
            // On its way back it is pinged.
            until("the connection is back", async || pool.num_idle() == 1).await;
        }
        (proxy, pool)
    }
}
