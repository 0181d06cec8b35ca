//! Sockets in the file system, and the loop that accepts connections on them and on ports of the internet.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::spawn_local;

/// Pause after a failed accept, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The permissions of a folder for its owner alone.
const FOLDER_MODE: u32 = 0o700;

/// Where connections come in.
pub trait Listener {
    /// A connection and who made it.
    type Accepted;

    /// The next connection.
    ///
    /// # Errors
    /// Errors of `accept(2)`.
    fn next(&self) -> impl Future<Output = io::Result<Self::Accepted>>;
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

/// Serves every connection of `listener` in a separate task until `stop` becomes true.
pub async fn accept<L: Listener, F: Future<Output = ()> + 'static>(
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

/// Makes a folder for its owner alone; one that exists becomes so.
///
/// # Errors
/// When the folder cannot be made or changed.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(FOLDER_MODE))
}

/// Opens the socket for its owner alone; a socket left by a dead process is replaced.
///
/// # Errors
/// When the path cannot be bound.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
