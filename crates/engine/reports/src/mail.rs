//! The messages that carry reports (RFC 9990 section 3.5, RFC 8460 section 5.3).
//!
//! ```text
//! Subject: Report Domain: example.org            Report-ID is that of the report, and the Message-ID too: a message that
//!  Submitter: mx.example.net                      is sent again is recognised as the same one
//!  Report-ID: <20260504.example.org@mx.example.net>
//! text/plain                                      a line for people
//! application/gzip, application/tlsrpt+gzip       mx.example.net!example.org!1777852800!1777939199.xml.gz
//! ```

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;
use vere_units::Timestamp;

use crate::bounds::ADDRESS_OCTETS_MAX;
use crate::message::Report;
use crate::text::is_domain;

/// The characters of a line of base64 (RFC 2045 section 6.8).
const BASE64_LINE: usize = 76;

/// Who sends a report, to whom, and when.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// The address in From.
    pub from: &'a str,
    /// The addresses in To.
    pub to: &'a [String],
    /// The domain that submits the report.
    pub submitter: &'a str,
    /// The date of the message.
    pub at: Timestamp,
}

/// The message of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The whole message.
    pub octets: Vec<u8>,
    /// The name of the attached file.
    pub filename: String,
}

/// Why no message can be made: a name of ours or of a stranger that must not stand in a header field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MailError {
    /// An address that is none.
    #[error("expected an address; found \"{0}\"")]
    Address(String),
    /// A domain that is none.
    #[error("expected a domain; found \"{0}\"")]
    Domain(String),
    /// An identifier with other characters than letters, digits and `.!#$%&'*+-/=?^_{|}~@`.
    #[error("expected an identifier of a report; found \"{0}\"")]
    Identifier(String),
}

impl Mail {
    /// Makes the message.
    ///
    /// # Errors
    /// [`MailError`] for an address, domain or identifier that would change the header.
    pub fn of(report: &Report, sender: &Sender<'_>) -> Result<Self, MailError> {
        let domain = report.domain();
        for domain in [domain, sender.submitter] {
            if !is_domain(domain) {
                return Err(MailError::Domain(crate::error::excerpt(domain)));
            }
        }
        for address in sender.to.iter().map(String::as_str).chain([sender.from]) {
            if !is_address(address) {
                return Err(MailError::Address(crate::error::excerpt(address)));
            }
        }
        let (id, begin, end) = match report {
            Report::Aggregate(report) => (&report.id, report.begin, report.end),
            Report::Tls(report) => {
                let seconds = |at: Timestamp| at.as_millis() / 1_000;
                (&report.id, seconds(report.begin), seconds(report.end))
            }
        };
        if !is_identifier(id) {
            return Err(MailError::Identifier(crate::error::excerpt(id)));
        }
        let ending = match report {
            Report::Aggregate(_) => "xml.gz",
            Report::Tls(_) => "json.gz",
        };
        let submitter = sender.submitter;
        let filename = format!("{submitter}!{domain}!{begin}!{end}.{ending}");
        let text = compose(
            report,
            sender,
            &Named {
                domain,
                id,
                filename: &filename,
            },
            &report.packed(),
        );
        Ok(Self {
            octets: text.into_bytes(),
            filename,
        })
    }
}

struct Named<'a> {
    domain: &'a str,
    id: &'a str,
    filename: &'a str,
}

fn compose(report: &Report, sender: &Sender<'_>, named: &Named<'_>, file: &[u8]) -> String {
    let (
        Sender {
            from, submitter, ..
        },
        Named {
            domain,
            id,
            filename,
        },
    ) = (sender, named);
    let message_id = match id.contains('@') {
        true => (*id).to_owned(),
        false => format!("{id}@{submitter}"),
    };
    let tls = matches!(report, Report::Tls(_));
    // No line of base64 and none of the text for people begins with "--".
    let boundary = format!(
        "=_report_{:08x}",
        vere_checksum::crc32(message_id.as_bytes())
    );
    let mut out = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| {
        let _ = write!(out, "{text}\r\n");
    };
    line(format_args!("From: {from}"));
    line(format_args!("To: {}", sender.to.join(",\r\n ")));
    line(format_args!(
        "Subject: Report Domain: {domain}\r\n Submitter: {submitter}\r\n Report-ID: <{id}>"
    ));
    line(format_args!("Date: {}", sender.at.rfc5322()));
    line(format_args!("Message-ID: <{message_id}>"));
    line(format_args!("Auto-Submitted: auto-generated"));
    line(format_args!("MIME-Version: 1.0"));
    if tls {
        line(format_args!("TLS-Report-Domain: {domain}"));
        line(format_args!("TLS-Report-Submitter: {submitter}"));
        // The report about TLS that fails must not fail with it (RFC 8460 section 3, RFC 8689 section 5).
        line(format_args!("TLS-Required: No"));
        line(format_args!(
            "Content-Type: multipart/report; report-type=\"tlsrpt\";\r\n boundary=\"{boundary}\""
        ));
    } else {
        line(format_args!(
            "Content-Type: multipart/mixed; boundary=\"{boundary}\""
        ));
    }
    let (what, media) = match tls {
        true => ("TLS report (RFC 8460)", "application/tlsrpt+gzip"),
        false => ("DMARC aggregate report (RFC 9990)", "application/gzip"),
    };
    line(format_args!("\r\n--{boundary}"));
    line(format_args!(
        "Content-Type: text/plain; charset=us-ascii\r\n"
    ));
    line(format_args!(
        "{what}\r\n\r\nDomain: {domain}\r\nSubmitter: {submitter}\r\nReport-ID: {id}"
    ));
    line(format_args!("\r\n--{boundary}"));
    line(format_args!(
        "Content-Type: {media};\r\n name=\"{filename}\""
    ));
    line(format_args!("Content-Transfer-Encoding: base64"));
    line(format_args!(
        "Content-Disposition: attachment;\r\n filename=\"{filename}\"\r\n"
    ));
    for piece in STANDARD.encode(file).as_bytes().chunks(BASE64_LINE) {
        line(format_args!("{}", String::from_utf8_lossy(piece)));
    }
    line(format_args!("\r\n--{boundary}--"));
    out
}

/// Whether a text is an address of plain form: a dot-atom, `@` and a domain (RFC 5322 section 3.4.1).
pub(crate) fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_local = !local.is_empty() && local.split('.').all(is_atom);
    text.len() <= ADDRESS_OCTETS_MAX && is_local && is_domain(domain)
}

/// Whether a text is an identifier: a dot-atom, or two around `@` (RFC 9990 section 3.5.1).
fn is_identifier(text: &str) -> bool {
    let is_dot_atom = |text: &str| text.split('.').all(is_atom);
    match text.split_once('@') {
        Some((left, right)) => is_dot_atom(left) && is_dot_atom(right),
        None => is_dot_atom(text),
    }
}

fn is_atom(text: &str) -> bool {
    const MARKS: &[u8] = b"!#$%&'*+-/=?^_`{|}~";
    let is_own = |octet: u8| octet.is_ascii_alphanumeric() || MARKS.contains(&octet);
    !text.is_empty() && text.bytes().all(is_own)
}
