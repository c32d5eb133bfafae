//! The handler's return type.

#![allow(
    clippy::missing_errors_doc,
    reason = "the functions that return a result are hidden"
)]

use crate::error::{Cause, Error};
use crate::observe;
use crate::outcome::{Batch, Outcome, Replay, Verdict};
use crate::replay::{Codec, Replayable};

/// The `Result` that a handler's body returns.
#[diagnostic::on_unimplemented(
    message = "an idempotent handler returns a `Result`",
    label = "`{Self}` is not a `Result`",
    note = "return `Result<T, E>`: the caller sees `Result<Outcome<T>, E>`"
)]
pub trait HandlerResult {
    /// The value of a handler that succeeds.
    type Value;
    /// The error of a handler that fails.
    type Error;
    /// What the caller sees.
    type Outcome;
    /// The same of a handler with `replay`.
    type Replay;
    /// The same of a handler with `each`.
    type Batch;

    /// The result, in the one shape the frame works with.
    fn into_result(self) -> Result<Self::Value, Self::Error>;
    /// Back to the shape the caller sees.
    fn from_result(result: Result<Outcome<Self::Value>, Self::Error>) -> Self::Outcome;
    /// The same for `each`.
    fn from_batch(result: Result<Batch<Self::Value>, Self::Error>) -> Self::Batch;
    /// The same for `replay`.
    fn from_replay(result: Result<Replay<Self::Value>, Self::Error>) -> Self::Replay;
}

impl<T, E> HandlerResult for Result<T, E> {
    type Value = T;
    type Error = E;
    type Outcome = Result<Outcome<T>, E>;
    type Replay = Result<Replay<T>, E>;
    type Batch = Result<Batch<T>, E>;

    fn into_result(self) -> Self {
        self
    }

    fn from_result(result: Result<Outcome<T>, E>) -> Self::Outcome {
        result
    }

    fn from_batch(result: Result<Batch<T>, E>) -> Self::Batch {
        result
    }

    fn from_replay(result: Result<Replay<T>, E>) -> Self::Replay {
        result
    }
}

/// An error type that can carry ours.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry the errors of `#[idempotent]`",
    label = "the handler's error type",
    note = "add a variant that holds ours, with thiserror `Idempotent(#[from] idempotent_runtime::Error)`, or implement `From<idempotent_runtime::Error>` by hand"
)]
pub trait HandlerError {
    /// Wraps our error.
    fn from_idempotent(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> HandlerError for E {
    fn from_idempotent(error: Error) -> Self {
        error.into()
    }
}

/// How a handler's result is read and made. Where the handler's return type is
/// none, [`frame`] is refused, and nothing that works with the frame after it.
pub struct Frame<R, T, E, O> {
    pub(crate) read: fn(R) -> Result<T, E>,
    pub(crate) make: fn(Result<Answer<T>, E>) -> O,
    convert: fn(Error) -> E,
    /// Of a handler with `replay`.
    pub(crate) codec: Option<Codec<T>>,
}

/// What there is to tell the caller, in the one shape the frame works with.
pub(crate) enum Answer<T> {
    /// The handler ran.
    Processed(T),
    /// It ran before.
    Duplicate,
    /// It ran before, and returned this.
    Replayed(T),
}

impl<R, T, E, O> Clone for Frame<R, T, E, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T, E, O> Copy for Frame<R, T, E, O> {}

impl<R, T, E, O> Frame<R, T, E, O> {
    pub(crate) fn fail(self, error: Error) -> O {
        observe::failed(&error);
        (self.make)(Err((self.convert)(error)))
    }
}

/// The one place that asks the handler's return type for its traits, so that a
/// mistake there is one error.
#[must_use]
pub fn frame<R>() -> Frame<R, R::Value, R::Error, R::Outcome>
where
    R: HandlerResult,
    R::Error: HandlerError,
{
    Frame {
        read: R::into_result,
        make: |answer| {
            R::from_result(answer.map(|answer| match answer {
                Answer::Processed(value) => Outcome::Processed(value),
                Answer::Duplicate | Answer::Replayed(_) => Outcome::Duplicate,
            }))
        },
        convert: HandlerError::from_idempotent,
        codec: None,
    }
}

/// The same for `replay`, which asks the value for more.
#[must_use]
pub fn replay_frame<R>() -> Frame<R, R::Value, R::Error, R::Replay>
where
    R: HandlerResult,
    R::Error: HandlerError,
    R::Value: Replayable,
{
    Frame {
        read: R::into_result,
        make: |answer| {
            R::from_replay(answer.and_then(|answer| match answer {
                Answer::Processed(value) => Ok(Replay::Processed(value)),
                Answer::Replayed(value) => Ok(Replay::Replayed(value)),
                // A codec makes values of duplicates.
                Answer::Duplicate => Err(R::Error::from_idempotent(Error::new(Cause::Unreadable(
                    "it was not read".into(),
                )))),
            }))
        },
        convert: HandlerError::from_idempotent,
        codec: Some(Codec::new()),
    }
}

/// The same for `each`: how the result of a batch is read and made.
pub struct BatchFrame<R, T, E, O> {
    pub(crate) read: fn(R) -> Result<T, E>,
    pub(crate) make: fn(Result<Batch<T>, E>) -> O,
    convert: fn(Error) -> E,
}

impl<R, T, E, O> Clone for BatchFrame<R, T, E, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T, E, O> Copy for BatchFrame<R, T, E, O> {}

impl<R, T, E, O> BatchFrame<R, T, E, O> {
    pub(crate) fn fail(self, error: Error) -> O {
        observe::failed(&error);
        (self.make)(Err((self.convert)(error)))
    }
}

/// The one place that asks the return type of a handler with `each`.
#[must_use]
pub fn batch_frame<R>() -> BatchFrame<R, R::Value, R::Error, R::Batch>
where
    R: HandlerResult,
    R::Error: HandlerError,
{
    BatchFrame {
        read: R::into_result,
        make: R::from_batch,
        convert: HandlerError::from_idempotent,
    }
}

/// Stands in an arm that never runs, so that the body's type is known from its
/// first line on.
///
/// # Panics
///
/// Always.
#[must_use]
pub fn hint<R>() -> R {
    unreachable!("never called: it tells the compiler a type")
}

/// The frame of a handler whose attribute has mistakes: the program does not
/// compile, and callers see the type that they will see once it does.
pub fn unclaimed<R: HandlerResult>(result: R) -> R::Outcome {
    R::from_result(result.into_result().map(Outcome::Processed))
}

/// The same of one with `each`.
pub fn unclaimed_batch<R: HandlerResult>(result: R) -> R::Batch {
    R::from_batch(result.into_result().map(|value| Batch {
        value: Some(value),
        outcomes: Vec::<Verdict>::new(),
    }))
}

/// The same of one with `replay`.
pub fn unclaimed_replay<R: HandlerResult>(result: R) -> R::Replay {
    R::from_replay(result.into_result().map(Replay::Processed))
}
