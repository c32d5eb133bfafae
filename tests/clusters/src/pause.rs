//! A future that stands still half-way.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use idempotent_tests::Moment;

/// Polls a future until its n-th pending poll, counted from 1, and no further until it is awaited
/// again. `Some`: it was ready before.
pub async fn paused_at<F: Future>(
    mut future: Pin<&mut F>,
    polls: u32,
    moment: Moment,
) -> Option<F::Output> {
    let mut left = polls;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        left -= 1;
        if left == 0 && moment == Moment::Asked {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}
