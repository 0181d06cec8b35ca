//! Reports about authentication and TLS: DMARC aggregate reports (RFC 9990, formerly RFC 7489 appendix C) and TLSRPT (RFC 8460).
//!
//! [`Report::read`] takes the octets of a message or file and gives an [`Aggregate`] or a [`TlsReport`]. Both write themselves as XML
//! and JSON, and [`Mail`] makes the message that carries them. [`Summary`] adds up reports by domain and source, and says what to do.
//! [`Observations`] counts what this system sees itself, by day, in lines for a file that may be cut by a crash; [`Day`] makes reports of
//! the counts.
//!
//! Reports come from strangers. All bounds are in [`bounds`]: octets before and after decompression, records, texts, depth. A document
//! type in XML is an error, so that no entity expands.
//!
//! Own code instead of the module `report` of mail-auth: its readers bound the octets after decompression, but no records or texts, so
//! that 64 MiB of empty elements become gigabytes; an unknown word gives a default without a word about it; it parses messages and zip
//! archives with crates that this project does not use otherwise. XML is parsed by quick-xml, JSON by serde_json, and deflate by flate2.
//!
//! Not covered: failure reports (RFC 9991), sending, and where reports are kept.
//!
//! ```
//! use vere_reports::{Report, ReportError};
//!
//! let xml = "<feedback><report_metadata><org_name>Example</org_name></report_metadata>\
//!     <policy_published><domain>example.org</domain><p>none</p></policy_published>\
//!     <record><row><source_ip>192.0.2.1</source_ip><count>3</count></row></record></feedback>";
//! let Report::Aggregate(report) = Report::read(xml.as_bytes())? else { unreachable!() };
//! assert_eq!((report.policy.domain.as_str(), report.messages()), ("example.org", 3));
//! # Ok::<(), ReportError>(())
//! ```

#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a panic is how a test fails"
    )
)]

mod aggregate;
mod archive;
pub mod bounds;
mod error;
mod mail;
mod message;
mod moment;
mod observe;
mod rua;
mod summary;
mod text;
mod tls;

pub use aggregate::{
    Aggregate, Alignment, AuthWord, Discovery, Disposition, Dkim, Override, Policy, Reason, Record,
    Spf,
};
pub use error::ReportError;
pub use mail::{Mail, MailError, Sender};
pub use message::Report;
pub use moment::read as read_time;
pub use observe::{
    Day, DmarcSeen, Kind, Observations, Reporter, TlsSeen, WHOLE_DAY, day_of, file_name,
};
pub use rua::{Destination, confirmation_name, confirmed, dmarc_destinations, tls_destinations};
pub use summary::{
    DomainRow, Names, PolicyRow, SourceRow, Summary, TlsDomainRow, TlsFailureRow, grouped,
};
pub use tls::{TlsFailure, TlsFailureKind, TlsPolicy, TlsPolicyKind, TlsReport};

#[cfg(test)]
mod tests;
