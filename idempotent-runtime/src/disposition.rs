//! What a consumer does with an error: once, for every handler error.
//!
//! The rules look at codes, never at texts, which differ by locale:
//! SQLSTATE on Postgres (appendix A of its manual), error numbers on MariaDB
//! and MySQL (their error references), result codes on SQLite
//! (`https://www.sqlite.org/rescode.html`).

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};
use std::io;

use sqlx::error::DatabaseError;

use crate::error::{Cause, Error};

/// What to tell the broker about a message whose handler failed. There will be
/// no third answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Disposition {
    /// Let it come again (nack with requeue, no acknowledgement, HTTP 5xx).
    /// After N deliveries the broker's own limit decides.
    Redeliver,
    /// No redelivery can succeed: reject it to a dead-letter queue (HTTP 4xx).
    Reject,
}

/// Decides between redelivery and rejection for the error of any handler.
///
/// A lost message is worse than a second run: everything is redelivered,
/// unknown errors too, except a message without a key
/// ([`Error::is_missing_key`]), one with the key of another
/// ([`Error::is_key_reused`]), one whose result cannot be given back
/// ([`Error::is_result_unreadable`]), and what the handler itself declared
/// [`Permanent`].
///
/// The chain of sources is searched, from the error down. For
/// `anyhow::Error` and `Box<dyn Error + Send + Sync>` pass `&*error`.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Disposition, Permanent, disposition};
///
/// let down = sqlx::Error::PoolTimedOut;
/// assert_eq!(disposition(&down), Disposition::Redeliver);
///
/// let refused = Permanent::new("no such account");
/// assert_eq!(disposition(&refused), Disposition::Reject);
/// ```
#[must_use]
pub fn disposition(error: &(dyn StdError + 'static)) -> Disposition {
    let rejected = links(error).any(|link| match link {
        Link::Permanent => true,
        Link::Cause(cause) => matches!(
            cause,
            Cause::MissingKey { .. } | Cause::KeyReused { .. } | Cause::Unreadable(_)
        ),
        Link::Sqlx(_) | Link::Database(_) | Link::Io(_) => false,
    });
    if rejected {
        Disposition::Reject
    } else {
        Disposition::Redeliver
    }
}

/// Says whether running the whole transaction again may succeed at once.
pub(crate) fn is_retryable(error: &(dyn StdError + 'static)) -> bool {
    for link in links(error) {
        match link {
            Link::Cause(Cause::Sqlx(_)) => {} // the next link
            Link::Cause(Cause::InFlight) => return true,
            Link::Permanent | Link::Cause(_) => return false,
            Link::Sqlx(error) => {
                if is_cut(error) {
                    return true;
                }
            }
            Link::Database(error) => return trouble(error).is_some(),
            Link::Io(error) => return is_connection_lost(error),
        }
    }
    false
}

/// Says whether the connection is of no more use.
pub(crate) fn is_connection_gone(error: &sqlx::Error) -> bool {
    is_cut(error) || error.as_database_error().and_then(trouble) == Some(Trouble::Gone)
}

/// Says whether another transaction was in the way.
pub(crate) fn is_contention(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(trouble) == Some(Trouble::Contention)
}

/// Says whether the answer did not come, so that nothing is known of the
/// statement that was under way.
const fn is_cut(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed)
}

/// Declares an error permanent: no redelivery can succeed, so that
/// [`disposition`] says `Reject` wherever it stands in the chain of sources,
/// and `transact!` does not retry.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Disposition, Permanent, disposition};
///
/// #[derive(Debug, thiserror::Error)]
/// enum AppError {
///     #[error("database")]
///     Database(#[from] sqlx::Error),
///     #[error(transparent)]
///     Refused(#[from] Permanent),
/// }
///
/// let error = AppError::from(Permanent::new("account is closed"));
/// assert_eq!(disposition(&error), Disposition::Reject);
/// assert_eq!(error.to_string(), "account is closed");
/// ```
#[derive(Debug)]
pub struct Permanent(PermanentCause);

/// Under [`Permanent`] in the chain, for errors that hide their first link.
#[derive(Debug)]
struct PermanentCause(Box<dyn StdError + Send + Sync>);

impl Permanent {
    /// Wraps an error, or a text.
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(PermanentCause(error.into()))
    }
}

