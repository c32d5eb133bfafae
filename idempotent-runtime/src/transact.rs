//! `transact!`: begin, run the handlers, commit, and all of it again where that
//! may help.
//!
//! It is a macro over the public functions of this module, since a closure over
//! `&mut Transaction` cannot be proven `Send`, while code in place spawns with
//! borrowed arguments.

#![allow(clippy::missing_errors_doc, reason = "all but the macro is hidden")]

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Connection, Transaction};

use crate::attempts::{Attempts, Backoff, Begin, IntoAttempts};
use crate::disposition;
use crate::error::{Cause, Error};
use crate::observe;
use crate::outcome::{Batch, Outcome, Replay};
use crate::store::Store;

/// Runs handlers in a transaction: begins, awaits them in order, commits, and
/// retries the whole where that may help.
///
/// ```text
/// transact!(&pool, tx => notify(tx, &event)).await?                     // Outcome<T>
/// transact!(&pool, tx => notify(tx, &event), audit(tx, &event)).await?  // (Outcome<T>, Outcome<U>)
/// transact!(once: &pool, tx => notify(tx, event)).await?                // `event` may be moved
/// ```
///
/// The first argument is a pool, or [`Attempts`](crate::Attempts) on one. The
/// handlers share one error type `E: From<idempotent_runtime::Error>`.
///
/// On `Ok` everything is committed: acknowledge the message. On `Err` nothing
/// is, as far as is known: ask [`disposition`](crate::disposition()).
///
/// # What is retried
///
/// Serialization failures, deadlocks, lock timeouts, a database that stops or
/// starts, a cut connection; found by code, in the whole chain of sources of
/// the handler's error: thiserror enums, `anyhow::Error`, boxed errors and
/// generic `E: Error` alike. An `io::Error` that says that a connection was
/// cut counts too, also if it was not the database's. Pauses double from 10 ms to 1 s, with jitter. A
/// transaction that was lost ([`is_transaction_lost`]) is not retried.
///
/// If the answer to COMMIT is lost, the attempt starts again from the claim:
/// finding the key there is success, reported as `Duplicate`.
///
/// Where you begin and commit by hand, do as it does: after an error that may be
/// retried the transaction may be gone (on MariaDB a deadlock rolls back all of
/// it), so roll back, never commit.
///
/// The expressions run once per attempt, so that they borrow what they need; a
/// value moved into them is E0382 at that very token. `once:` runs them once.
///
/// # Errors
///
/// The handler's own error, or ours converted into it.
///
/// # Cancel safety
///
/// Dropped at any point, the transaction is rolled back, except when COMMIT was
/// on its way: then the database decides, and a redelivery finds out. A
/// connection whose BEGIN was cut off is closed, not returned to the pool.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "postgres")] mod example {
/// use idempotent_runtime::{Outcome, idempotent, transact};
/// use sqlx::{PgPool, Postgres, Transaction};
///
/// #[idempotent(key = "order_id")]
/// async fn accept(tx: &mut Transaction<'_, Postgres>, order_id: i64) -> sqlx::Result<()> {
///     sqlx::query("UPDATE orders SET state = 'accepted' WHERE id = $1")
///         .bind(order_id)
///         .execute(&mut **tx)
///         .await?;
///     Ok(())
/// }
///
/// async fn on_delivery(pool: &PgPool, order_id: i64) -> sqlx::Result<()> {
///     match transact!(pool, tx => accept(tx, order_id)).await? {
///         Outcome::Processed(()) => println!("accepted"),
///         Outcome::Duplicate => println!("accepted before"),
///     }
///     // only now: acknowledge
///     Ok(())
/// }
/// # }
/// ```
///
/// # Limitations
///
/// Statements of your own between a handler and the commit (in an `async` block
/// around it) are not covered by the handler's proof: on Postgres, one whose
/// error is swallowed there turns COMMIT into ROLLBACK, and sqlx does not say
/// so.
///
/// [`is_transaction_lost`]: crate::Error::is_transaction_lost
#[macro_export]
macro_rules! transact {
    (once: $pool:expr, $tx:ident => $($handler:expr),+ $(,)?) => {
        $crate::__transact!(@run $pool, $tx, [$($handler),+], once)
    };
    ($pool:expr, $tx:ident => $($handler:expr),+ $(,)?) => {
        $crate::__transact!(@run $pool, $tx, [$($handler),+], retry)
    };
    ($pool:expr, |$tx:ident $(: $ty:ty)?| $($rest:tt)*) => {
        ::core::compile_error!(
            "`transact!` takes `tx => handler(tx)`, not a closure\nhelp: write `transact!(&pool, tx => handler(tx))`"
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __transact {
    (@run $pool:expr, $tx:ident, [$($handler:expr),+], $mode:ident) => {
        async {
            let mut run = $crate::__private::run($pool);
            loop {
                let mut lease = match $crate::__private::lease(&mut run).await {
                    ::core::result::Result::Ok(lease) => lease,
                    ::core::result::Result::Err(error) => {
                        if $crate::__private::after_error(&mut run, $crate::Error::is_retryable(&error)) {
                            continue;
                        }
                        break ::core::result::Result::Err(::core::convert::From::from(error));
                    }
                };
                let mut transaction = match $crate::__private::begin(&mut lease).await {
                    ::core::result::Result::Ok(transaction) => transaction,
                    ::core::result::Result::Err(error) => {
                        match $crate::__private::after_begin(&mut run, error) {
                            ::core::result::Result::Ok(()) => continue,
                            ::core::result::Result::Err(error) => {
                                break ::core::result::Result::Err(::core::convert::From::from(error));
                            }
                        }
                    }
                };
                match $crate::__transact!(@handlers transaction, $tx, [$($handler),+]) {
                    ::core::result::Result::Ok(value) => {
                        match $crate::__private::commit(transaction).await {
                            ::core::result::Result::Ok(()) => {
                                $crate::__private::release(lease).await;
                                break ::core::result::Result::Ok(value);
                            }
                            ::core::result::Result::Err(error) => {
                                $crate::__transact!(@after_commit $mode, run, error);
                            }
                        }
                    }
                    ::core::result::Result::Err(error) => {
                        let rolled_back = $crate::__private::roll_back(transaction).await;
                        $crate::__private::release_after(lease, rolled_back).await;
                        $crate::__transact!(@after_handler $mode, run, error);
                    }
                }
            }
        }
    };
    // In a labelled block a `continue` or `break` of the user's cannot reach the loop.
    (@handlers $transaction:ident, $tx:ident, [$handler:expr]) => {
        'handler: {
            let $tx = &mut $transaction;
            break 'handler $crate::__private::settled($handler.await);
        }
    };
    (@handlers $transaction:ident, $tx:ident, [$($handler:expr),+]) => {
        'handlers: {
            ::core::result::Result::Ok(($(
                match $crate::__transact!(@handlers $transaction, $tx, [$handler]) {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(error) => {
                        break 'handlers ::core::result::Result::Err(error);
                    }
                },
            )+))
        }
    };
    (@after_commit retry, $run:ident, $error:ident) => {
        if let ::core::result::Result::Err(error) = $crate::__private::after_commit(&mut $run, $error) {
            break ::core::result::Result::Err(::core::convert::From::from(error));
        }
    };
    (@after_commit once, $run:ident, $error:ident) => {
        break ::core::result::Result::Err(::core::convert::From::from(
            <$crate::Error as ::core::convert::From<_>>::from($error),
        ))
    };
    (@after_handler retry, $run:ident, $error:ident) => {
        let retryable = $crate::__is_retryable!(&$error);
        if !$crate::__private::after_error(&mut $run, retryable) {
            break ::core::result::Result::Err($error);
        }
    };
    (@after_handler once, $run:ident, $error:ident) => {
        break ::core::result::Result::Err($error)
    };
}

/// The attempts of one `transact!`.
#[derive(Debug)]
pub struct Run<'p, DB: Store> {
    attempts: Attempts<'p, DB>,
    left: u32,
    /// How many stale connections may still be replaced without counting.
    replacements: u32,
    backoff: Backoff,
    pause: Option<Duration>,
}

