//! A consumer that dies in the middle of a handler, on request.

use std::future;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The consumer died.
#[derive(Clone, Copy, Debug)]
pub struct Crashed;

static ARMED: AtomicBool = AtomicBool::new(false);
static DIED: Notify = Notify::const_new();

/// Where the consumer dies, if it is to die. A handler of your own has no such
/// line.
pub async fn point() {
    if ARMED.swap(false, Ordering::Relaxed) {
        DIED.notify_one();
        future::pending::<()>().await;
    }
}

/// Does the work; if it is to die and comes to [`point`], the work is dropped
/// there, with the transaction that it holds.
///
/// # Errors
///
/// It died.
pub async fn survive<T>(is_to_die: bool, work: impl Future<Output = T>) -> Result<T, Crashed> {
    ARMED.store(is_to_die, Ordering::Relaxed);
    let survived = tokio::select! {
        result = work => Ok(result),
        () = DIED.notified() => Err(Crashed),
    };
    ARMED.store(false, Ordering::Relaxed);
    survived
}
