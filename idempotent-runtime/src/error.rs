//! The one error type, opaque, recognised by its predicates.

use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};

use crate::disposition;
use crate::store::Unproven;

/// What can go wrong around a handler.
///
/// The text names the scope and the key. Keys can be personal data: treat a
/// logged error as you treat the message itself.
///
/// It is `From<sqlx::Error>`, so that a handler may use it as its own error
/// type, and `sqlx::Error` is `From` it, so that a handler may return
/// `sqlx::Result`.
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    subject: Option<Subject>,
    cause: Cause,
}

/// Whose message it was.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) scope: &'static str,
    pub(crate) key: String,
}

/// What happened. It stands in the chain of sources under [`Error`], so that
/// it is found there also under an error that hides its first link
/// (`#[error(transparent)]` of thiserror).
#[derive(Debug)]
pub(crate) enum Cause {
    Sqlx(sqlx::Error),
    MissingKey {
        part: &'static str,
    },
    TransactionLost(Lost),
    SharedScope {
        scope: &'static str,
        function: &'static str,
    },
    InFlight,
    KeyReused {
        /// When the message was first processed.
        since: String,
    },
    Unstorable(Box<dyn StdError + Send + Sync>),
    Unreadable(Box<dyn StdError + Send + Sync>),
    Table(String),
    /// Of the business table.
    Backstop(String),
    Unsupported(&'static str),
    /// Of the pruner, `lookup` or `forget`.
    Argument(String),
}

/// How the transaction that claimed the key was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lost {
    /// There was none to claim the key in.
    NotOpen,
    /// sqlx rolled it back, one level too many, while the handler ran.
    Dropped,
    /// A statement failed and its error was swallowed.
    Aborted,
    /// The handler ended the transaction itself.
    Ended,
    /// The handler rolled back past the claim.
    RolledBack,
    /// The claim's savepoint is gone, for one of the reasons above, or a
    /// deadlock or an implicit commit took it.
    SavepointGone,
}

impl Error {
    pub(crate) fn new(cause: impl Into<Cause>) -> Self {
        Self(Box::new(Inner {
            subject: None,
            cause: cause.into(),
        }))
    }

    pub(crate) fn about(scope: &'static str, key: &str, cause: impl Into<Cause>) -> Self {
        let subject = Some(Subject {
            scope,
            key: key.to_owned(),
        });
        Self(Box::new(Inner {
            subject,
            cause: cause.into(),
        }))
    }

    /// Finds ours in the chain of sources of a handler's error: in `sqlx::Error`,
    /// `anyhow::Error` (pass `&*error`), boxed errors, and enums that keep it as a
    /// source. An enum that hides it (`#[error(transparent)]`) has it in a variant.
    ///
    /// # Examples
    ///
    /// ```
    /// use idempotent_runtime::Error;
    ///
    /// fn needs_an_alert(error: &sqlx::Error) -> bool {
    ///     Error::find(error).is_some_and(Error::is_transaction_lost)
    /// }
    ///
    /// assert!(!needs_an_alert(&sqlx::Error::PoolTimedOut));
    /// ```
    #[must_use]
    pub fn find<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Scope and key of the message, if it is about one.
    pub(crate) fn subject(&self) -> Option<(&'static str, &str)> {
        let subject = self.0.subject.as_ref()?;
        Some((subject.scope, &subject.key))
    }

    pub(crate) const fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// Says whether running the whole transaction again may succeed at once:
    /// a serialization failure, a deadlock, a lock timeout, a database that
    /// restarts, a cut connection.
    ///
    /// [`transact!`](crate::transact) retries these by itself.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.cause.is_retryable()
    }

    /// Says whether the message has no key: a part is an empty text, or a
    /// `required(…)` part is `None`. Nothing ran and nothing was stored.
    #[must_use]
    pub const fn is_missing_key(&self) -> bool {
        matches!(self.0.cause, Cause::MissingKey { .. })
    }

    /// Says whether another delivery of the message is being processed, by a
    /// handler with `busy = "fail"`. Nothing ran; it may be tried again, and
    /// [`transact!`](crate::transact) does.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        matches!(self.0.cause, Cause::InFlight)
    }

    /// Says whether the key belongs to another message: one with the same key and
    /// another `fingerprint` was processed before. Nothing ran, and what that one
    /// stored is not given away.
    #[must_use]
    pub const fn is_key_reused(&self) -> bool {
        matches!(self.0.cause, Cause::KeyReused { .. })
    }

    /// Says whether the message was processed before, and what it returned then
    /// cannot be given back: the handler had no `replay` then, or the type of its
    /// value has changed. It does not run again.
    #[must_use]
    pub const fn is_result_unreadable(&self) -> bool {
        matches!(self.0.cause, Cause::Unreadable(_))
    }

    /// Says whether the transaction that claimed the key was gone when the
    /// handler returned: aborted by a swallowed error, or ended by the
    /// handler itself.
    ///
    /// Alert on it. A handler that commits the transaction itself leaves half
    /// an effect that no redelivery repairs.
    #[must_use]
    pub const fn is_transaction_lost(&self) -> bool {
        matches!(self.0.cause, Cause::TransactionLost(_))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        if let Some(subject) = &self.0.subject {
            debug
                .field("scope", &subject.scope)
                .field("key", &subject.key);
        }
        debug.field("cause", &self.0.cause).finish()
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(Subject { scope, key }) = &self.0.subject {
            write!(f, "scope `{scope}`, key `{key}`: ")?;
        }
        match &self.0.cause {
            Cause::Sqlx(error) => error.fmt(f),
            Cause::MissingKey { part } => write!(f, "the message has no key: `{part}` is empty"),
            Cause::TransactionLost(Lost::NotOpen) => {
                f.write_str("there is no transaction to claim the key in")
            }
            Cause::TransactionLost(_) => f.write_str(
                "the transaction that claimed the key was lost before the handler returned",
            ),
            Cause::SharedScope { scope, function } => write!(
                f,
                "default scope `{scope}` would not be its own: `{function}` is not a free function of its module; \
                 write `scope = \"…\"`",
            ),
            Cause::InFlight => f.write_str("another delivery of the message is being processed"),
            Cause::KeyReused { since } => write!(
                f,
                "the key belongs to another message, which was processed at {since}"
            ),
            Cause::Unstorable(error) => {
                write!(f, "the result cannot be stored for a replay: {error}")
            }
            Cause::Unreadable(error) => write!(
                f,
                "the message was processed before, and its result cannot be read: {error}"
            ),
            Cause::Table(fact) | Cause::Backstop(fact) | Cause::Argument(fact) => f.write_str(fact),
            Cause::Unsupported(fact) => f.write_str(fact),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.cause {
            Cause::Sqlx(error) => Some(error),
            cause => Some(cause),
        }
    }
}

