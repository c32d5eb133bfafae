//! What happens, one thing at a time, in words.

use std::fmt::{self, Display, Formatter};

use crate::state::{Message, Name, Release, Worker};

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The broker gives a copy to an idle worker.
    Delivers {
        /// Which message.
        message: Message,
        /// To whom.
        to: Worker,
        /// The release that the worker runs.
        release: Release,
    },
    /// A worker does something.
    Works(Worker, Act),
    /// Time passes.
    Ticks,
    /// The pruner deletes a row.
    Prunes(Name),
}

/// What a worker does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Act {
    /// Reads, and no row is there.
    Looks,
    /// Waits for the transaction that has inserted the row.
    Waits(Name),
    /// Inserts the row.
    Claims(Name),
    /// Takes the copy for a duplicate; what the claim has inserted is removed.
    Finds(Name),
    /// Runs the handler's body.
    Runs,
    /// Runs the body, in which a statement fails; it goes on as if nothing were.
    Swallows,
    /// The handler returns `Processed`.
    Returns,
    /// The proof fails: `Err`, and the copy is given back.
    Refuses,
    /// Commits.
    Commits,
    /// Commits, and the answer does not come.
    CommitsUnheard {
        /// Whether COMMIT arrived.
        is_stored: bool,
    },
    /// Tells the broker.
    Acknowledges,
    /// Stops, wherever it is.
    Crashes,
}

impl Act {
    pub(crate) fn is_mishap(self) -> bool {
        matches!(
            self,
            Self::Swallows | Self::CommitsUnheard { .. } | Self::Crashes
        )
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivers {
                message,
                to,
                release,
            } => write!(f, "{} gets {message} ({release} release)", letter(*to)),
            Self::Works(worker, act) => write!(f, "{} {act}", letter(*worker)),
            Self::Ticks => f.write_str("time passes"),
            Self::Prunes(name) => write!(f, "the pruner deletes `{name}`"),
        }
    }
}

impl Display for Act {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Looks => f.write_str("sees no row"),
            Self::Waits(name) => write!(f, "waits for `{name}`"),
            Self::Claims(name) => write!(f, "claims `{name}`"),
            Self::Finds(name) => write!(f, "finds `{name}`: duplicate"),
            Self::Runs => f.write_str("runs the handler"),
            Self::Swallows => f.write_str("runs the handler, which swallows a database error"),
            Self::Returns => f.write_str("returns: processed"),
            Self::Refuses => f.write_str("finds the transaction lost: error"),
            Self::Commits => f.write_str("commits"),
            Self::CommitsUnheard { is_stored: true } => {
                f.write_str("commits, and the answer is lost")
            }
            Self::CommitsUnheard { is_stored: false } => {
                f.write_str("is cut off before COMMIT arrives")
            }
            Self::Acknowledges => f.write_str("acknowledges"),
            Self::Crashes => f.write_str("crashes"),
        }
    }
}

fn letter(worker: Worker) -> char {
    ('A'..).nth(worker).unwrap_or('?')
}

impl Display for Message {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Email => "7/EMAIL",
            Self::Push => "7/PUSH",
        })
    }
}

impl Display for Release {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "old",
            Self::New => "new",
        })
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.scope {
            Release::Old => "alert ",
            Release::New => "notify ",
        })?;
        match self.channel {
            Some(message) => message.fmt(f),
            None => f.write_str("7"),
        }
    }
}
