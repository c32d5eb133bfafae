//! One address for the server that is the primary at the time.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// Forwards each new connection to where it stands.
pub(crate) struct Switch {
    port: u16,
    target: Arc<Mutex<SocketAddr>>,
}

impl Switch {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let target = Arc::new(Mutex::new(target));
        tokio::spawn(forward(listener, Arc::clone(&target)));
        Self { port, target }
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn turn_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }
}

async fn forward(listener: TcpListener, target: Arc<Mutex<SocketAddr>>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let target = *target.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::spawn(async move {
            // Whichever end hangs up, the other is told by the end of this task.
            if let Ok(mut server) = TcpStream::connect(target).await {
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
