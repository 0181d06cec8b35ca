//! Numbers of the registries: types, classes, response codes.

/// A type of records or of questions (RFC 1035 section 3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type(pub u16);

impl Type {
    /// An IPv4 address (RFC 1035 section 3.4.1).
    pub const A: Self = Self(1);
    /// A name server of a zone (RFC 1035 section 3.3.11).
    pub const NS: Self = Self(2);
    /// The start of a zone (RFC 1035 section 3.3.13).
    pub const SOA: Self = Self(6);
    /// A host for mail (RFC 1035 section 3.3.9).
    pub const MX: Self = Self(15);
    /// Texts (RFC 1035 section 3.3.14).
    pub const TXT: Self = Self(16);
    /// An IPv6 address (RFC 3596 section 2.1).
    pub const AAAA: Self = Self(28);
    /// Options of EDNS (RFC 6891 section 6.1.1).
    pub const OPT: Self = Self(41);
    /// What is there instead of all types (RFC 8482 section 4.2).
    pub const HINFO: Self = Self(13);
    /// A transfer of the changes of a zone (RFC 1995 section 2).
    pub const IXFR: Self = Self(251);
    /// A transfer of a zone (RFC 1035 section 3.2.3).
    pub const AXFR: Self = Self(252);
    /// Records of all types (RFC 1035 section 3.2.3).
    pub const ANY: Self = Self(255);
}

/// A class of records or of questions (RFC 1035 section 3.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class(pub u16);

impl Class {
    /// The Internet (RFC 1035 section 3.2.4).
    pub const IN: Self = Self(1);
    /// Every class, in questions (RFC 1035 section 3.2.5).
    pub const ANY: Self = Self(255);
}

/// A response code (RFC 1035 section 4.1.1); beyond 15 the upper bits are in the OPT record (RFC 6891 section 6.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rcode {
    /// No error, with or without records.
    NoError = 0,
    /// The query cannot be read.
    FormErr = 1,
    /// The server cannot answer for reasons of its own.
    ServFail = 2,
    /// The name does not exist.
    NxDomain = 3,
    /// The kind of query is not implemented.
    NotImp = 4,
    /// The server does not want to answer, such as for a name outside its zones.
    Refused = 5,
    /// The version of EDNS is not known (RFC 6891 section 9).
    BadVers = 16,
}

impl Rcode {
    /// The four bits in the header.
    pub(crate) const fn low(self) -> u8 {
        self as u8 & 0x0f
    }

    /// The eight bits in the OPT record.
    pub(crate) const fn high(self) -> u8 {
        self as u8 >> 4
    }
}
