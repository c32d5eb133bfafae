//! Talking to a server, just enough to know who it is.

use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::servers::Kind;

const PATIENCE: Duration = Duration::from_secs(5);

/// What a URL says: where, and as whom.
#[derive(Debug, PartialEq)]
pub(super) struct Target {
    pub(super) login: Option<Login>,
    host: String,
    port: u16,
}

#[derive(Debug, PartialEq)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// Greets the server that a URL names; the error is the reason why it cannot be used.
pub(super) fn usable(kind: &Kind, url: &str) -> Result<(), String> {
    let target = Target::parse(kind, url)?;
    let mut stream = target
        .connect()
        .map_err(|error| format!("cannot connect: {error}"))?;
    (kind.greet)(&mut stream, &target).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer".to_owned(),
        _ if is_end(&error) => "it hangs up".to_owned(),
        _ => error.to_string(),
    })
}

/// Whether the other end hung up, politely or not.
pub(super) fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Makes a condition that does not hold a reason.
pub(super) fn expect(condition: bool, otherwise: &str) -> io::Result<()> {
    if condition {
        Ok(())
    } else {
        Err(io::Error::other(otherwise))
    }
}

pub(super) fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl Target {
    /// Reads a URL of the scheme that the kind's own have.
    pub(super) fn parse(kind: &Kind, url: &str) -> Result<Self, String> {
        let own = (kind.url)(kind.usual_port);
        let (rest, usual_port) = match own.split_once("://") {
            None if url.contains("://") => return Err("it is not named as `host:port`".to_owned()),
            None => (url, kind.usual_port),
            Some((scheme, _)) => {
                let start = format!("{scheme}://");
                let rest = url.strip_prefix(&start);
                let port = if scheme == "http" {
                    80
                } else {
                    kind.usual_port
                };
                let rest = rest.ok_or_else(|| format!("the url does not start with `{start}`"));
                (rest?, port)
            }
        };
        let authority = rest.split(['/', '?']).next().unwrap_or(rest);
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(Login::parse(login)), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => {
                let refuse = |_| format!("`{port}` is not a port");
                (host, port.parse().map_err(refuse)?)
            }
            None => (place, usual_port),
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Self { login, host, port })
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::other("the host has no address");
        for address in (&*self.host, self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Login {
    pub(super) fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }

    fn parse(login: &str) -> Self {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        Self::new(&decode(user), &decode(password))
    }
}

/// The text that percent-encoding stands for; a `%` that encodes nothing stands for itself.
fn decode(encoded: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = encoded;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).filter(|digits| !digits.starts_with('+'));
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(b'%');
            rest = after;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Servers with answers prepared, for tests of greetings.
#[cfg(test)]
pub(super) mod scripted {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;

    use crate::servers::{Kind, wire};

    /// What comes of greeting a server that gives these answers and hangs up. In the URL,
    /// `HERE` is where it is.
    pub(in crate::servers) fn outcome(
        kind: &'static Kind,
        url: &str,
        answers: &[&[u8]],
    ) -> Result<(), String> {
        converse(kind, url, answers).0
    }

    /// What such a server is told.
    pub(in crate::servers) fn received(
        kind: &'static Kind,
        url: &str,
        answers: &[&[u8]],
    ) -> Vec<u8> {
        converse(kind, url, answers).1
    }

    fn converse(
        kind: &'static Kind,
        url: &str,
        answers: &[&[u8]],
    ) -> (Result<(), String>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let url = url.replace("HERE", &here.to_string());
        let client = thread::spawn(move || {
            let outcome = wire::usable(kind, &url);
            // A client that has not come, does not come.
            let _ = TcpStream::connect(here);
            outcome
        });
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&answers.concat()).unwrap();
        let mut received = Vec::new();
        // A client that has heard enough may hang up with answers unread, which is a reset.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut received);
        (client.join().unwrap(), received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{KAFKA, KINDS, NATS, RABBITMQ, SQS};

    fn target(login: Option<Login>, host: &str, port: u16) -> Target {
        let host = host.to_owned();
        Target { login, host, port }
    }

    #[test]
    fn every_kind_reads_its_own_url() {
        for kind in KINDS {
            let read = Target::parse(kind, &(kind.url)(20_001)).unwrap();
            assert_eq!((&*read.host, read.port), ("127.0.0.1", 20_001));
        }
    }

    #[test]
    fn what_a_url_leaves_out_is_usual() {
        for (kind, url, port) in [
            (&RABBITMQ, "amqp://broker.example/vhost", 5672),
            (&NATS, "nats://broker.example", 4222),
            (&KAFKA, "broker.example", 9092),
            (&SQS, "http://broker.example/", 80),
        ] {
            let wanted = target(None, "broker.example", port);
            assert_eq!(Target::parse(kind, url), Ok(wanted), "{url}");
        }
    }

    #[test]
    fn names_and_passwords_are_decoded() {
        let read = Target::parse(&RABBITMQ, "amqp://m%65:1%2f2%zz%@[::1]:99/%2f");
        let login = Login::new("me", "1/2%zz%");
        assert_eq!(read, Ok(target(Some(login), "::1", 99)));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        for (kind, url, reason) in [
            (
                &RABBITMQ,
                "amqps://here",
                "the url does not start with `amqp://`",
            ),
            (&SQS, "", "the url does not start with `http://`"),
            (&KAFKA, "kafka://here", "it is not named as `host:port`"),
            (&KAFKA, "one:9092,two", "`9092,two` is not a port"),
            (&NATS, "nats://here:70000", "`70000` is not a port"),
        ] {
            assert_eq!(usable(kind, url).unwrap_err(), reason);
        }
    }

    #[test]
    fn a_client_that_does_not_come_is_not_waited_for() {
        let said = scripted::outcome(&NATS, "tcp://HERE", &[]).unwrap_err();
        assert_eq!(said, "the url does not start with `nats://`");
    }

    #[test]
    fn nobody_there_is_a_reason_too() {
        let said = usable(&NATS, "nats://127.0.0.1:1").unwrap_err();
        assert!(said.starts_with("cannot connect: "), "{said}");
    }
}
