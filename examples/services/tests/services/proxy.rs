//! A broker that no longer answers, and does not hang up.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Stands between a program and its broker, for as long as the test runs.
pub(crate) struct Proxy {
    /// Of the broker, by this way.
    pub(crate) url: String,
    frozen: watch::Sender<bool>,
}

impl Proxy {
    pub(crate) async fn to(url: &str) -> Self {
        let before = url.rfind('@').or_else(|| url.rfind("//").map(|at| at + 1));
        let (before, rest) = url.split_at(before.unwrap() + 1);
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let address = address.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours: SocketAddr = listener.local_addr().unwrap();
        let (frozen, is_frozen) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((program, _)) = listener.accept().await {
                let broker = TcpStream::connect(&address).await.unwrap();
                let (program, broker) = (program.into_split(), broker.into_split());
                tokio::spawn(pass(program.0, broker.1, is_frozen.clone()));
                tokio::spawn(pass(broker.0, program.1, is_frozen.clone()));
            }
        });
        Self {
            url: format!("{before}{ours}{path}"),
            frozen,
        }
    }

    /// From now on nothing comes through.
    pub(crate) fn freeze(&self) {
        self.frozen.send_replace(true);
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut is_frozen: watch::Receiver<bool>,
) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if is_frozen.wait_for(|is_frozen| !is_frozen).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
