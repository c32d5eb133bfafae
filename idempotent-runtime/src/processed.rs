//! One key: what is stored of it, and forgetting it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::Pool;

use crate::error::{Cause, Error};
use crate::handler::is_scope;
use crate::session::Session;
use crate::store::{Found, Store};
use crate::table::Table;

/// What the table says of a message that was processed: see [`Table::lookup`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Processed {
    /// When its key was claimed, by the database's clock.
    pub processed_at: SystemTime,
    /// From when on it may be pruned; `None`: it is kept.
    pub expires_at: Option<SystemTime>,
    /// Whether a fingerprint is stored.
    pub has_fingerprint: bool,
    /// The result that a replay gives back, as JSON. It can be personal data.
    pub result: Option<Vec<u8>>,
}

impl Table {
    /// Says what is stored of a message, for operators. `None`: it was not
    /// processed in this scope, or its key was pruned or forgotten.
    ///
    /// `key` is the key's [text form](crate::KeyText), as errors and the column
    /// show it: `42/Email`.
    ///
    /// # Errors
    ///
    /// If the scope or the key is no text that a handler could have stored, and
    /// whatever the database answers.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] mod example {
    /// use idempotent_runtime::{Table, idempotent, transact};
    /// use sqlx::sqlite::{Sqlite, SqlitePoolOptions};
    /// use sqlx::Transaction;
    ///
    /// #[idempotent(key(order_id), scope = "orders.accept", retain = "7 days")]
    /// async fn accept(tx: &mut Transaction<'_, Sqlite>, order_id: i64) -> sqlx::Result<()> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    /// let table = Table::default();
    /// table.migrate(&pool).await?;
    /// assert_eq!(table.lookup(&pool, "orders.accept", "7").await?, None);
    ///
    /// let _ = transact!(&pool, tx => accept(tx, 7)).await?;
    /// let processed = table.lookup(&pool, "orders.accept", "7").await?.expect("it was processed");
    /// assert!(processed.expires_at > Some(processed.processed_at));
    ///
    /// assert!(table.forget(&pool, "orders.accept", "7").await?);
    /// assert!(!transact!(&pool, tx => accept(tx, 7)).await?.is_duplicate()); // it ran again
    /// # Ok(())
    /// # }
    /// # }
    /// # fn main() {
    /// #     #[cfg(feature = "sqlite")] example::main().unwrap();
    /// # }
    /// ```
    pub async fn lookup<DB: Store>(
        &self,
        pool: &Pool<DB>,
        scope: &str,
        key: &str,
    ) -> Result<Option<Processed>, Error> {
        check(scope, key)?;
        let mut session = Session::acquire(pool).await?;
        let found = DB::look_up(session.conn(), self, scope, key).await;
        Ok(session.done(found)?.map(Processed::from))
    }

    /// Deletes one key, for operators. `false`: there was none.
    ///
    /// **The next delivery of the message runs the handler again.** What the
    /// first one did stays: unless you have undone it by hand, the effect is then
    /// there twice. A broker that still has the message, or an upstream that sends
    /// it again, delivers it without asking you. So undo first, then forget.
    ///
    /// A handler with `was(…)` has a row under each of its names: forget them all, or
    /// the next delivery is a duplicate by the one that is left.
    ///
    /// A delivery that is under way is not stopped. Its key is not there yet for
    /// Postgres (`false`); MariaDB and SQLite wait for its end, and then delete what
    /// it has committed.
    ///
    /// It needs the rights to SELECT and DELETE.
    ///
    /// # Errors
    ///
    /// As [`lookup`](Self::lookup).
    ///
    /// # Cancel safety
    ///
    /// Dropped before the end, the key is there or not: look it up.
    pub async fn forget<DB: Store>(
        &self,
        pool: &Pool<DB>,
        scope: &str,
        key: &str,
    ) -> Result<bool, Error> {
        check(scope, key)?;
        let mut session = Session::acquire(pool).await?;
        let forgotten = DB::forget(session.conn(), self, scope, key).await;
        Ok(session.done(forgotten)?)
    }
}

/// Says what the default table holds of a message: see [`Table::lookup`].
///
/// # Errors
///
/// As [`Table::lookup`].
///
/// # Cancel safety
///
/// It only reads.
pub async fn lookup<DB: Store>(
    pool: &Pool<DB>,
    scope: &str,
    key: &str,
) -> Result<Option<Processed>, Error> {
    Table::default().lookup(pool, scope, key).await
}

/// Deletes one key of the default table, so that **the next delivery of the
/// message runs the handler again**: see [`Table::forget`].
///
/// # Errors
///
/// As [`Table::forget`].
///
/// # Cancel safety
///
/// As [`Table::forget`].
pub async fn forget<DB: Store>(pool: &Pool<DB>, scope: &str, key: &str) -> Result<bool, Error> {
    Table::default().forget(pool, scope, key).await
}

impl From<Found> for Processed {
    fn from(found: Found) -> Self {
        Self {
            processed_at: time(found.processed_at),
            expires_at: found.expires_at.map(time),
            has_fingerprint: found.has_fingerprint,
            result: found.result,
        }
    }
}

fn time(microseconds: i64) -> SystemTime {
    let distance = Duration::from_micros(microseconds.unsigned_abs());
    if microseconds < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

/// A text that no handler can have stored is an operator's mistake; and on
/// MariaDB `'7 '` would find the row of `'7'`.
fn check(scope: &str, key: &str) -> Result<(), Error> {
    check_scope(scope)?;
    if is_key(key) {
        return Ok(());
    }
    Err(Error::new(Cause::Argument(format!(
        "`{key}` is not the text form of a key: write it as the column `key` shows it"
    ))))
}

pub(crate) fn check_scope(scope: &str) -> Result<(), Error> {
    if is_scope(scope) {
        return Ok(());
    }
    Err(Error::new(Cause::Argument(format!(
        "`{scope}` is not a scope: 1 to 128 of `A-Za-z0-9_.:(),-`"
    ))))
}

/// What the text form is made of, and no longer than it can be.
fn is_key(text: &str) -> bool {
    text.len() <= 255
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._:%~/#()".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_keys() {
        for key in [
            "",
            "7",
            "42/Email",
            "a%20b",
            "~/x",
            "Paid(7)",
            &"x".repeat(255),
        ] {
            assert!(is_key(key), "{key}");
        }
        for key in [" ", "7 ", "a'b", "a,b", "ä", "a\0", &"x".repeat(256)] {
            assert!(!is_key(key), "{key}");
        }
    }

    #[test]
    fn times_before_and_after_1970() {
        assert_eq!(time(1), UNIX_EPOCH + Duration::from_micros(1));
        assert_eq!(time(-1), UNIX_EPOCH - Duration::from_micros(1));
    }
}
