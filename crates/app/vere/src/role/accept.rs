//! The loop that accepts connections, for ports of the internet and sockets in the file system.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::spawn_local;

/// Pause after a failed accept, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where connections come in.
pub(crate) trait Listener {
    /// A connection and who made it.
    type Accepted;

    /// The next connection.
    async fn next(&self) -> io::Result<Self::Accepted>;
}

impl Listener for TcpListener {
    type Accepted = (TcpStream, SocketAddr);

    async fn next(&self) -> io::Result<Self::Accepted> {
        self.accept().await
    }
}

impl Listener for UnixListener {
    type Accepted = UnixStream;

    async fn next(&self) -> io::Result<Self::Accepted> {
        Ok(self.accept().await?.0)
    }
}

/// Serves every connection of `listener` in a task of its own until `stop` becomes true.
pub(crate) async fn accept<L: Listener, F: Future<Output = ()> + 'static>(
    listener: L,
    service: &'static str,
    mut stop: watch::Receiver<bool>,
    serve: impl Fn(L::Accepted) -> F,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.next() => accepted,
            _ = stop.wait_for(|stopping| *stopping) => return,
        };
        match accepted {
            Ok(connection) => {
                spawn_local(serve(connection));
            }
            Err(error) => {
                tracing::warn!(%error, service, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
