//! The values of a TLS report.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use vere_units::Timestamp;

use super::outcome::{TlsFailureKind, TlsPolicyKind};

/// A TLS report: how a sender's connections to the hosts of a domain were secured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsReport {
    /// The organization that reports.
    pub organization: String,
    /// Its contact.
    pub contact: String,
    /// The identifier of the report.
    pub id: String,
    /// The beginning of the period, to the second.
    pub begin: Timestamp,
    /// The end of the period, to the second.
    pub end: Timestamp,
    /// Counts by policy.
    pub policies: Vec<TlsPolicy>,
}

/// The sessions under a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsPolicy {
    /// The kind of policy.
    pub kind: TlsPolicyKind,
    /// The lines of the policy, or the records of DANE.
    pub lines: Vec<String>,
    /// The domain that mail was sent to, in lower case.
    pub domain: String,
    /// The patterns of MX hosts of an MTA-STS policy.
    pub mx: Vec<String>,
    /// Sessions with the wanted security.
    pub successes: u64,
    /// Sessions without.
    pub failures: u64,
    /// The failures by kind and hosts.
    pub details: Vec<TlsFailure>,
}

/// Failures of a kind at a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct TlsFailure {
    /// The kind.
    pub kind: TlsFailureKind,
    /// The address that sent.
    pub sender: Option<IpAddr>,
    /// The host that was tried, in lower case.
    pub mx: Option<String>,
    /// The name in that host's greeting.
    pub helo: Option<String>,
    /// That host's address.
    pub address: Option<IpAddr>,
    /// The sessions.
    pub sessions: u64,
    /// Where to find more.
    pub information: Option<String>,
    /// A code or text of the sender.
    pub reason: Option<String>,
}
