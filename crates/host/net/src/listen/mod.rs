//! Listening sockets: bound, or inherited from systemd or from the supervisor.
//!
//! [`Inherited::from_env`] takes the sockets passed to the process; [`bind`] binds the missing
//! sockets. An error for a port in use names the process that uses the port. [`bind_local`] makes a
//! socket in the file system, for the programs of this machine.

mod inherited;
mod local;
mod owner;

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

pub use inherited::Inherited;
pub use local::bind_local;
pub use owner::PortOwner;

/// How a listening socket is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that the kernel queues for acceptance. Default 1024; the kernel's
    /// `net.core.somaxconn` may lower the value.
    pub backlog: i32,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { backlog: 1024 }
    }
}

/// Why there is no listening socket: always a local matter.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another socket listens there.
    #[error("cannot listen on {address}: {owner}")]
    Taken {
        /// The address wanted.
        address: SocketAddr,
        /// The owner of the port, as far as visible to this process.
        owner: PortOwner,
    },
    /// Ports below 1024 need a privilege that this process lacks.
    #[error(
        "cannot listen on {address}: ports below 1024 need root, CAP_NET_BIND_SERVICE or \
         a socket from systemd"
    )]
    Privilege {
        /// The address wanted.
        address: SocketAddr,
    },
    /// Anything else the kernel said.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address wanted.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An inherited descriptor is no listening TCP socket.
    #[error("inherited socket {name} cannot be used: {source}")]
    Inherited {
        /// The name of the descriptor, or the number if the name is missing.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The variables for inherited sockets contradict each other.
    #[error(
        "{names} names are given for {descriptors} inherited sockets (LISTEN_FDS, \
         LISTEN_FDNAMES, VERE_LISTEN_FDNAMES)"
    )]
    Environment {
        /// How many descriptors there are.
        descriptors: usize,
        /// Number of names given for the descriptors.
        names: usize,
    },
}

/// Binds every address, in order.
///
/// `[::]` also accepts IPv4 connections, unless `0.0.0.0` with the same port is in the list; on a
/// kernel without IPv6, `0.0.0.0` is bound instead. The sockets are non-blocking, as tokio
/// requires.
///
/// # Errors
/// The first address that cannot be bound, with the reason.
pub fn bind(
    addresses: &[SocketAddr],
    options: ListenOptions,
) -> Result<Vec<TcpListener>, ListenError> {
    addresses
        .iter()
        .map(|address| bind_one(*address, addresses, options))
        .collect()
}

/// Lets the connections of a listening socket inherit that each write leaves at once (tcp(7), `TCP_NODELAY`), so that no
/// connection costs a call for that.
///
/// # Errors
/// When the kernel refuses.
pub fn send_at_once(listener: &TcpListener) -> io::Result<()> {
    SockRef::from(listener).set_tcp_nodelay(true)
}

fn bind_one(
    address: SocketAddr,
    all: &[SocketAddr],
    options: ListenOptions,
) -> Result<TcpListener, ListenError> {
    let only_v6 = all.iter().any(|other| {
        other.is_ipv4() && other.ip().is_unspecified() && other.port() == address.port()
    });
    match socket(address, only_v6, options) {
        Ok(listener) => Ok(listener),
        Err(error) if no_ipv6(&error) && address.is_ipv6() && address.ip().is_unspecified() => {
            let v4 = SocketAddr::from(([0, 0, 0, 0], address.port()));
            tracing::warn!(%address, "no ipv6 on this machine, listening on ipv4 only");
            socket(v4, false, options).map_err(|source| failed(v4, source))
        }
        Err(source) => Err(failed(address, source)),
    }
}

fn socket(address: SocketAddr, only_v6: bool, options: ListenOptions) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // A restart must not wait for the old connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.bind(&address.into())?;
    socket.listen(options.backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

pub(crate) fn failed(address: SocketAddr, source: io::Error) -> ListenError {
    match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::Taken {
            address,
            owner: PortOwner::of(address.port()),
        },
        io::ErrorKind::PermissionDenied if address.port() < 1024 => {
            ListenError::Privilege { address }
        }
        _ => ListenError::Bind { address, source },
    }
}

fn no_ipv6(error: &io::Error) -> bool {
    // EAFNOSUPPORT has no stable kind; EADDRNOTAVAIL is what `ipv6.disable_ipv6` gives.
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}

#[cfg(test)]
mod tests;
