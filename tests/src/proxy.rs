//! A wire between a pool and its server, to watch and to cut.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A TCP proxy on a port of its own. It reads the Postgres protocol as far as
/// counting needs it (chapter 55 of the manual); losing the answer to a COMMIT
/// works for any protocol that sends the word.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    round_trips: AtomicUsize,
    loses_commit: AtomicBool,
    refusals: Mutex<VecDeque<Refusal>>,
}

/// How a server refuses a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// It hangs up.
    HangsUp,
    /// It answers with this SQLSTATE: Postgres only, without TLS.
    Says(&'static str),
}

impl Proxy {
    /// Starts in front of a server.
    ///
    /// # Panics
    ///
    /// If there is no port.
    pub async fn start(host: &str, port: u16) -> Self {
        let server: SocketAddr = tokio::net::lookup_host((host, port))
            .await
            .expect("the host has an address")
            .next()
            .expect("the host has an address");
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("there is a port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                let refusal = state.refusals().pop_front();
                tokio::spawn(async move {
                    if let Some(refusal) = refusal {
                        refuse(client, refusal).await;
                    } else if let Ok(upstream) = TcpStream::connect(server).await {
                        relay(client, upstream, &state).await;
                    }
                });
            }
        });
        Self {
            port,
            state,
            accepting,
        }
    }

    /// The port to connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the round trips since the last call: how often a client asked
    /// while nothing was on its way, and waited until the server was ready.
    #[must_use]
    pub fn take_round_trips(&self) -> usize {
        self.state.round_trips.swap(0, Ordering::SeqCst)
    }

    /// The next COMMIT reaches the server; its answer does not come back, and
    /// the connection is cut.
    pub fn lose_next_commit(&self) {
        self.state.loses_commit.store(true, Ordering::SeqCst);
    }

    /// The next connections are refused, in this order.
    pub fn refuse_next(&self, refusals: impl IntoIterator<Item = Refusal>) {
        self.state.refusals().extend(refusals);
    }

    /// Says how many refusals are still to come.
    #[must_use]
    pub fn refusals_left(&self) -> usize {
        self.state.refusals().len()
    }

    /// Says whether that COMMIT is still to come.
    #[must_use]
    pub fn is_waiting_for_commit(&self) -> bool {
        self.state.loses_commit.load(Ordering::SeqCst)
    }
}

impl State {
    fn refusals(&self) -> MutexGuard<'_, VecDeque<Refusal>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn refuse(mut client: TcpStream, refusal: Refusal) {
    let Refusal::Says(sqlstate) = refusal else {
        return;
    };
    // The startup message, which fits into one segment.
    let _ = client.read(&mut [0; 1 << 12]).await;
    let fields = format!("SFATAL\0VFATAL\0C{sqlstate}\0Mrefused by the proxy\0\0");
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    let error = [b"E", &length.to_be_bytes()[..], fields.as_bytes()].concat();
    let _ = client.write_all(&error).await;
}

async fn relay(mut client: TcpStream, mut server: TcpStream, state: &State) {
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (mut asked, mut answered) = (Messages::client(), Messages::server());
    let mut expected = 0_usize;
    let mut losing = false;
    let (mut question, mut answer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut question) => {
                let Ok(read @ 1..) = read else { return };
                let question = &question[..read];
                if question.windows(6).any(|word| word == b"COMMIT") {
                    losing = state.loses_commit.swap(false, Ordering::SeqCst);
                }
                // Query, Sync: the server answers when it is ready again.
                let ready = asked.count(question, b"QS");
                if ready > 0 && expected == 0 {
                    state.round_trips.fetch_add(1, Ordering::SeqCst);
                }
                expected += ready;
                if server.write_all(question).await.is_err() { return }
            }
            read = server.read(&mut answer) => {
                let Ok(read @ 1..) = read else { return };
                if losing { return }
                let answer = &answer[..read];
                expected = expected.saturating_sub(answered.count(answer, b"Z"));
                if client.write_all(answer).await.is_err() { return }
            }
        }
    }
}

/// Finds the borders of Postgres messages in a stream: a type byte, and a
/// length that counts itself.
struct Messages {
    pending: Vec<u8>,
    /// The client's first message has no type byte.
    is_starting: bool,
}

impl Messages {
    const fn client() -> Self {
        Self {
            pending: Vec::new(),
            is_starting: true,
        }
    }

    const fn server() -> Self {
        Self {
            pending: Vec::new(),
            is_starting: false,
        }
    }

    /// Counts the messages of these types that end in this chunk.
    fn count(&mut self, chunk: &[u8], types: &[u8]) -> usize {
        self.pending.extend_from_slice(chunk);
        let mut count = 0;
        loop {
            let header = usize::from(!self.is_starting);
            let Some(length) = self.pending.get(header..header + 4) else {
                return count;
            };
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
            let end = header + usize::try_from(length).unwrap_or(usize::MAX - 1);
            if self.pending.len() < end {
                return count;
            }
            if !self.is_starting && types.contains(&self.pending[0]) {
                count += 1;
            }
            self.pending.drain(..end);
            self.is_starting = false;
        }
    }
}
