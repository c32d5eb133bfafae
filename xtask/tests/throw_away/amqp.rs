//! As much of AMQP 0-9-1 as puts a message into a durable queue.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::unexpected;

/// A class and a method, as numbers.
type Method = (u16, u16);

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;

pub(crate) struct Channel(TcpStream);

impl Channel {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut channel = Self(stream);
        channel.0.write_all(b"AMQP\0\0\x09\x01")?;
        channel.expect((10, 10))?;
        let login = b"\0\0\0\0\x05PLAIN\0\0\0\x0c\0guest\0guest\x05en_US";
        channel.ask(0, (10, 11), login, (10, 30))?;
        let (most_channels, longest_frame, heartbeat) = (&[7, 0xff], &[0, 2, 0, 0], &[0, 0]);
        let settings = [&most_channels[..], longest_frame, heartbeat].concat();
        channel.send(0, METHOD, &method((10, 31), &settings))?;
        channel.ask(0, (10, 40), b"\x01/\0\0", (10, 41))?;
        channel.ask(1, (20, 10), b"\0", (20, 11))?;
        Ok(channel)
    }

    /// Makes a durable queue, or finds it, and says how many messages are in it.
    pub(crate) fn declare(&mut self, queue: &str) -> io::Result<u32> {
        const DURABLE: u8 = 2;
        let queue = short(queue)?;
        let rest = [DURABLE, 0, 0, 0, 0];
        let arguments = [&[0, 0], &queue[..], &rest].concat();
        let answer = self.ask(1, (50, 10), &arguments, (50, 11))?;
        let count = answer.get(queue.len()..).and_then(<[u8]>::first_chunk);
        count
            .map(|count| u32::from_be_bytes(*count))
            .ok_or_else(|| unexpected("no count"))
    }

    /// Publishes a persistent message, and waits for its confirmation.
    pub(crate) fn publish(&mut self, queue: &str) -> io::Result<()> {
        let (class, weight, size) = ([0, 60], [0, 0], [0, 0, 0, 0, 0, 0, 0, 1]);
        let delivery_mode = [0x10, 0, 2];
        self.ask(1, (85, 10), &[0], (85, 11))?;
        let place = [&[0, 0, 0], &short(queue)?[..], &[0]].concat();
        self.send(1, METHOD, &method((60, 40), &place))?;
        self.send(
            1,
            HEADER,
            &[&class[..], &weight, &size, &delivery_mode].concat(),
        )?;
        self.send(1, BODY, b"x")?;
        self.expect((60, 80)).map(drop)
    }

    fn ask(
        &mut self,
        channel: u8,
        asked: Method,
        arguments: &[u8],
        awaited: Method,
    ) -> io::Result<Vec<u8>> {
        self.send(channel, METHOD, &method(asked, arguments))?;
        self.expect(awaited)
    }

    fn send(&mut self, channel: u8, kind: u8, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let start = [kind, 0, channel];
        let frame = [&start[..], &length.to_be_bytes(), payload, &[0xce]].concat();
        self.0.write_all(&frame)
    }

    /// Reads a method, and gives its arguments.
    fn expect(&mut self, awaited: Method) -> io::Result<Vec<u8>> {
        let mut start = [0; 7];
        self.0.read_exact(&mut start)?;
        let [_, _, _, length @ ..] = start;
        let mut payload = vec![0; u32::from_be_bytes(length) as usize + 1];
        self.0.read_exact(&mut payload)?;
        let arguments = payload.strip_prefix(&*method(awaited, &[]));
        arguments
            .map(<[u8]>::to_vec)
            .ok_or_else(|| unexpected(format!("not {awaited:?}: {payload:?}")))
    }
}

fn method((class, method): Method, arguments: &[u8]) -> Vec<u8> {
    [&class.to_be_bytes(), &method.to_be_bytes(), arguments].concat()
}

fn short(text: &str) -> io::Result<Vec<u8>> {
    let length = u8::try_from(text.len()).map_err(io::Error::other)?;
    Ok([&[length], text.as_bytes()].concat())
}
