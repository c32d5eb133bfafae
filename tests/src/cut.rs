//! Futures that are dropped half-way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::timeout;

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

/// Cuts `deliver` at its first poll, its second, … until it gets through; returns
/// how often it was cut. How many polls are pending is for the wire to say, and
/// none may be, so that it tries again until something was cut.
///
/// # Panics
///
/// If it never gets through, or hangs, or nothing is ever cut.
pub async fn at_every_poll(mut deliver: impl AsyncFnMut(String, u32, Moment) -> bool) -> usize {
    let mut all = 0;
    for moment in Moment::ALL {
        let mut cuts = 0;
        for round in 0..50 {
            for polls in 1.. {
                assert!(polls < 500, "it never gets through");
                let name = format!("{moment:?}-{round}-{polls}");
                let delivery = timeout(Duration::from_mins(1), deliver(name, polls, moment));
                if delivery.await.expect("it does not hang") {
                    break;
                }
                cuts += 1;
            }
            if cuts > 2 {
                break;
            }
        }
        assert!(cuts > 2, "nothing was cut");
        all += cuts;
    }
    all
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
