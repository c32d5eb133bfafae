//! Where a connection is cut.

use super::protocol::Sender;

/// A message at which the connection is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cut {
    /// Whose message it is.
    pub sender: Sender,
    /// Which of theirs, from 1.
    pub number: usize,
    /// Where, seen from the message.
    pub place: Place,
    /// Who sees it.
    pub end: End,
}

/// A place at a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// The message is not forwarded.
    Before,
    /// Half its bytes are.
    Inside,
    /// It is.
    After,
}

/// Who sees the end of the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Client and server.
    Seen,
    /// The client alone; the server's side stays open until
    /// [`let_go`](super::Proxy::let_go).
    UnseenByServer,
}

impl Place {
    /// What is forwarded of the message.
    pub(super) fn part(self, message: &[u8]) -> &[u8] {
        match self {
            Self::Before => &[],
            Self::Inside => &message[..message.len() / 2],
            Self::After => message,
        }
    }
}
