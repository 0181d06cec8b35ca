//! Why the server ends.

use std::error::Error;
use std::fmt;
use std::io;

use vere_net::listen::ListenError;

/// Why the server cannot start, or ended early.
#[derive(Debug)]
pub enum DnsblError {
    /// The settings have no section `[dnsbl]`.
    NoSection,
    /// No zone can be read; the log has the reasons.
    NoZone,
    /// A socket cannot be opened.
    Listen(ListenError),
    /// The system refused something.
    System(io::Error),
}

impl DnsblError {
    /// The inner error, which is shown alone.
    fn shown(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::NoSection | Self::NoZone => return None,
            Self::Listen(error) => error,
            Self::System(error) => error,
        })
    }
}

impl fmt::Display for DnsblError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.shown()) {
            (_, Some(error)) => fmt::Display::fmt(error, f),
            (Self::NoSection, _) => f.write_str("expected a section [dnsbl] in the settings"),
            _ => f.write_str("expected at least one zone; no zone can be read, see the log"),
        }
    }
}

impl Error for DnsblError {
    /// The display is that of the direct cause; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.shown().and_then(Error::source)
    }
}

impl From<ListenError> for DnsblError {
    fn from(error: ListenError) -> Self {
        Self::Listen(error)
    }
}

impl From<io::Error> for DnsblError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
