//! SPF (RFC 7208): whether the domain of a sender allows a client to use the domain.
//!
//! [`check`] evaluates the policy of a domain for a [`Session`] and asks for records through [`Dns`], so that the host
//! decides by which resolver, and tests have a DNS of their own. Policies are parsed by the grammar of section 12.
//!
//! Reading order: `policy` (a record as text), `macros` (names in policies), `evaluation` (check_host).
//!
//! The bounds of section 4.6.4 hold: 10 terms that ask the DNS, 10 exchangers of an `mx`, 10 names of a `ptr`, 2 terms
//! with a void lookup, each of which counts once. A check asks 122 questions at most. The time of a check is the host's to bound.
//!
//! Not covered: explanations (`exp=`, whose text would be the sender's in replies of ours), the Received-SPF field. The host
//! checks the HELO identity beside a reverse-path (section 2.3) by a session with the null reverse-path.
//!
//! ```
//! # use std::net::IpAddr;
//! use vere_spf::{Dns, Family, Session, SpfResult, Unavailable, check};
//!
//! struct OneRecord;
//!
//! impl Dns for OneRecord {
//!     async fn texts(&self, _: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
//!         Ok(vec![b"v=spf1 ip4:192.0.2.0/24 -all".to_vec()])
//!     }
//! #    async fn addresses(&self, _: &str, _: Family) -> Result<Vec<IpAddr>, Unavailable> {
//! #        Ok(Vec::new())
//! #    }
//! #    async fn exchangers(&self, _: &str) -> Result<Vec<String>, Unavailable> {
//! #        Ok(Vec::new())
//! #    }
//! #    async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
//! #        Ok(Vec::new())
//! #    }
//!     // and the other questions
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let session = |client: &str| Session {
//!     client: client.parse().unwrap(),
//!     helo: "mx.example.org",
//!     reverse_path: "ann@example.org",
//! };
//! assert_eq!(check(&OneRecord, session("192.0.2.7")).await, SpfResult::Pass);
//! assert_eq!(check(&OneRecord, session("198.51.100.7")).await, SpfResult::Fail);
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

mod evaluation;
mod macros;
mod name;
mod policy;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

pub use evaluation::check;

/// The DNS as SPF needs it. Names are given without a trailing dot; U-labels are possible in them. An empty list stands for
/// a name without such records and for a name that does not exist.
pub trait Dns {
    /// Looks up TXT records, the strings of each joined (section 3.3).
    ///
    /// # Errors
    /// [`Unavailable`]
    fn texts(&self, name: &str) -> impl Future<Output = Result<Vec<Vec<u8>>, Unavailable>>;

    /// Looks up A or AAAA records.
    ///
    /// # Errors
    /// [`Unavailable`]
    fn addresses(
        &self,
        name: &str,
        family: Family,
    ) -> impl Future<Output = Result<Vec<IpAddr>, Unavailable>>;

    /// Looks up the hosts of MX records.
    ///
    /// # Errors
    /// [`Unavailable`]
    fn exchangers(&self, name: &str) -> impl Future<Output = Result<Vec<String>, Unavailable>>;

    /// Looks up the names of PTR records.
    ///
    /// # Errors
    /// [`Unavailable`]
    fn names(&self, address: IpAddr) -> impl Future<Output = Result<Vec<String>, Unavailable>>;
}

/// The lookup failed for now: a time-out, or a code of error other than "no such name" (section 2.6.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the DNS does not answer")
    }
}

impl std::error::Error for Unavailable {}

/// The family of the addresses that are looked up: that of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

/// The session that a policy is evaluated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// The address of the client; an IPv4-mapped address counts as the IPv4 address.
    pub client: IpAddr,
    /// The argument of HELO or EHLO.
    pub helo: &'a str,
    /// The reverse-path without angle brackets. The null reverse-path has `postmaster` at the HELO name as its identity
    /// (section 2.4).
    pub reverse_path: &'a str,
}

/// The result of an evaluation (RFC 7208 section 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpfResult {
    /// The domain has no policy, or there is no domain.
    None,
    /// The policy makes no statement about the client.
    Neutral,
    /// The policy allows the client.
    Pass,
    /// The policy does not allow the client.
    Fail,
    /// The policy probably does not allow the client.
    SoftFail,
    /// The DNS did not answer.
    TempError,
    /// The policy cannot be understood.
    PermError,
}

impl SpfResult {
    /// Returns the word of RFC 7208 section 2.6.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Neutral => "neutral",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::SoftFail => "softfail",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

impl fmt::Display for SpfResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
