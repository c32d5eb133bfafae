//! A broker that goes down, or no longer answers.

#![allow(dead_code, reason = "the tests of one broker use a part of it")]

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Stands between a program and its broker, for as long as the test runs.
pub(crate) struct Proxy {
    /// Of the broker, by this way.
    pub(crate) url: String,
    broker: watch::Sender<Broker>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Broker {
    Up,
    Frozen,
    Down,
}

impl Proxy {
    pub(crate) async fn to(url: &str) -> Self {
        let before = url.rfind('@').or_else(|| url.rfind("//").map(|at| at + 1));
        let (before, rest) = url.split_at(before.unwrap() + 1);
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours: SocketAddr = listener.local_addr().unwrap();
        let (broker, state) = watch::channel(Broker::Up);
        tokio::spawn(listen(listener, address.to_owned(), state));
        Self {
            url: format!("{before}{ours}{path}"),
            broker,
        }
    }

    /// From now on nothing comes through, and nobody hangs up.
    pub(crate) fn freezes(&self) {
        self.broker.send_replace(Broker::Frozen);
    }

    /// It hangs up, at once and on whoever calls again.
    pub(crate) fn goes_down(&self) {
        self.broker.send_replace(Broker::Down);
    }
}

async fn listen(listener: TcpListener, address: String, state: watch::Receiver<Broker>) {
    while let Ok((program, _)) = listener.accept().await {
        if *state.borrow() == Broker::Down {
            continue;
        }
        let broker = TcpStream::connect(&address).await.unwrap();
        let mut state = state.clone();
        tokio::spawn(async move {
            let (program, broker) = (program.into_split(), broker.into_split());
            tokio::select! {
                () = pass(program.0, broker.1, state.clone()) => {}
                () = pass(broker.0, program.1, state.clone()) => {}
                _ = state.wait_for(|state| *state == Broker::Down) => {}
            }
        });
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<Broker>,
) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if state.wait_for(|state| *state == Broker::Up).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
