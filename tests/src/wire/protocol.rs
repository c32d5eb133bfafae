//! Where messages end.

/// How a client and its server talk, without TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// That of `MariaDB` and MySQL: three bytes of length, a sequence number, and
    /// as many bytes.
    MariaDb,
    /// That of Postgres, version 3 (chapter 55 of its manual): a type byte, and a
    /// length that counts itself.
    Postgres,
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    /// The pool.
    Client,
    /// The database.
    Server,
}

impl Sender {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];
}

impl Protocol {
    /// Says whether the server answers this message by being ready again: Query
    /// and Sync. A startup message begins with a zero.
    pub(super) fn is_question(self, message: &[u8]) -> bool {
        self == Self::Postgres && matches!(message, [b'Q' | b'S', ..])
    }

    /// Says whether the server is ready again: `ReadyForQuery`.
    pub(super) fn is_ready(self, message: &[u8]) -> bool {
        self == Self::Postgres && matches!(message, [b'Z', ..])
    }
}

/// One direction of a connection, message by message.
#[derive(Debug)]
pub(super) struct Messages {
    protocol: Protocol,
    pending: Vec<u8>,
    /// The first message of a client of Postgres has no type byte.
    is_startup: bool,
}

impl Messages {
    pub(super) fn new(protocol: Protocol, sender: Sender) -> Self {
        Self {
            protocol,
            pending: Vec::new(),
            is_startup: protocol == Protocol::Postgres && sender == Sender::Client,
        }
    }

    /// Adds what was read.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.pending.extend_from_slice(chunk);
    }

    /// The length of the message that is pending, once it can be told.
    fn length(&self) -> Option<usize> {
        match self.protocol {
            Protocol::MariaDb => {
                let [low, middle, high, _sequence] = *self.pending.first_chunk()?;
                Some(4 + u32::from_le_bytes([low, middle, high, 0]) as usize)
            }
            Protocol::Postgres => {
                let type_byte = usize::from(!self.is_startup);
                let length = self.pending.get(type_byte..)?.first_chunk()?;
                Some(type_byte + u32::from_be_bytes(*length) as usize)
            }
        }
    }
}

/// The messages that are there as a whole.
impl Iterator for Messages {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let length = self.length()?;
        if self.pending.len() < length {
            return None;
        }
        self.is_startup = false;
        Some(self.pending.drain(..length).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Messages, Protocol, Sender};

    /// Whatever the chunks are, the messages are the same.
    fn are_told_apart(protocol: Protocol, sender: Sender, expected: &[&[u8]]) {
        let stream = expected.concat();
        for size in 1..=stream.len() {
            let mut messages = Messages::new(protocol, sender);
            let mut found = Vec::new();
            for chunk in stream.chunks(size) {
                messages.push(chunk);
                found.extend(messages.by_ref());
            }
            assert_eq!(found, expected, "in chunks of {size}");
            assert!(messages.pending.is_empty());
        }
    }

    #[test]
    fn messages_of_a_postgres_client() {
        let startup = b"\0\0\0\x09\0\x03\0\0\0";
        let messages: [&[u8]; 4] = [startup, b"Q\0\0\0\x06B\0", b"S\0\0\0\x04", b"X\0\0\0\x04"];
        are_told_apart(Protocol::Postgres, Sender::Client, &messages);
    }

    #[test]
    fn messages_of_a_postgres_server() {
        let messages: [&[u8]; 2] = [b"R\0\0\0\x08\0\0\0\0", b"Z\0\0\0\x05I"];
        are_told_apart(Protocol::Postgres, Sender::Server, &messages);
    }

    #[test]
    fn packets_of_mariadb() {
        let long = [&b"\x00\x01\x00\x01"[..], &[7; 256]].concat();
        let packets: [&[u8]; 4] = [b"\x01\0\0\0\x0e", &long, b"\0\0\0\x02", b"\x02\0\0\x03ab"];
        for sender in Sender::ALL {
            are_told_apart(Protocol::MariaDb, sender, &packets);
        }
    }
}
