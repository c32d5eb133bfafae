//! A future that is forgotten, not dropped, when it is cut off.

use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs a future; if the whole is dropped before the end, the future is leaked,
/// so that no guard inside it acts.
pub(super) fn forget_if_dropped<F: Future>(future: F) -> impl Future<Output = F::Output> {
    Forget(Some(Box::pin(future)))
}

struct Forget<F>(Option<Pin<Box<F>>>);

impl<F: Future> Future for Forget<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.0 else {
            return Poll::Pending;
        };
        let result = future.as_mut().poll(context);
        if result.is_ready() {
            self.0 = None;
        }
        result
    }
}

impl<F> Drop for Forget<F> {
    fn drop(&mut self) {
        if let Some(future) = self.0.take() {
            std::mem::forget(future);
        }
    }
}
