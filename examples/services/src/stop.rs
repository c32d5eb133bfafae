//! Stopping cleanly.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, and the SIGTERM by which a supervisor ends a service.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Listens from now on. A service listens before it says that it is ready, so that no signal
    /// ends it in the middle of its work.
    ///
    /// # Errors
    ///
    /// Signals cannot be listened for.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them, or for none if one came before.
    ///
    /// # Cancel safety
    ///
    /// Cut off, it has missed nothing.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};

    use super::*;

    #[tokio::test]
    async fn a_signal_before_it_is_waited_for_is_not_missed() {
        for name in ["INT", "TERM"] {
            let mut stop = Stop::listen().unwrap();
            let mut kill = Command::new("kill");
            let killed = kill.args(["-s", name, &id().to_string()]).status();
            assert!(killed.unwrap().success());
            stop.asked().await;
        }
    }
}
