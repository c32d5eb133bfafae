//! How `transact!` begins, how often it tries, how long it waits between.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use sqlx::Pool;

use crate::store::Store;

/// Where and how [`transact!`](crate::transact) runs a transaction: a pool, and
/// what the transaction begins with.
///
/// `transact!(&pool, …)` is short for `transact!(Attempts::on(&pool), …)`.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "postgres")] mod example {
/// use std::time::Duration;
///
/// use idempotent_runtime::{Attempts, Isolation, Outcome, idempotent, transact};
/// use sqlx::{PgPool, Postgres, Transaction};
///
/// #[idempotent(key = "order_id", scope = "orders.accept")]
/// async fn accept(tx: &mut Transaction<'_, Postgres>, order_id: i64) -> sqlx::Result<()> {
///     Ok(())
/// }
///
/// # async fn run(pool: PgPool) -> sqlx::Result<()> {
/// let attempts = Attempts::on(&pool)
///     .isolation(Isolation::Serializable)
///     .lock_timeout(Duration::from_secs(3))
///     .attempts(8);
/// let outcome: Outcome<()> = transact!(attempts, tx => accept(tx, 7)).await?;
/// # Ok(()) }
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "hand it to `transact!`"]
pub struct Attempts<'p, DB: Store> {
    pub(crate) pool: &'p Pool<DB>,
    pub(crate) options: Options,
    /// In all.
    pub(crate) tries: u32,
}

impl<'p, DB: Store> Attempts<'p, DB> {
    /// Five attempts, at the isolation level and with the timeouts that the
    /// database and the pool have by default.
    pub const fn on(pool: &'p Pool<DB>) -> Self {
        let options = Options {
            isolation: None,
            lock_timeout: None,
            statement_timeout: None,
        };
        Self {
            pool,
            options,
            tries: TRIES,
        }
    }

    /// How often the transaction is tried in all. 0 counts as 1.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.tries = attempts;
        self
    }

    /// The isolation level. On SQLite every transaction is serializable.
    pub const fn isolation(mut self, isolation: Isolation) -> Self {
        self.options.isolation = Some(isolation);
        self
    }

    /// How long one statement may wait for a lock: it bounds the wait for
    /// another delivery of the same message, which then is retried.
    ///
    /// Postgres counts in milliseconds (`lock_timeout`), MariaDB in whole
    /// seconds, rounded up (`innodb_lock_wait_timeout`, put back afterwards).
    /// SQLite refuses it at run time: there `busy_timeout` belongs to the
    /// connection.
    pub const fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.options.lock_timeout = Some(timeout);
        self
    }

    /// How long one statement may run. Postgres: `statement_timeout`; MariaDB:
    /// `max_statement_time`, put back afterwards, which MySQL does not have.
    /// SQLite refuses it at run time.
    pub const fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.options.statement_timeout = Some(timeout);
        self
    }
}

/// The isolation level of a transaction: those that every database here has.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Isolation {
    /// `READ COMMITTED`.
    ReadCommitted,
    /// `REPEATABLE READ`.
    RepeatableRead,
    /// `SERIALIZABLE`.
    Serializable,
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl Isolation {
    pub(crate) const fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// What a transaction begins with.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub(crate) isolation: Option<Isolation>,
    pub(crate) lock_timeout: Option<Duration>,
    pub(crate) statement_timeout: Option<Duration>,
}

/// The statements around a transaction with options.
#[derive(Clone, Debug)]
pub struct Begin {
    pub(crate) statement: String,
    /// Puts back what outlives the transaction.
    pub(crate) restore: Option<String>,
}

/// What `transact!` takes: a pool, or [`Attempts`] on one.
#[diagnostic::on_unimplemented(
    message = "`transact!` begins on a pool",
    label = "expected `&Pool<…>` or `Attempts`",
    note = "pass `&pool`, or `Attempts::on(&pool)` with options"
)]
pub trait IntoAttempts<'p> {
    /// The pool's database.
    type Database: Store;
    /// The attempts to make.
    fn into_attempts(self) -> Attempts<'p, Self::Database>;
}

impl<'p, DB: Store> IntoAttempts<'p> for &'p Pool<DB> {
    type Database = DB;

    fn into_attempts(self) -> Attempts<'p, DB> {
        Attempts::on(self)
    }
}

impl<'p, DB: Store> IntoAttempts<'p> for Attempts<'p, DB> {
    type Database = DB;

    fn into_attempts(self) -> Self {
        self
    }
}

/// How often it is tried in all, unless the caller says how often.
pub(crate) const TRIES: u32 = 5;

/// The pauses between attempts: doubling from 10 ms to 1 s, each cut by up to
/// half at random, so that two victims of one deadlock do not meet again.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_secs(1);

    pub(crate) const fn new() -> Self {
        Self { next: Self::FIRST }
    }

    pub(crate) fn pause(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(Self::LONGEST);
        // Each `RandomState` has keys of its own.
        let random = RandomState::new().build_hasher().finish();
        let share = f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX);
        whole.mul_f64(share.mul_add(-0.5, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_differ() {
        let pauses = |mut backoff: Backoff| std::array::from_fn::<_, 12, _>(|_| backoff.pause());
        let (one, other) = (pauses(Backoff::new()), pauses(Backoff::new()));
        for (round, pause) in (0_u32..).zip(one) {
            let whole = (Backoff::FIRST * 2_u32.pow(round)).min(Backoff::LONGEST);
            assert!(pause <= whole && pause >= whole / 2, "{round}: {pause:?}");
        }
        assert_ne!(one, other);
    }
}
