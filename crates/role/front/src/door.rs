//! Where the connections of a loop come from.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::Receiver;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use vere_net::listen::send_at_once;
use vere_screen::Partition;

use super::loops::Arrival;

/// The first token that belongs to no connection of a client; the listening sockets have it and the next ones.
pub(crate) const LISTENERS: usize = usize::MAX - 0xFFFF;
/// The name of the service in log lines.
pub(crate) const SERVICE: &str = "smtp";

/// A connection, and the other end by the kernel.
pub(crate) type Accepted = (TcpStream, SocketAddr);

/// Connections taken before other events have their turn.
const ACCEPTS_MAX: usize = 64;

/// Where the connections of a loop come from.
#[derive(Debug)]
pub(crate) struct Door {
    /// The sockets of the port; the first loop has them.
    listeners: Vec<TcpListener>,
    /// Connections that the first loop gives this one.
    arrivals: Receiver<Arrival>,
    partition: Partition,
    /// There may be more connections.
    may_have_more: bool,
    /// Descriptors were short at the last accept.
    is_short: bool,
    /// No further connection is taken.
    is_closed: bool,
}

impl Door {
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new(
        listeners: Vec<std::net::TcpListener>,
        arrivals: Receiver<Arrival>,
        partition: Partition,
        registry: &Registry,
    ) -> io::Result<Self> {
        let mut sockets = Vec::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            listener.set_nonblocking(true)?;
            // A reply of a worker waits for no acknowledgement of the reply before.
            send_at_once(&listener)?;
            let mut listener = TcpListener::from_std(listener);
            let token = Token(LISTENERS.saturating_add(number));
            registry.register(&mut listener, token, Interest::READABLE)?;
            sockets.push(listener);
        }
        Ok(Self {
            listeners: sockets,
            arrivals,
            partition,
            may_have_more: true,
            is_short: false,
            is_closed: false,
        })
    }

    /// Connections may be there. The kernel and the first loop say so once, and a connection that could not be accepted is no event
    /// again.
    pub(crate) const fn look(&mut self) {
        self.may_have_more = true;
    }

    /// Whether connections may be there to be taken.
    pub(crate) const fn has_more(&self) -> bool {
        self.may_have_more && !self.is_closed
    }

    /// Whether descriptors were short at the last accept.
    pub(crate) const fn is_short(&self) -> bool {
        self.is_short
    }

    /// Takes no further connection.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.listeners.clear();
        self.arrivals.try_iter().for_each(drop);
    }

    /// The number of the loop that has a client.
    pub(crate) fn home(&self, client: IpAddr) -> usize {
        self.partition.part_of(client)
    }

    /// Takes a bounded number of connections, accepted by this loop or by another loop for this loop.
    pub(crate) fn take(&mut self) -> (Vec<Accepted>, Vec<Arrival>) {
        let (mut accepted, mut short) = (Vec::new(), false);
        for listener in &self.listeners {
            for _ in 0..ACCEPTS_MAX {
                match listener.accept() {
                    Ok(connection) => accepted.push(connection),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, service = SERVICE, "cannot accept a connection");
                        short = true;
                        break;
                    }
                }
            }
        }
        let given: Vec<_> = self.arrivals.try_iter().take(ACCEPTS_MAX).collect();
        self.may_have_more = accepted.len().max(given.len()) >= ACCEPTS_MAX;
        self.is_short = short;
        (accepted, given)
    }
}

/// Whether accept(2) failed for the one connection only.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