impl Cause {
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Sqlx(error) => disposition::is_retryable(error),
            Self::InFlight => true,
            _ => false,
        }
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlx(error) => error.fmt(f),
            Self::MissingKey { .. } => f.write_str(
                "an empty part would make unrelated messages one: reject the message, \
                 or mark the part `nullable(…)`",
            ),
            Self::TransactionLost(lost) => f.write_str(match lost {
                Lost::NotOpen => {
                    "it has ended: a statement committed it, a deadlock rolled it back, or sqlx did, \
                     for a nested `begin` that was dropped before it was done"
                }
                Lost::Dropped => {
                    "sqlx rolled it back, for a nested `begin` that was dropped before it was done: \
                     what the handler wrote since has committed itself"
                }
                Lost::Aborted => {
                    "a statement failed and its error was swallowed: the database would answer COMMIT with ROLLBACK"
                }
                Lost::Ended => "the handler ended the transaction itself: leave COMMIT and ROLLBACK to the caller",
                Lost::RolledBack => "the handler rolled back past the claim",
                Lost::SavepointGone => {
                    "the claim's savepoint is gone: the handler ended the transaction or rolled back past the claim, \
                     a statement committed implicitly, or a deadlock's error was swallowed"
                }
            }),
            Self::SharedScope { .. } => f.write_str(
                "a handler in an `impl`, a trait or another function may share module, name and key with one \
                 that would swallow its messages",
            ),
            Self::InFlight => f.write_str("try it again: it is a duplicate if the other one commits"),
            Self::KeyReused { .. } => f.write_str(
                "the fingerprints differ: reject the message, or add to `key` what tells the two apart",
            ),
            Self::Unstorable(_) => f.write_str("nothing was committed: see the docs of `replay`"),
            Self::Unreadable(_) => f.write_str("it is not run again: look the effect up by its key"),
            Self::Table(_) => f.write_str("see the docs of `Table`"),
            Self::Backstop(_) => f.write_str("see the docs of `verify_backstop`"),
            Self::Unsupported(_) => f.write_str("leave this option out, or use another database"),
            Self::Argument(_) => f.write_str("nothing was deleted: see the docs of `Pruner` and of `Table`"),
        }
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Sqlx(error) => Some(error),
            Self::Unstorable(error) | Self::Unreadable(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<sqlx::Error> for Cause {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlx(error)
    }
}

impl From<Unproven> for Cause {
    fn from(unproven: Unproven) -> Self {
        match unproven {
            Unproven::Lost(lost) => Self::TransactionLost(lost),
            Unproven::InFlight => Self::InFlight,
            Unproven::Hidden => Self::Table(
                "the key is there, and its row cannot be read: does the table have row-level security?"
                    .to_owned(),
            ),
            Unproven::Unsupported(fact) => Self::Unsupported(fact),
            Unproven::Failed(error) => Self::Sqlx(error),
        }
    }
}

impl From<Lost> for Cause {
    fn from(lost: Lost) -> Self {
        Self::TransactionLost(lost)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::AnyDriverError(inner) => match inner.downcast() {
                Ok(ours) => *ours,
                Err(other) => Self::new(sqlx::Error::AnyDriverError(other)),
            },
            error => Self::new(error),
        }
    }
}

/// Keeps a database error as it is; anything else travels inside
/// `sqlx::Error::AnyDriverError`, where the predicates of this crate still
/// find it.
impl From<Error> for sqlx::Error {
    fn from(error: Error) -> Self {
        match *error.0 {
            Inner {
                cause: Cause::Sqlx(error),
                ..
            } => error,
            inner => Self::AnyDriverError(Box::new(Error(Box::new(inner)))),
        }
    }
}
