//! Where a recipient goes: the destination whose queue holds the message.

use std::fmt;
use std::str::FromStr;

use crate::envelope::TlsWish;

const REQUIRE_TLS: &str = "requiretls:";
const TLS_OPTIONAL: &str = "tlsoptional:";

/// The target of the deliveries of a queue. Its text form names the queue in the spool and in `vere queue
/// list`, and is parsed back after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// Mailboxes of this system: `local`.
    Local,
    /// The mail exchangers of a domain, found by MX (RFC 5321 section 5): the domain in lower case, or
    /// an address literal with its brackets.
    Domain(String),
    /// A fixed next hop from a route, `relay:HOST:PORT`; several domains may share it.
    Relay(String),
    /// Messages for another destination that must be sent encrypted (REQUIRETLS, RFC 8689): `requiretls:`
    /// and the text of the other destination. Such messages have a queue of their own, since the hosts may
    /// accept all other mail and refuse such messages.
    RequireTls(Box<Self>),
    /// Messages for another destination whose senders prefer delivery to encryption (`TLS-Required: No`):
    /// `tlsoptional:` and the text of the other destination.
    TlsOptional(Box<Self>),
}

impl Destination {
    /// The destination for messages with this wish of the sender; mailboxes of this system count as
    /// encrypted.
    #[must_use]
    pub fn with(self, wish: TlsWish) -> Self {
        match wish {
            _ if self == Self::Local => self,
            TlsWish::None => self,
            TlsWish::Required => Self::RequireTls(Box::new(self)),
            TlsWish::Optional => Self::TlsOptional(Box::new(self)),
        }
    }

    /// Whether the text form contains this text.
    #[must_use]
    pub fn holds(&self, text: &str) -> bool {
        match self {
            Self::Domain(domain) => domain.contains(text),
            Self::Local | Self::Relay(_) | Self::RequireTls(_) | Self::TlsOptional(_) => {
                self.to_string().contains(text)
            }
        }
    }

    /// The place alone, and the sender's wish.
    #[must_use]
    pub fn place(&self) -> (&Self, TlsWish) {
        match self {
            Self::RequireTls(place) => (place.place().0, TlsWish::Required),
            Self::TlsOptional(place) => (place.place().0, TlsWish::Optional),
            Self::Local | Self::Domain(_) | Self::Relay(_) => (self, TlsWish::None),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Domain(domain) => f.write_str(domain),
            Self::Relay(next_hop) => {
                f.write_str("relay:")?;
                f.write_str(next_hop)
            }
            Self::RequireTls(place) => write!(f, "{REQUIRE_TLS}{place}"),
            Self::TlsOptional(place) => write!(f, "{TLS_OPTIONAL}{place}"),
        }
    }
}

/// The text is empty and names no destination.
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
        // Written once only, in front: a text of nothing but prefixes costs no depth.
        if let Some(place) = text.strip_prefix(REQUIRE_TLS) {
            return Ok(Self::RequireTls(Box::new(place_of(place)?)));
        }
        if let Some(place) = text.strip_prefix(TLS_OPTIONAL) {
            return Ok(Self::TlsOptional(Box::new(place_of(place)?)));
        }
        place_of(text)
    }
}

fn place_of(text: &str) -> Result<Destination, EmptyDestination> {
    match text {
        "" => Err(EmptyDestination),
        "local" => Ok(Destination::Local),
        _ => Ok(match text.strip_prefix("relay:") {
            Some(next_hop) => Destination::Relay(next_hop.to_owned()),
            None => Destination::Domain(text.to_ascii_lowercase()),
        }),
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
            Destination::Domain("example.org".to_owned()).with(TlsWish::Required),
            Destination::Relay("[::1]:2526".to_owned()).with(TlsWish::Optional),
        ] {
            assert_eq!(
                destination.to_string().parse::<Destination>(),
                Ok(destination)
            );
        }
        assert!("".parse::<Destination>().is_err());
        assert!("requiretls:".parse::<Destination>().is_err());
        assert_eq!(
            Destination::Local.with(TlsWish::Required),
            Destination::Local
        );
        let domain = Destination::Domain("example.org".to_owned());
        let wished = domain.clone().with(TlsWish::Required);
        assert_eq!(wished.place(), (&domain, TlsWish::Required));
    }
}
