//! Where a recipient goes: the destination whose queue holds the message.

use std::fmt;
use std::str::FromStr;

/// The place that one queue delivers to. Its text form names the queue in the spool and in
/// `vere queue list`, and is parsed back after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// Mailboxes of this system: `local`.
    Local,
    /// The mail exchangers of a domain, found by MX (RFC 5321 section 5): the domain in lower case, or
    /// an address literal with its brackets.
    Domain(String),
    /// A fixed next hop from a route, `relay:HOST:PORT`; several domains may share it.
    Relay(String),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Domain(domain) => f.write_str(domain),
            Self::Relay(next_hop) => write!(f, "relay:{next_hop}"),
        }
    }
}

/// The text names no destination: it is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyDestination;

impl fmt::Display for EmptyDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a destination needs a name")
    }
}

impl std::error::Error for EmptyDestination {}

impl FromStr for Destination {
    type Err = EmptyDestination;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Err(EmptyDestination),
            "local" => Ok(Self::Local),
            _ => Ok(match text.strip_prefix("relay:") {
                Some(next_hop) => Self::Relay(next_hop.to_owned()),
                None => Self::Domain(text.to_ascii_lowercase()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_survives_its_text_form() {
        for destination in [
            Destination::Local,
            Destination::Domain("example.org".to_owned()),
            Destination::Domain("[192.0.2.1]".to_owned()),
            Destination::Relay("[::1]:2526".to_owned()),
        ] {
            assert_eq!(
                destination.to_string().parse::<Destination>(),
                Ok(destination)
            );
        }
        assert!("".parse::<Destination>().is_err());
    }
}
