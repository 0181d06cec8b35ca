//! The questions of an evaluation to its host, and the session that it is about.

use std::net::IpAddr;

use vere_spf::{Family, SpfResult, Unavailable};

/// The DNS as this crate needs it. Names are given in lower case, with A-labels, without a trailing dot. An empty list stands for a name
/// without such records and for a name that does not exist.
pub trait Dns {
    /// Looks up TXT records, the strings of each joined (RFC 6376 section 3.6.2.2).
    ///
    /// # Errors
    /// [`Unavailable`]
    fn texts(&self, name: &str) -> impl Future<Output = Result<Vec<Vec<u8>>, Unavailable>>;

    /// Looks up whether a name exists, with records of any type or names below (RFC 8020).
    ///
    /// # Errors
    /// [`Unavailable`]
    fn exists(&self, name: &str) -> impl Future<Output = Result<bool, Unavailable>>;

    /// Looks up A or AAAA records.
    ///
    /// # Errors
    /// [`Unavailable`]
    fn addresses(
        &self,
        name: &str,
        family: Family,
    ) -> impl Future<Output = Result<Vec<IpAddr>, Unavailable>>;

    /// Looks up the names of PTR records.
    ///
    /// # Errors
    /// [`Unavailable`]
    fn names(&self, address: IpAddr) -> impl Future<Output = Result<Vec<String>, Unavailable>>;
}

/// The session in which a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// The address of the client; an IPv4-mapped address counts as the IPv4 address.
    pub client: IpAddr,
    /// The argument of HELO or EHLO.
    pub helo: &'a str,
    /// The reverse-path without angle brackets; empty for the null reverse-path.
    pub reverse_path: &'a str,
    /// The result of SPF for the reverse-path, or for the HELO name of a null reverse-path; `None` where SPF was not asked.
    pub spf: Option<SpfResult>,
    /// The result of SPF for the HELO name beside a reverse-path.
    pub spf_helo: Option<SpfResult>,
}

impl<'a> Session<'a> {
    /// The domain that the result of SPF is about (RFC 7208 section 2.4).
    pub(crate) fn spf_domain(&self) -> Option<&'a str> {
        match self.reverse_path {
            "" => Some(self.helo),
            path => path.rsplit_once('@').map(|(_, domain)| domain),
        }
    }
}
