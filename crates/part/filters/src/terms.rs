//! Which filter is asked, where, and within which bounds.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::clamd::Clamd;
use crate::rspamd::Rspamd;

/// The terms of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The protocol.
    pub kind: Kind,
    /// Where the filter listens.
    pub address: Address,
    /// The longest time for place, connection and talk together.
    pub timeout: Duration,
    /// The longest message that the filter is shown, in octets; also the longest body that a milter may put in its place.
    pub size_max: usize,
    /// The most connections at once; a further question waits for its place.
    pub connections_max: usize,
    /// Bounds of answers.
    pub bounds: Bounds,
}

/// The protocol of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// rspamd, by HTTP.
    Rspamd(Rspamd),
    /// ClamAV.
    Clamd(Clamd),
    /// Any filter with libmilter's protocol.
    Milter,
}

/// Where a filter listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address and a port.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// Bounds of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The longest answer of rspamd, in octets. Default 1 MiB.
    pub answer_octets: usize,
    /// The most symbols of rspamd. Default 1,000.
    pub symbols: usize,
    /// The most options of a symbol; further ones are left out. Default 32.
    pub options: usize,
    /// The longest name or option of a symbol, in octets; longer ones are cut. Default 256.
    pub text_octets: usize,
    /// The most changes of a message. Default 256.
    pub changes: usize,
    /// The most octets of changed headers and addresses together. Default 256 KiB.
    pub change_octets: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            answer_octets: 1024 * 1024,
            symbols: 1_000,
            options: 32,
            text_octets: 256,
            changes: 256,
            change_octets: 256 * 1024,
        }
    }
}
