//! The trace header that the host puts before a message (RFC 5321 section 4.4).

use vere_units::Timestamp;

use crate::address::{DomainOrLiteral, ForwardPath};

use super::message::SessionInfo;

/// Octets of a header line to stay below (RFC 5322 section 2.1.1).
const LINE_OCTETS: usize = 78;

/// Room for most fields.
const FIELD_OCTETS: usize = 256;

/// Makes the `Received:` field for a message, folded, with CRLF after each line.
///
/// Callers pass the recipient only if the message has a single recipient: recipients must not learn
/// of each other. The text is ASCII unless the recipient or the client's name are not.
///
/// ```text
/// Time-stamp-line = "Received:" FWS Stamp CRLF
/// Stamp           = From-domain By-domain Opt-info [CFWS] ";" FWS date-time
/// From-domain     = "FROM" FWS Extended-Domain
/// By-domain       = CFWS "BY" FWS Extended-Domain
/// Opt-info        = [Via] [With] [ID] [For] [Additional-Registered-Clauses]
/// TCP-info        = address-literal / ( Domain FWS address-literal )
/// ```
#[must_use]
pub fn received_header(
    session: &SessionInfo,
    hostname: &str,
    id: &str,
    timestamp: Timestamp,
    for_recipient: Option<&ForwardPath>,
) -> Vec<u8> {
    let literal = literal(session);
    let mut field = Folded::new("Received:");
    match &session.helo {
        Some(DomainOrLiteral::Domain(helo)) => field.word(&["from ", helo.as_str()]),
        Some(helo) => field.word(&["from ", &helo.to_string()]),
        None => field.word(&["from ", &literal]),
    }
    match &session.name {
        Some(name) => field.word(&["(", name, " ", &literal, ")"]),
        None => field.word(&["(", &literal, ")"]),
    }
    field.word(&["by ", hostname]);
    field.word(&["with ", session.protocol.as_str()]);
    if let Some(tls) = &session.tls {
        field.word(&["(", &tls.version, " ", &tls.cipher, ")"]);
    }
    field.word(&["id ", id]);
    if let Some(path) = for_recipient {
        field.word(&["for <", path.as_str(), ">"]);
    }
    // Registered by RFC 6710 among the Additional-Registered-Clauses.
    if let Some(priority) = session.priority {
        field.word(&["priority ", &priority.to_string()]);
    }
    field.finish(&timestamp.rfc5322())
}

/// The client's address as a literal; an IPv4-mapped IPv6 address as IPv4.
fn literal(session: &SessionInfo) -> String {
    use crate::address::AddressLiteral::{V4, V6};
    let literal = match session.address.ip().to_canonical() {
        std::net::IpAddr::V4(address) => V4(address),
        std::net::IpAddr::V6(address) => V6(address),
    };
    DomainOrLiteral::Literal(literal).to_string()
}

/// A header field that continues on the next line before a word that does not fit.
struct Folded {
    text: Vec<u8>,
    line: usize,
}

impl Folded {
    fn new(name: &str) -> Self {
        let mut text = Vec::with_capacity(FIELD_OCTETS);
        text.extend_from_slice(name.as_bytes());
        Self {
            text,
            line: name.len(),
        }
    }

    /// Appends a word that must not be split, given in parts.
    fn word(&mut self, parts: &[&str]) {
        let octets = parts.iter().map(|part| part.len()).sum();
        if self.line.saturating_add(octets).saturating_add(1) > LINE_OCTETS {
            self.text.extend_from_slice(b"\r\n\t");
            self.line = 1;
        } else {
            self.text.push(b' ');
            self.line = self.line.saturating_add(1);
        }
        let begin = self.text.len();
        for part in parts {
            self.text.extend_from_slice(part.as_bytes());
        }
        // Text from outside must not end the line.
        for octet in self.text.get_mut(begin..).unwrap_or_default() {
            if octet.is_ascii_control() {
                *octet = b'?';
            }
        }
        self.line = self.line.saturating_add(octets);
    }

    fn finish(mut self, date: &str) -> Vec<u8> {
        self.text.push(b';');
        self.line = self.line.saturating_add(1);
        self.word(&[date]);
        self.text.extend_from_slice(b"\r\n");
        self.text
    }
}
