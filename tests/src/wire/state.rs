//! What a proxy has seen, and what it is to do.

use std::collections::VecDeque;

use tokio::net::TcpStream;

use super::cut::{Cut, End, Place};
use super::protocol::{Messages, Protocol, Sender};
use super::refusal::Refusal;

/// The messages that a proxy has counted, over all connections.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Those of clients.
    pub client: usize,
    /// Those of the server.
    pub server: usize,
    /// The beginning of the one at which a connection was cut.
    pub cut_at: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) round_trips: usize,
    pub(super) seen: Seen,
    pub(super) plan: Option<Plan>,
    pub(super) refusals: VecDeque<Refusal>,
    /// Sides of servers that have not seen the end.
    pub(super) held: Vec<TcpStream>,
}

/// A cut that is still to come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    At(Cut),
    /// Before the answer to the next COMMIT.
    AtCommit,
}

/// How often the server is still to say that it is ready.
#[derive(Debug, Default)]
pub(super) struct Expected(usize);

impl Seen {
    /// How many messages are this sender's.
    #[must_use]
    pub const fn of(&self, sender: Sender) -> usize {
        match sender {
            Sender::Client => self.client,
            Sender::Server => self.server,
        }
    }

    const fn count(&mut self, sender: Sender) -> usize {
        let count = match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        };
        *count += 1;
        *count
    }
}

impl State {
    /// What is to be forwarded of these messages, and whether the connection is
    /// cut then.
    pub(super) fn pass(
        &mut self,
        protocol: Protocol,
        sender: Sender,
        messages: &mut Messages,
        expected: &mut Expected,
    ) -> (Vec<u8>, Option<Cut>) {
        let mut forward = Vec::new();
        for message in messages {
            if let Some(cut) = self.cut(sender, &message) {
                forward.extend_from_slice(cut.place.part(&message));
                return (forward, Some(cut));
            }
            match sender {
                Sender::Client if protocol.is_question(&message) => {
                    self.round_trips += usize::from(expected.0 == 0);
                    expected.0 += 1;
                }
                Sender::Server if protocol.is_ready(&message) => {
                    expected.0 = expected.0.saturating_sub(1);
                }
                Sender::Client | Sender::Server => {}
            }
            forward.extend(message);
        }
        (forward, None)
    }

    fn cut(&mut self, sender: Sender, message: &[u8]) -> Option<Cut> {
        let number = self.seen.count(sender);
        match self.plan? {
            Plan::At(cut) if (cut.sender, cut.number) == (sender, number) => {
                self.plan = None;
                let beginning = &message[..message.len().min(60)];
                self.seen.cut_at = Some(beginning.escape_ascii().to_string());
                Some(cut)
            }
            Plan::AtCommit if sender == Sender::Client && is_commit(message) => {
                self.plan = Some(Plan::At(Cut {
                    sender: Sender::Server,
                    number: self.seen.server + 1,
                    place: Place::Before,
                    end: End::Seen,
                }));
                None
            }
            Plan::At(_) | Plan::AtCommit => None,
        }
    }
}

fn is_commit(message: &[u8]) -> bool {
    message.windows(6).any(|word| word == b"COMMIT")
}
