//! Futures that are dropped half-way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// When the n-th pending poll of a future is followed by its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Moment {
    /// At once: the question may be on its way.
    Asked,
    /// When it is woken: the answer is there, and nobody reads it.
    Answered,
}

impl Moment {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Asked, Self::Answered];
}

/// Drops a future after its n-th pending poll.
pub struct CutAt<F> {
    future: Option<Pin<Box<F>>>,
    left: u32,
    moment: Moment,
}

impl<F: Future> CutAt<F> {
    /// `polls` counts from 1.
    pub fn new(polls: u32, moment: Moment, future: F) -> Self {
        Self {
            future: Some(Box::pin(future)),
            left: polls,
            moment,
        }
    }
}

impl<F: Future> Future for CutAt<F> {
    /// `None`: it was cut off.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            self.future = None;
        }
        let Some(future) = &mut self.future else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            self.future = None;
            return Poll::Ready(Some(output));
        }
        self.left -= 1;
        if self.left == 0 && self.moment == Moment::Asked {
            self.future = None;
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

/// `catch_unwind` around every poll of a future.
///
/// # Errors
///
/// What it panicked with.
pub async fn caught<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(move |context| {
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match catch_unwind(poll) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}
