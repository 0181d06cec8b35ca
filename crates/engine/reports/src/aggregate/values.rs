//! The values of an aggregate report.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::words::{Alignment, AuthWord, Discovery, Disposition, Override};

/// A DMARC aggregate report: what a receiver saw of the mail that has a domain in its From field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aggregate {
    /// The organization that reports.
    pub organization: String,
    /// Its address.
    pub email: String,
    /// Further contact, such as an address on the web.
    pub contact: Option<String>,
    /// The identifier of the report, unique for the domain.
    pub id: String,
    /// The beginning of the period, in seconds since 1970.
    pub begin: u64,
    /// The end of the period, in seconds since 1970.
    pub end: u64,
    /// Errors that the receiver found, such as in the policy record.
    pub errors: Vec<String>,
    /// Name and version of the program that wrote the report.
    pub generator: Option<String>,
    /// The policy that was found.
    pub policy: Policy,
    /// The messages, counted by source and results.
    pub records: Vec<Record>,
    /// Values outside the standard that were read as the default of their element. Not written.
    pub oddities: u32,
}

/// The policy as published (RFC 9990 section 3.1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policy {
    /// The domain with the record, in lower case.
    pub domain: String,
    /// How the record was found.
    pub discovery: Option<Discovery>,
    /// The policy for the domain.
    pub domain_policy: Disposition,
    /// The policy for subdomains.
    pub subdomain_policy: Option<Disposition>,
    /// The policy for subdomains that do not exist.
    pub nonexistent_policy: Option<Disposition>,
    /// The options of failure reports.
    pub failure_options: Option<String>,
    /// The alignment of DKIM.
    pub dkim_alignment: Option<Alignment>,
    /// The alignment of SPF.
    pub spf_alignment: Option<Alignment>,
    /// Whether the policy is tested only.
    pub testing: Option<bool>,
}

/// A count of messages with equal source and results.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Record {
    /// The client's address; an IPv4-mapped one as IPv4.
    pub source: IpAddr,
    /// The messages.
    pub count: u64,
    /// What the receiver did.
    pub disposition: Disposition,
    /// Whether a valid DKIM signature is of an aligned domain.
    pub dkim_aligned: bool,
    /// Whether SPF passed for an aligned domain.
    pub spf_aligned: bool,
    /// Why the disposition is not the policy.
    pub reasons: Vec<Reason>,
    /// The domain in From, in lower case.
    pub header_from: String,
    /// The domain of the reverse-path; empty for the null reverse-path.
    pub envelope_from: Option<String>,
    /// The domain of the recipient.
    pub envelope_to: Option<String>,
    /// The results of DKIM.
    pub dkim: Vec<Dkim>,
    /// The results of SPF.
    pub spf: Vec<Spf>,
}

impl Record {
    /// Whether DMARC passed.
    #[must_use]
    pub const fn is_aligned(&self) -> bool {
        self.dkim_aligned || self.spf_aligned
    }
}

/// Why a receiver did not follow the policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reason {
    /// The kind.
    pub kind: Override,
    /// A text for people.
    pub comment: Option<String>,
}

/// The result of a DKIM signature.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dkim {
    /// The domain that signed.
    pub domain: String,
    /// The selector of its key.
    pub selector: Option<String>,
    /// The result.
    pub result: AuthWord,
    /// A text for people.
    pub text: Option<String>,
}

/// A result of SPF.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spf {
    /// The domain that was checked.
    pub domain: String,
    /// Whether the domain is of the HELO name, as in reports before RFC 9990, and not of the reverse-path.
    pub is_helo: bool,
    /// The result.
    pub result: AuthWord,
    /// A text for people.
    pub text: Option<String>,
}