/// Starts.
pub fn run<'p, P: IntoAttempts<'p>>(pool: P) -> Run<'p, P::Database> {
    let attempts = pool.into_attempts();
    Run {
        left: attempts.tries.max(1),
        replacements: attempts.pool.options().get_max_connections(),
        attempts,
        backoff: Backoff::new(),
        pause: None,
    }
}

impl<DB: Store> Run<'_, DB> {
    fn may_retry(&mut self) -> bool {
        self.left -= 1;
        if self.left == 0 {
            return false;
        }
        self.pause = Some(self.backoff.pause());
        observe::retried();
        true
    }
}

/// A connection for one attempt. Dropped while it is unsure what the
/// connection's session is in, it closes it: sqlx would return a connection
/// whose BEGIN was cut off to the pool, with the transaction open.
#[derive(Debug)]
pub struct Lease<DB: Store> {
    conn: PoolConnection<DB>,
    begin: Begin,
    unsure: bool,
}

impl<DB: Store> Drop for Lease<DB> {
    fn drop(&mut self) {
        if self.unsure {
            self.conn.close_on_drop();
        }
    }
}

/// Waits until the next attempt is due, and takes a connection, with the pool's
/// hooks.
pub async fn lease<DB: Store>(run: &mut Run<'_, DB>) -> Result<Lease<DB>, Error> {
    let begin =
        DB::begin(&run.attempts.options).map_err(|fact| Error::new(Cause::Unsupported(fact)))?;
    if let Some(pause) = run.pause.take() {
        tokio::time::sleep(pause).await;
    }
    let conn = run.attempts.pool.acquire().await?;
    Ok(Lease {
        conn,
        begin,
        unsure: false,
    })
}

