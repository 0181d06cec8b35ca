//! What is counted, and what the lines of a file say.

use serde::{Deserialize, Serialize};
use vere_units::Timestamp;

use crate::aggregate::{Policy, Record};
use crate::tls::{TlsFailure, TlsPolicyKind};

/// Milliseconds of a day.
pub(super) const MILLIS_PER_DAY: u64 = 86_400_000;

/// The day of a time, in UTC: days since 1970.
#[must_use]
pub const fn day_of(at: Timestamp) -> u64 {
    at.as_millis() / MILLIS_PER_DAY
}

/// The name of the file of a day: `2026-05-04.counts`.
#[must_use]
pub fn file_name(day: u64) -> String {
    let at = Timestamp::from_millis(day.saturating_mul(MILLIS_PER_DAY));
    let (year, month, day) = at.date();
    format!("{year:04}-{month:02}-{day:02}.counts")
}

/// The kind of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A DMARC aggregate report.
    Dmarc,
    /// A TLS report.
    Tls,
}

/// A message that was checked by DMARC. The record has the count 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmarcSeen {
    /// The policy that was found.
    pub policy: Policy,
    /// The results.
    pub record: Record,
}

/// A session with a host of a domain, or one that did not come about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct TlsSeen {
    /// The domain of the recipients.
    pub domain: String,
    /// The policy that counted.
    pub kind: TlsPolicyKind,
    /// The lines of the policy, or the TLSA records.
    pub lines: Vec<String>,
    /// The patterns of MX hosts of an MTA-STS policy.
    pub mx: Vec<String>,
    /// Why it failed, without a number of sessions; `None` for a success.
    pub failure: Option<TlsFailure>,
}

/// A row of the counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Row {
    /// A record by the domain of its policy; its count is 0.
    Dmarc(String, Record),
    /// Sessions.
    Tls(TlsSeen),
}

/// What a line of a file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Entry {
    /// The policy of a domain; the last one counts.
    Policy(Policy),
    /// Further messages or sessions of a row.
    Count(u64, Row),
    /// Messages and sessions beyond the bound of rows.
    Beyond(u64),
    /// The report about a domain was handed over to be sent.
    Sent(Kind, String),
}
