//! Stopping cleanly.

use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for Ctrl-C, or for the SIGTERM by which a supervisor ends a service.
///
/// # Errors
///
/// Signals cannot be waited for.
pub async fn asked() -> std::io::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = ctrl_c() => interrupted,
        _ = term.recv() => Ok(()),
    }
}
