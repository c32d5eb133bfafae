//! As much of NATS as puts a message into a stream.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::unexpected;

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut client = Self(BufReader::new(stream));
        client.send("CONNECT {\"verbose\":false}\r\nSUB answers 1\r\n")?;
        Ok(client)
    }

    /// Makes a stream of the subject that has its name.
    pub(crate) fn make_stream(&mut self, name: &str) -> io::Result<()> {
        let stream = format!(r#"{{"name":"{name}","subjects":["{name}"],"storage":"file"}}"#);
        self.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &stream)
            .map(drop)
    }

    /// Publishes a message, and waits for its confirmation.
    pub(crate) fn publish(&mut self, subject: &str) -> io::Result<()> {
        let answer = self.ask(subject, "x")?;
        match value(&answer, "seq") {
            Some("1") => Ok(()),
            _ => Err(unexpected(answer)),
        }
    }

    /// How many messages are in a stream.
    pub(crate) fn messages(&mut self, stream: &str) -> io::Result<String> {
        let answer = self.ask(&format!("$JS.API.STREAM.INFO.{stream}"), "")?;
        value(&answer, "messages")
            .map(str::to_owned)
            .ok_or_else(|| unexpected(&*answer))
    }

    fn ask(&mut self, subject: &str, body: &str) -> io::Result<String> {
        self.send(&format!(
            "PUB {subject} answers {}\r\n{body}\r\n",
            body.len()
        ))?;
        loop {
            let line = self.line()?;
            if line.starts_with("MSG answers ") {
                break;
            }
            if line.starts_with("-ERR") {
                return Err(unexpected(line));
            }
        }
        let answer = self.line()?;
        if answer.contains("\"error\"") {
            return Err(unexpected(answer));
        }
        Ok(answer)
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(text.as_bytes())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    }
}

/// The number that is the first of its name.
fn value<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = answer.split_once(&format!("\"{name}\":"))?;
    rest.split([',', '}']).next().map(str::trim)
}
