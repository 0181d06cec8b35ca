//! What the clients of a server may hold.

use std::time::Duration;

/// The least bound of a header that the library takes.
pub const HEADER_OCTETS_MIN: usize = 8 * 1024;
/// What the clients of a listener may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at once. Beyond them the oldest connection of the busiest client is closed.
    pub connections_max: usize,
    /// Connections of one IPv4 address or one IPv6 /64; further ones are closed.
    pub per_client_max: usize,
    /// Octets of a request line with its header, at least [`HEADER_OCTETS_MIN`].
    pub header_octets_max: usize,
    /// Longest wait for a whole header, from the end of the handshake.
    pub header_timeout: Duration,
    /// Longest time of a connection, also of one whose client reads slowly.
    pub connection_timeout: Duration,
}

impl Bounds {
    /// The bounds of listeners for operators and authorities, with this number of connections, whosever they are.
    #[must_use]
    pub const fn of_few(connections_max: usize) -> Self {
        Self {
            connections_max,
            per_client_max: usize::MAX,
            header_octets_max: HEADER_OCTETS_MIN,
            header_timeout: Duration::from_secs(5),
            connection_timeout: Duration::from_secs(15),
        }
    }
}
