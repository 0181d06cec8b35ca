//! The settings of content filters.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use vere_units::{ByteSize, Span};

/// The most filters: facts about a message have places for so many.
pub(crate) const FILTERS_MAX: usize = 16;
/// The longest time in milliseconds that all filters may take together: a client waits 10 minutes for the reply to the end of its
/// message (RFC 5321 section 4.5.3.2.6), and the rest of that time is for storage.
pub(crate) const TIMEOUTS_MS_MAX: u64 = 5 * 60 * 1_000;

/// A content filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterSettings {
    /// The name, a word.
    pub name: String,
    /// The protocol.
    pub kind: FilterKind,
    /// The mail that the filter is asked about.
    pub mail: FilteredMail,
    /// Where the filter listens.
    pub address: FilterAddress,
    /// Longest wait for an answer.
    pub timeout: Span,
    /// The longest message that the filter is shown.
    pub size_max: ByteSize,
    /// The most connections at once.
    pub connections_max: u32,
    /// Whether clients are told to try again while the filter gives no answer; otherwise the message goes on without the answer.
    pub defers_unavailable: bool,
    /// The file with the password of rspamd.
    pub password_file: Option<PathBuf>,
    /// Where rspamd learns: the address of its controller.
    pub learn_address: Option<FilterAddress>,
}

/// The protocol of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKind {
    /// rspamd, by HTTP.
    Rspamd,
    /// ClamAV.
    Clamd,
    /// Any filter with libmilter's protocol.
    Milter,
}

impl FilterKind {
    /// Returns the word in settings and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rspamd => "rspamd",
            Self::Clamd => "clamd",
            Self::Milter => "milter",
        }
    }

    /// Finds the kind of a word.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let mut all = [Self::Rspamd, Self::Clamd, Self::Milter].into_iter();
        all.find(|kind| kind.name() == name)
    }

    /// The time for an answer without `timeout`. rspamd ends the rules of a message after 8 s by itself; clamd unpacks archives, and milters often
    /// ask other services.
    pub(crate) const fn usual_timeout(self) -> Span {
        match self {
            Self::Rspamd => Span::from_secs(10),
            Self::Clamd | Self::Milter => Span::from_secs(30),
        }
    }
}

/// The mail that a filter is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilteredMail {
    /// Mail of strangers at port 25.
    Received,
    /// Mail of accounts, of local programs and of clients that may relay.
    Submitted,
    /// Both.
    All,
}

impl FilteredMail {
    /// Finds the value of a word.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "received" => Some(Self::Received),
            "submitted" => Some(Self::Submitted),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

/// Where a filter listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterAddress {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address and a port.
    Ip(SocketAddr),
    /// A host name and a port.
    Host(String, u16),
}

impl fmt::Display for FilterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Ip(address) => address.fmt(f),
            Self::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}
