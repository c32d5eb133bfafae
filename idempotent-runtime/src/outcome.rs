//! What a handler's caller gets.

/// What became of one delivery.
///
/// Both variants mean the same to the broker: once the transaction has
/// committed, acknowledge the message. There will be no third.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::Outcome;
///
/// let first = Outcome::Processed(7);
/// let again = Outcome::Duplicate;
///
/// assert_eq!(first.processed(), Some(7));
/// assert_eq!(again.processed(), None::<i32>);
/// assert!(Outcome::<i32>::Duplicate.is_duplicate());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[must_use = "an `Outcome` says whether the message was processed now or before"]
pub enum Outcome<T> {
    /// The handler ran and returned this value.
    Processed(T),
    /// The message was processed before: the handler did not run.
    Duplicate,
}

impl<T> Outcome<T> {
    /// Says whether the message was processed before.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate)
    }

    /// Returns the handler's value, or `None` for a duplicate.
    #[must_use]
    pub fn processed(self) -> Option<T> {
        match self {
            Self::Processed(value) => Some(value),
            Self::Duplicate => None,
        }
    }

    /// Applies a function to the handler's value.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Processed(value) => Outcome::Processed(with(value)),
            Self::Duplicate => Outcome::Duplicate,
        }
    }
}

/// What became of one delivery to a handler with `replay`.
///
/// Both variants mean the same to the broker: once the transaction has
/// committed, acknowledge the message, or answer the request. There will be no
/// third.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::Replay;
///
/// let first = Replay::Processed(7);
/// let again = Replay::Replayed(7);
///
/// assert!(!first.is_replayed());
/// assert!(again.is_replayed());
/// assert_eq!(first.into_inner(), again.into_inner());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[must_use = "a `Replay` holds the result of the message, of now or of before"]
pub enum Replay<T> {
    /// The handler ran and returned this value.
    Processed(T),
    /// The message was processed before: this is what the handler returned then.
    Replayed(T),
}

impl<T> Replay<T> {
    /// Says whether the message was processed before.
    #[must_use]
    pub const fn is_replayed(&self) -> bool {
        matches!(self, Self::Replayed(_))
    }

    /// Returns the handler's value, of now or of before.
    #[must_use]
    pub fn into_inner(self) -> T {
        match self {
            Self::Processed(value) | Self::Replayed(value) => value,
        }
    }

    /// Applies a function to the handler's value.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Replay<U> {
        match self {
            Self::Processed(value) => Replay::Processed(with(value)),
            Self::Replayed(value) => Replay::Replayed(with(value)),
        }
    }
}

/// What became of a batch of deliveries: of a handler with `each`.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Batch, Verdict};
///
/// let batch = Batch {
///     value: Some(7),
///     outcomes: vec![Verdict::Processed, Verdict::Duplicate],
/// };
/// assert_eq!(batch.processed(), 1);
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[must_use = "a `Batch` says which messages were processed now"]
pub struct Batch<T> {
    /// What the handler returned for the messages that were new; `None` where
    /// there was none, and it did not run.
    pub value: Option<T>,
    /// One for each message, in the order of the input.
    pub outcomes: Vec<Verdict>,
}

/// What became of one message of a batch. Both mean the same to the broker:
/// once the transaction has committed, acknowledge the message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It was among those that the handler processed.
    Processed,
    /// It was processed before, or stands in the batch before.
    Duplicate,
}

impl<T> Batch<T> {
    /// Counts the messages that were processed now.
    #[must_use]
    pub fn processed(&self) -> usize {
        let outcomes = self.outcomes.iter();
        outcomes
            .filter(|outcome| **outcome == Verdict::Processed)
            .count()
    }
}
