//! Stopping cleanly.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// How long all that is begun may take to end when a service is to stop. Docker kills it after ten
/// seconds, Kubernetes after thirty.
const GRACE: Duration = Duration::from_secs(5);

/// Ctrl-C, and the SIGTERM by which a supervisor ends a service.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
    asked: Option<Instant>,
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
            asked: None,
        })
    }

    /// Waits for one of them, or for none if one came before.
    ///
    /// # Cancel safety
    ///
    /// Cut off, it has missed nothing.
    pub async fn asked(&mut self) {
        self.time_of_asking().await;
    }

    /// Says whether one came while this was waiting for it.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Lets something end that is begun. When the service is asked to stop, all that is begun has
    /// five seconds, or until it is asked a second time; then it is cut off, and `None`. A database
    /// that is down, a lock, a broker that does not answer: none of them keeps a service from
    /// stopping.
    ///
    /// Of a transaction that is cut off nothing stays, and nothing is acknowledged: its messages
    /// come again.
    pub async fn within_grace<T>(&mut self, begun: impl Future<Output = T>) -> Option<T> {
        let overdue = async {
            let end = self.time_of_asking().await + GRACE;
            tokio::select! {
                () = sleep_until(end) => {}
                () = self.signal() => {}
            }
        };
        tokio::select! {
            biased;
            ended = begun => Some(ended),
            () = overdue => {
                eprintln!("cut off what was begun");
                None
            }
        }
    }

    async fn time_of_asking(&mut self) -> Instant {
        if let Some(asked) = self.asked {
            return asked;
        }
        self.signal().await;
        *self.asked.insert(Instant::now())
    }

    async fn signal(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::process::{Command, id};

    use tokio::time::sleep;

    use super::*;

    fn send(name: &str) {
        let mut kill = Command::new("kill");
        let killed = kill.args(["-s", name, &id().to_string()]).status();
        assert!(killed.unwrap().success());
    }

    /// In one test: the signals of one reach all listeners of the process.
    #[tokio::test]
    async fn signals_are_not_missed_and_leave_what_is_begun_its_time() {
        for name in ["INT", "TERM"] {
            let mut stop = Stop::listen().unwrap();
            send(name);
            stop.asked().await;
            stop.asked().await;
        }

        let mut stop = Stop::listen().unwrap();
        assert_eq!(stop.within_grace(ready(1)).await, Some(1));
        assert!(!stop.is_asked());
        send("TERM");
        assert_eq!(stop.within_grace(sleep(GRACE / 5)).await, Some(()));
        assert!(stop.is_asked());
        assert_eq!(stop.within_grace(pending::<()>()).await, None);
        assert_eq!(stop.within_grace(ready(2)).await, Some(2));
        assert_eq!(stop.within_grace(pending::<()>()).await, None);

        let mut impatient = Stop::listen().unwrap();
        send("TERM");
        impatient.asked().await;
        let asked = Instant::now();
        send("INT");
        assert_eq!(impatient.within_grace(pending::<()>()).await, None);
        assert!(asked.elapsed() < GRACE, "asked twice, it does not wait");
    }
}
