//! A wire between a pool and its server, to watch and to cut.

mod cut;
mod protocol;
mod refusal;
mod relay;
mod state;
mod wired;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender as Open, channel};
use tokio::task::JoinHandle;

pub use cut::{Cut, End, Place};
pub use protocol::{Protocol, Sender};
pub use refusal::Refusal;
pub use state::Seen;
use state::{Plan, State};
pub use wired::Wired;

/// A TCP proxy on a port of its own, in front of one server. It reads the
/// protocol as far as the borders of messages.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Shared,
    accepting: JoinHandle<()>,
    /// Ends when no connection is open any more.
    open: Receiver<()>,
}

/// The state, as each connection has it.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Starts in front of a server.
    ///
    /// # Panics
    ///
    /// If there is no such host, or no port.
    pub async fn start(protocol: Protocol, host: &str, port: u16) -> Self {
        let server: SocketAddr = tokio::net::lookup_host((host, port))
            .await
            .expect("the host has an address")
            .next()
            .expect("the host has an address");
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("there is a port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Shared::default();
        let (connection, open) = channel(1);
        let accepting = accept(listener, server, protocol, state.clone(), connection);
        Self {
            port,
            state,
            accepting: tokio::spawn(accepting),
            open,
        }
    }

    /// The port to connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the round trips since the last call: how often a client asked
    /// while nothing was on its way, and waited until the server was ready. They
    /// are counted on Postgres only.
    #[must_use]
    pub fn take_round_trips(&self) -> usize {
        std::mem::take(&mut self.state.lock().round_trips)
    }

    /// Counts messages from here on, and cuts the connection at one of them.
    pub fn watch(&self, cut: Option<Cut>) {
        let mut state = self.state.lock();
        state.seen = Seen::default();
        state.plan = cut.map(Plan::At);
    }

    /// What was seen since [`watch`](Self::watch).
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.state.lock().seen.clone()
    }

    /// Lets the server see the ends that it did not see.
    pub fn let_go(&self) {
        self.state.lock().held.clear();
    }

    /// Waits until all connections have ended; says what was seen.
    pub async fn finish(mut self) -> Seen {
        self.accepting.abort();
        self.let_go();
        while self.open.recv().await.is_some() {}
        self.seen()
    }

    /// The next COMMIT reaches the server; its answer does not come back, and
    /// the connection is cut.
    pub fn lose_next_commit(&self) {
        self.state.lock().plan = Some(Plan::AtCommit);
    }

    /// Says whether that COMMIT is still to come.
    #[must_use]
    pub fn is_waiting_for_commit(&self) -> bool {
        matches!(self.state.lock().plan, Some(Plan::AtCommit))
    }

    /// The next connections are refused, in this order.
    pub fn refuse_next(&self, refusals: impl IntoIterator<Item = Refusal>) {
        self.state.lock().refusals.extend(refusals);
    }

    /// Says how many refusals are still to come.
    #[must_use]
    pub fn refusals_left(&self) -> usize {
        self.state.lock().refusals.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    protocol: Protocol,
    state: Shared,
    connection: Open<()>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (state, connection) = (state.clone(), connection.clone());
        let refusal = state.lock().refusals.pop_front();
        tokio::spawn(async move {
            if let Some(refusal) = refusal {
                refusal::refuse(client, refusal).await;
            } else if let Ok(upstream) = TcpStream::connect(server).await {
                relay::relay(client, upstream, protocol, &state).await;
            }
            drop(connection);
        });
    }
}
