//! Destinations: peers, local users, gateways.

use std::fmt;
use std::str::FromStr;

/// A next hop or a local user.
///
/// The text form names the queue of the destination: `peer:NAME`, `file:NAME`, `store:NAME`, `gateway:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// Another MTA.
    Peer(String),
    /// A local user with messages in files.
    File(String),
    /// A local user with messages in the mail store.
    Store(String),
    /// A program behind the gateway interface.
    Gateway(String),
}

impl Destination {
    /// The local user.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::File(name) | Self::Store(name) => Some(name),
            Self::Peer(_) | Self::Gateway(_) => None,
        }
    }

    /// The peer.
    #[must_use]
    pub fn peer(&self) -> Option<&str> {
        match self {
            Self::Peer(name) => Some(name),
            _ => None,
        }
    }

    /// The word before the colon, and the name behind it.
    #[must_use]
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Peer(name) => ("peer", name),
            Self::File(name) => ("file", name),
            Self::Store(name) => ("store", name),
            Self::Gateway(name) => ("gateway", name),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = self.parts();
        write!(out, "{kind}:{name}")
    }
}

/// A fault in the text of a destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected peer:NAME, file:NAME, store:NAME or gateway:NAME; found {0:?}")]
pub struct DestinationError(pub String);

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || DestinationError(text.to_owned());
        let (kind, name) = text.split_once(':').ok_or_else(fault)?;
        let name = name.to_owned();
        match kind {
            _ if name.is_empty() => Err(fault()),
            "peer" => Ok(Self::Peer(name)),
            "file" => Ok(Self::File(name)),
            "store" => Ok(Self::Store(name)),
            "gateway" => Ok(Self::Gateway(name)),
            _ => Err(fault()),
        }
    }
}