impl Display for Permanent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.0.fmt(f)
    }
}

impl StdError for Permanent {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

impl Display for PermanentCause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("no redelivery can succeed")
    }
}

impl StdError for PermanentCause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// A link of the chain that says something about redelivery.
enum Link<'e> {
    Permanent,
    Cause(&'e Cause),
    Sqlx(&'e sqlx::Error),
    Database(&'e dyn DatabaseError),
    Io(&'e io::Error),
}

fn links<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = Link<'e>> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
    .filter_map(link)
}

fn link<'e>(error: &'e (dyn StdError + 'static)) -> Option<Link<'e>> {
    if error.is::<Permanent>() || error.is::<PermanentCause>() {
        return Some(Link::Permanent);
    }
    if let Some(error) = error.downcast_ref::<Error>() {
        return Some(Link::Cause(error.cause()));
    }
    if let Some(cause) = error.downcast_ref::<Cause>() {
        return Some(Link::Cause(cause));
    }
    if let Some(error) = error.downcast_ref::<sqlx::Error>() {
        return Some(Link::Sqlx(error));
    }
    // A transparent error around `sqlx::Error` shows only what stands under that.
    if let Some(error) = error.downcast_ref::<Box<dyn DatabaseError>>() {
        return Some(Link::Database(&**error));
    }
    error.downcast_ref::<io::Error>().map(Link::Io)
}

fn is_connection_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof,
    };

    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
    )
}

/// A database error that another attempt may not meet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Trouble {
    /// Other transactions are in the way.
    Contention,
    /// The session has ended.
    Gone,
}

fn trouble(error: &dyn DatabaseError) -> Option<Trouble> {
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return mysql_trouble(error.number(), error.code());
    }
    #[cfg(feature = "sqlite")]
    if error
        .try_downcast_ref::<sqlx::sqlite::SqliteError>()
        .is_some()
    {
        return sqlite_trouble(&error.code()?);
    }
    sqlstate_trouble(&error.code()?)
}

/// Serialization failure, deadlock, lock not available; a server that stops or
/// starts, and class 08, connection exceptions.
fn sqlstate_trouble(code: &str) -> Option<Trouble> {
    match code {
        "40001" | "40P01" | "55P03" => Some(Trouble::Contention),
        "57P01" | "57P02" | "57P03" => Some(Trouble::Gone),
        _ => code.starts_with("08").then_some(Trouble::Gone),
    }
}

/// Deadlock (1213), lock wait timeout (1205), record changed since it was read
/// (1020); connection killed (1927), disconnected as idle (4031, MySQL 8), a Galera node that lost its cluster while it
/// committed (1180), and SQLSTATE class 08, which holds the shutdown of a server (1053) and a node outside of its
/// cluster (1047).
#[cfg(feature = "mysql")]
fn mysql_trouble(number: u16, sqlstate: Option<&str>) -> Option<Trouble> {
    match number {
        1213 | 1205 | 1020 => Some(Trouble::Contention),
        1180 | 1927 | 4031 => Some(Trouble::Gone),
        _ => sqlstate?.starts_with("08").then_some(Trouble::Gone),
    }
}

/// `SQLITE_BUSY` and its extended forms, such as `BUSY_RECOVERY` (261) and
/// `BUSY_SNAPSHOT` (517): the low byte is the primary code.
#[cfg(feature = "sqlite")]
fn sqlite_trouble(code: &str) -> Option<Trouble> {
    const SQLITE_BUSY: u32 = 5;
    (code.parse::<u32>().ok()? & 0xff == SQLITE_BUSY).then_some(Trouble::Contention)
}
