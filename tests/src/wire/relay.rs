//! One connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Shared;
use super::cut::End;
use super::protocol::{Messages, Protocol, Sender};
use super::state::Expected;

/// Forwards whole messages until one side hangs up, or the connection is cut.
pub(super) async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    protocol: Protocol,
    state: &Shared,
) {
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let mut asked = Messages::new(protocol, Sender::Client);
    let mut answered = Messages::new(protocol, Sender::Server);
    let mut expected = Expected::default();
    let (mut question, mut answer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let (sender, messages, receiver) = tokio::select! {
            read = client.read(&mut question) => {
                let Ok(read @ 1..) = read else { return };
                asked.push(&question[..read]);
                (Sender::Client, &mut asked, &mut server)
            }
            read = server.read(&mut answer) => {
                let Ok(read @ 1..) = read else { return };
                answered.push(&answer[..read]);
                (Sender::Server, &mut answered, &mut client)
            }
        };
        let (forward, cut) = state.lock().pass(protocol, sender, messages, &mut expected);
        if receiver.write_all(&forward).await.is_err() {
            return;
        }
        if let Some(cut) = cut {
            if cut.end == End::UnseenByServer {
                state.lock().held.push(server);
            }
            return;
        }
    }
}
