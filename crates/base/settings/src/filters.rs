//! The settings of content filters.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use vere_units::{ByteSize, Span};

use crate::kind::host_name;

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

impl FilterAddress {
    /// Reads `"unix:" path / host ":" port / "[" IPv6 "]:" port`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(Self::Unix(PathBuf::from(path))),
                false => Err("expected an absolute path after \"unix:\"".to_owned()),
            };
        }
        if text.starts_with('/') {
            return Err(format!("expected \"unix:{text}\" for a Unix socket"));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err(PORT_WANTED.to_owned()),
                _ => Ok(Self::Ip(address)),
            };
        }
        let Some((host, port)) = text.rsplit_once(':') else {
            return Err("expected host:port, [IPv6]:port or unix:/path".to_owned());
        };
        if host.contains(':') || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) {
            return Err("expected an IPv6 address in brackets, such as [::1]:11333".to_owned());
        }
        let port = port.parse::<u16>().ok().filter(|port| *port != 0);
        let port = port.ok_or(PORT_WANTED)?;
        match host.parse::<Ipv4Addr>() {
            Ok(ip) => Ok(Self::Ip((ip, port).into())),
            Err(_) => Ok(Self::Host(host_name(host)?, port)),
        }
    }
}

const PORT_WANTED: &str = "expected a port from 1 to 65535";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_three_forms() {
        for (text, shown) in [
            ("unix:/run/clamav/clamd.ctl", "unix:/run/clamav/clamd.ctl"),
            ("127.0.0.1:11333", "127.0.0.1:11333"),
            ("[::1]:11333", "[::1]:11333"),
            ("Rspamd.example.org:11333", "rspamd.example.org:11333"),
            ("localhost:1", "localhost:1"),
        ] {
            assert_eq!(FilterAddress::parse(text).expect(text).to_string(), shown);
        }
        for (text, words) in [
            ("unix:run/x", "absolute"),
            ("unix:", "absolute"),
            ("/run/x", "unix:/run/x"),
            ("localhost", "host:port"),
            ("localhost:0", "port from 1"),
            ("localhost:65536", "port from 1"),
            ("127.0.0.1:0", "port from 1"),
            ("::1:11333", "brackets"),
            ("a b:1", "host name"),
            (":1", "host name"),
        ] {
            let found = FilterAddress::parse(text).expect_err(text);
            assert!(found.contains(words), "{text}: {found}");
        }
    }
}