/// Begins.
pub async fn begin<DB: Store>(lease: &mut Lease<DB>) -> Result<Transaction<'_, DB>, sqlx::Error> {
    let statement = AssertSqlSafe(lease.begin.statement.clone());
    lease.unsure = true;
    let begun = lease.conn.begin_with(statement).await;
    // What must be put back makes the session unsure until it is; and of several
    // statements that failed, some may have run. A busy SQLite ran none.
    lease.unsure = DB::CLOSE_IF_CUT
        || lease.begin.restore.is_some()
        || begun
            .as_ref()
            .is_err_and(|error| !disposition::is_contention(error));
    begun
}

/// Decides whether to try again after a BEGIN that failed. Nothing ran yet: a
/// connection that went stale in the pool is replaced and does not count.
pub fn after_begin<DB: Store>(run: &mut Run<'_, DB>, error: sqlx::Error) -> Result<(), Error> {
    if !disposition::is_retryable(&error) {
        return Err(error.into());
    }
    if disposition::is_connection_gone(&error) && run.replacements > 0 {
        run.replacements -= 1;
        return Ok(());
    }
    if run.may_retry() {
        Ok(())
    } else {
        Err(error.into())
    }
}

/// Commits.
pub async fn commit<DB: Store>(transaction: Transaction<'_, DB>) -> Result<(), sqlx::Error> {
    transaction.commit().await
}

/// Decides whether to try again after a COMMIT that failed. If its outcome is
/// unknown, the next attempt finds out: the key is there, or it is not.
pub fn after_commit<DB: Store>(run: &mut Run<'_, DB>, error: sqlx::Error) -> Result<(), Error> {
    let is_unknown = error.as_database_error().is_none();
    if (is_unknown || disposition::is_retryable(&error)) && run.may_retry() {
        return Ok(());
    }
    Err(error.into())
}

/// Rolls back.
pub async fn roll_back<DB: Store>(transaction: Transaction<'_, DB>) -> Result<(), sqlx::Error> {
    transaction.rollback().await
}

/// Puts the session back as it was, and returns the connection to the pool.
pub async fn release<DB: Store>(mut lease: Lease<DB>) {
    let restored = match lease.begin.restore.take() {
        Some(statement) => DB::restore(&mut lease.conn, statement).await,
        None => Ok(()),
    };
    lease.unsure = restored.is_err();
}

/// The same, unless the roll-back failed: then nobody knows what the session is
/// in, and the connection is closed.
pub async fn release_after<DB: Store>(mut lease: Lease<DB>, rolled_back: Result<(), sqlx::Error>) {
    if rolled_back.is_ok() {
        release(lease).await;
    } else {
        lease.unsure = true;
    }
}

/// Decides whether to try again after an error before the transaction, or in it.
pub fn after_error<DB: Store>(run: &mut Run<'_, DB>, is_retryable: bool) -> bool {
    is_retryable && run.may_retry()
}

/// What a handler returns on success: only then is a retry as safe as a
/// redelivery.
#[diagnostic::on_unimplemented(
    message = "`transact!` runs idempotent handlers only",
    label = "expected an `Outcome`, found `{Self}`",
    note = "it may run the whole transaction again: put `#[idempotent]` on the function, or begin and commit by hand"
)]
pub trait Settled {}

impl<T> Settled for Outcome<T> {}

impl<T> Settled for Replay<T> {}

impl<T> Settled for Batch<T> {}

/// Lets idempotent results pass.
pub fn settled<T: Settled, E>(result: Result<T, E>) -> Result<T, E> {
    result
}
