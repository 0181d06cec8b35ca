//! Where a recipient goes: the destination whose queue holds the message.

use std::fmt;
use std::str::FromStr;

use crate::envelope::TlsWish;

const REQUIRE_TLS: &str = "requiretls:";
const TLS_OPTIONAL: &str = "tlsoptional:";

/// Where mail goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Mailboxes of this system: `local`.
    Local,
    /// The mail exchangers of a domain, found by MX (RFC 5321 section 5): the domain in lower case, or
    /// an address literal with its brackets.
    Domain(String),
    /// A fixed next hop from a route, `relay:HOST:PORT`; several domains may share it.
    Relay(String),
}

/// The place that one queue delivers to, and the encryption that the senders of its messages wish for.
///
/// Messages with a wish have a separate queue, since the hosts of a place may take all other mail and not these.
/// The text form names the queue in the spool and in `vere queue list`, and is parsed back after a restart:
///
/// ```text
/// PLACE              no wish
/// requiretls:PLACE   only encrypted (REQUIRETLS, RFC 8689)
/// tlsoptional:PLACE  delivered rather than encrypted (`TLS-Required: No`)
/// ```
///
/// The order of destinations is that of listings: by wish, then by place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Destination {
    /// The wish of the senders.
    pub wish: TlsWish,
    /// The place.
    pub place: Place,
}

impl Place {
    /// Returns the place of a fixed next hop; an IPv6 address gets brackets.
    #[must_use]
    pub fn relay(host: &str, port: u16) -> Self {
        Self::Relay(if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        })
    }

    /// Returns the destination of messages whose senders have this wish. Mailboxes of this system need no
    /// encryption, and have one queue.
    #[must_use]
    pub fn with(self, wish: TlsWish) -> Destination {
        let wish = match self {
            Self::Local => TlsWish::None,
            Self::Domain(_) | Self::Relay(_) => wish,
        };
        Destination { wish, place: self }
    }
}

impl Destination {
    /// Mailboxes of this system.
    pub const LOCAL: Self = Self {
        wish: TlsWish::None,
        place: Place::Local,
    };

    /// Returns a domain, in lower case, whose senders wish nothing.
    #[must_use]
    pub const fn domain(name: String) -> Self {
        Self {
            wish: TlsWish::None,
            place: Place::Domain(name),
        }
    }

    /// Whether the text form contains this text.
    #[must_use]
    pub fn holds(&self, text: &str) -> bool {
        match self {
            Self {
                wish: TlsWish::None,
                place: Place::Domain(domain),
            } => domain.contains(text),
            other => other.to_string().contains(text),
        }
    }
}

impl From<Place> for Destination {
    fn from(place: Place) -> Self {
        let wish = TlsWish::None;
        Self { wish, place }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Domain(domain) => f.write_str(domain),
            Self::Relay(next_hop) => {
                f.write_str("relay:")?;
                f.write_str(next_hop)
            }
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.wish {
            TlsWish::None => "",
            TlsWish::Required => REQUIRE_TLS,
            TlsWish::Optional => TLS_OPTIONAL,
        })?;
        self.place.fmt(f)
    }
}

/// The text names no destination: it is empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a destination needs a name")]
pub struct EmptyDestination;

impl FromStr for Destination {
    type Err = EmptyDestination;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (wish, place) = match (
            text.strip_prefix(REQUIRE_TLS),
            text.strip_prefix(TLS_OPTIONAL),
        ) {
            (Some(place), _) => (TlsWish::Required, place),
            (None, Some(place)) => (TlsWish::Optional, place),
            (None, None) => (TlsWish::None, text),
        };
        let place = place.parse()?;
        Ok(Self { wish, place })
    }
}

impl FromStr for Place {
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

    fn domain(name: &str) -> Place {
        Place::Domain(name.to_owned())
    }

    #[test]
    fn a_destination_survives_its_text_form() {
        let relay = Place::Relay("[::1]:2526".to_owned());
        for (destination, text) in [
            (Place::Local.into(), "local"),
            (domain("example.org").into(), "example.org"),
            (domain("[192.0.2.1]").into(), "[192.0.2.1]"),
            (relay.clone().into(), "relay:[::1]:2526"),
            (
                domain("example.org").with(TlsWish::Required),
                "requiretls:example.org",
            ),
            (
                relay.with(TlsWish::Optional),
                "tlsoptional:relay:[::1]:2526",
            ),
        ] {
            assert_eq!(destination.to_string(), text);
            assert_eq!(text.parse::<Destination>(), Ok(destination));
        }
        assert!("".parse::<Destination>().is_err());
        assert!("requiretls:".parse::<Destination>().is_err());
        assert_eq!(
            Place::Local.with(TlsWish::Required),
            Destination::from(Place::Local)
        );
        let wished = domain("example.org").with(TlsWish::Required);
        assert_eq!(wished.place, domain("example.org"));
        assert_eq!(wished.wish, TlsWish::Required);
    }

    /// Listings page by this order: without wishes, then REQUIRETLS, then `TLS-Required: No`.
    #[test]
    fn destinations_are_listed_by_wish_and_then_by_place() {
        let texts = [
            "local",
            "b.example",
            "relay:a:25",
            "requiretls:a.example",
            "requiretls:relay:a:25",
            "tlsoptional:a.example",
        ];
        let listed = texts.map(|text| text.parse::<Destination>().unwrap());
        assert!(listed.is_sorted());
    }

    /// A prefix counts once, in front: what follows names a place, whatever it looks like.
    #[test]
    fn wishes_do_not_nest() {
        let twice = "requiretls:tlsoptional:a.example";
        let parsed = twice.parse::<Destination>().unwrap();
        assert_eq!(parsed.wish, TlsWish::Required);
        assert_eq!(parsed.place, domain("tlsoptional:a.example"));
        assert_eq!(parsed.to_string(), twice);
    }
}
