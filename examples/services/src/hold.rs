//! Keeping deliveries while they are handled.

use std::time::Duration;

use tokio::time::sleep;

/// Works, and `renew`s now and then the time that the broker allows for it. If that runs out, the
/// broker gives the messages to others, and counts: after some rounds of a long outage of the
/// database they would be dead letters, though nothing was wrong with them.
///
/// A process that is stopped or cut off renews nothing: what it had comes again.
pub async fn hold<T>(
    work: impl Future<Output = T>,
    every: Duration,
    mut renew: impl AsyncFnMut(),
) -> T {
    let renewals = async {
        loop {
            sleep(every).await;
            renew().await;
        }
    };
    tokio::select! {
        biased;
        done = work => done,
        never = renewals => never,
    }
}
