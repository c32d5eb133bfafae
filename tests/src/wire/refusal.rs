//! Servers that refuse connections.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How a server refuses a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// It hangs up.
    HangsUp,
    /// It answers with this SQLSTATE: Postgres only.
    Says(&'static str),
}

pub(super) async fn refuse(mut client: TcpStream, refusal: Refusal) {
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
