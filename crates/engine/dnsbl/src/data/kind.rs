//! The formats of files.

use std::fmt;
use std::str::FromStr;

/// The format of a file: a dataset type of rbldnsd(8), or a list of networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IPv4 addresses, networks and ranges; the entry of the smallest block of whole octets wins.
    Ip4Set,
    /// IPv4 networks; the longest prefix wins.
    Ip4Trie,
    /// Single IPv4 addresses with one value.
    Ip4TSet,
    /// IPv6 networks; the longest prefix wins.
    Ip6Trie,
    /// IPv6 networks of 64 bits with one value, and exclusions of single addresses.
    Ip6TSet,
    /// Domain names, with wildcards.
    DnSet,
    /// Records of any name.
    Generic,
    /// Several datasets in one file, each for subzones.
    Combined,
    /// One IPv4 or IPv6 address, network or range a line, without values, as many lists are published.
    Cidr,
}

impl Kind {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Ip4Set,
        Self::Ip4Trie,
        Self::Ip4TSet,
        Self::Ip6Trie,
        Self::Ip6TSet,
        Self::DnSet,
        Self::Generic,
        Self::Combined,
        Self::Cidr,
    ];

    /// Whether entries are IPv6 addresses alone.
    pub(super) const fn is_ipv6(self) -> bool {
        matches!(self, Self::Ip6Trie | Self::Ip6TSet)
    }

    /// The name of the format: rbldnsd's word for the dataset type, or `cidr`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ip4Set => "ip4set",
            Self::Ip4Trie => "ip4trie",
            Self::Ip4TSet => "ip4tset",
            Self::Ip6Trie => "ip6trie",
            Self::Ip6TSet => "ip6tset",
            Self::DnSet => "dnset",
            Self::Generic => "generic",
            Self::Combined => "combined",
            Self::Cidr => "cidr",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {}; found {found:?}", Kind::ALL.map(Kind::name).join(", "))]
pub struct UnknownKind {
    found: String,
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownKind {
            found: name.to_owned(),
        })
    }
}
