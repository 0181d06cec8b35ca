//! The address of a filter.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use vere_settings::FilterAddress;

/// Where a filter listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address and a port.
    Tcp(SocketAddr),
    /// A host name and a port. Each connection looks the name up by the system's resolver.
    Host(String, u16),
}

impl From<&FilterAddress> for Address {
    fn from(address: &FilterAddress) -> Self {
        match address {
            FilterAddress::Unix(path) => Self::Unix(path.clone()),
            FilterAddress::Ip(address) => Self::Tcp(*address),
            FilterAddress::Host(host, port) => Self::Host(host.clone(), *port),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
            Self::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}
