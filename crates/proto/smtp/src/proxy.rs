//! The PROXY protocol header, versions 1 and 2: who the client of a load balancer really is.
//!
//! The header stands before the first octet of the connection (also before a TLS handshake), and is
//! read only from the networks that the configuration names: anybody else would choose the address
//! they are judged by. The reference is HAProxy's `doc/proxy-protocol.txt`.
//!
//! Covered: both versions, LOCAL, UNSPEC, TCP over IPv4 and IPv6, UNIX addresses (skipped), and the
//! CRC32c record. Other records (TLS details, ALPN, authority, NOOP) are checked for form and skipped.
//!
//! ```
//! use vere_smtp::proxy::{Decoder, Header};
//!
//! let mut decoder = Decoder::default();
//! let (taken, header) = decoder.input(b"PROXY TCP4 192.0.2.7 192.0.2.25 4711 25\r\nEHLO a\r\n")?;
//! assert_eq!(taken, 41);
//! assert!(matches!(header, Some(Header::Proxied { source, .. }) if source.port() == 4711));
//! # Ok::<(), vere_smtp::proxy::ProxyError>(())
//! ```

mod v1;
mod v2;

use std::net::SocketAddr;

/// Octets of the longest header taken. Version 1 allows 107; version 2 would allow 65,551, of which
/// the addresses take 52 and TLS details a few hundred.
pub const HEADER_LENGTH_MAX: usize = 2048;

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The load balancer speaks for itself (a health check): the connection's own addresses hold.
    Local,
    /// The load balancer does not know the client or cannot name the client: the addresses of the
    /// connection apply.
    Unknown,
    /// The load balancer speaks for a client.
    Proxied {
        /// The client.
        source: SocketAddr,
        /// Where the client connected to.
        destination: SocketAddr,
    },
}

/// Why octets are no header; always the peer's fault, and the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Neither version's signature stands at the beginning.
    #[error("no PROXY header")]
    NoSignature,
    /// The header has this many octets, more than the limit.
    #[error("PROXY header over {0} octets")]
    TooLong(usize),
    /// A line of version 1 is malformed; the text names the part.
    #[error("PROXY line with a bad {0}")]
    Line(&'static str),
    /// The version in the binary header is not 2.
    #[error("PROXY header of version {0}")]
    Version(u8),
    /// The command is neither LOCAL nor PROXY.
    #[error("PROXY command {0}")]
    Command(u8),
    /// The address family and transport are not defined, or are datagrams.
    #[error("PROXY transport {0:#04x}")]
    Transport(u8),
    /// The length is too small for the addresses or cuts a record.
    #[error("PROXY header with a bad length")]
    Length,
    /// The CRC32c record is wrong or stands there twice.
    #[error("PROXY header with a wrong checksum")]
    Checksum,
}

/// Parses a header at the beginning of the octets: the content and the length, or `None` while more
/// octets are needed.
///
/// # Errors
///
/// [`ProxyError`], as early as the octets show the error.
pub fn decode(octets: &[u8]) -> Result<Option<(Header, usize)>, ProxyError> {
    if begins(octets, v2::SIGNATURE) {
        return v2::decode(octets);
    }
    if begins(octets, v1::SIGNATURE) {
        return v1::decode(octets);
    }
    Err(ProxyError::NoSignature)
}

/// Says whether the octets begin with the signature, as far as either goes.
fn begins(octets: &[u8], signature: &[u8]) -> bool {
    octets
        .iter()
        .zip(signature)
        .all(|(octet, expected)| octet == expected)
}

/// Collects a header from octets that arrive in any pieces; holds at most [`HEADER_LENGTH_MAX`].
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    collected: Vec<u8>,
}

impl Decoder {
    /// Takes octets: how many belong to the header, and the header if it is whole.
    ///
    /// Without a header everything was taken. The octets behind the header are the client's.
    ///
    /// # Errors
    ///
    /// [`ProxyError`]; the decoder must not be used any more.
    pub fn input(&mut self, octets: &[u8]) -> Result<(usize, Option<Header>), ProxyError> {
        let before = self.collected.len();
        let room = HEADER_LENGTH_MAX.saturating_sub(before);
        self.collected.extend(octets.iter().take(room));
        match decode(&self.collected)? {
            Some((header, length)) => {
                self.collected = Vec::new();
                Ok((length.saturating_sub(before), Some(header)))
            }
            None if octets.len() > room => Err(ProxyError::TooLong(HEADER_LENGTH_MAX)),
            None => Ok((octets.len(), None)),
        }
    }
}

#[cfg(test)]
mod tests;
