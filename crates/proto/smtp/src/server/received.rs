//! The trace header that the host puts before a message (RFC 5321 section 4.4).

use vere_units::Timestamp;

use crate::address::{DomainOrLiteral, ForwardPath};

use super::message::SessionInfo;

/// Octets of a header line to stay below (RFC 5322 section 2.1.1).
const LINE_OCTETS: usize = 78;

/// Makes the `Received:` field for a message, folded, with CRLF after each line.
///
/// The recipient is to be given only when there is one: others must not learn of each other. The text
/// is ASCII unless the recipient or the client's name are not.
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
        Some(helo) => field.word(&format!("from {helo}")),
        None => field.word(&format!("from {literal}")),
    }
    match &session.name {
        Some(name) => field.word(&format!("({name} {literal})")),
        None => field.word(&format!("({literal})")),
    }
    field.word(&format!("by {hostname}"));
    field.word(&format!("with {}", session.protocol));
    if let Some(tls) = &session.tls {
        field.word(&format!("({} {})", tls.version, tls.cipher));
    }
    field.word(&format!("id {id}"));
    if let Some(path) = for_recipient {
        field.word(&format!("for {path}"));
    }
    // Registered by RFC 6710 among the Additional-Registered-Clauses.
    if let Some(priority) = session.priority {
        field.word(&format!("priority {priority}"));
    }
    field.finish(&timestamp.rfc5322())
}

/// The client's address as a literal; one that is IPv4 in IPv6 as IPv4.
fn literal(session: &SessionInfo) -> String {
    use crate::address::AddressLiteral::{V4, V6};
    let literal = match session.address.ip().to_canonical() {
        std::net::IpAddr::V4(address) => V4(address),
        std::net::IpAddr::V6(address) => V6(address),
    };
    DomainOrLiteral::Literal(literal).to_string()
}

/// A header field that goes on in the next line before a word that does not fit.
struct Folded {
    text: Vec<u8>,
    line: usize,
}

impl Folded {
    fn new(name: &str) -> Self {
        Self {
            text: Vec::from(name),
            line: name.len(),
        }
    }

    fn word(&mut self, word: &str) {
        if self.line.saturating_add(word.len()).saturating_add(1) > LINE_OCTETS {
            self.text.extend_from_slice(b"\r\n\t");
            self.line = 1;
        } else {
            self.text.push(b' ');
            self.line = self.line.saturating_add(1);
        }
        // Nothing that came from outside may end the line.
        self.text.extend(word.bytes().map(|octet| {
            if octet.is_ascii_control() {
                b'?'
            } else {
                octet
            }
        }));
        self.line = self.line.saturating_add(word.len());
    }

    fn finish(mut self, date: &str) -> Vec<u8> {
        self.text.push(b';');
        self.line = self.line.saturating_add(1);
        self.word(date);
        self.text.extend_from_slice(b"\r\n");
        self.text
    }
}

/// Counts the `Received:` fields in a message's header, up to `max`: so many servers it has passed
/// (RFC 5321 section 6.3).
///
/// Reads the header only, up to the first empty line, and stops at `max`.
#[must_use]
pub fn count_received(message: &[u8], max: usize) -> usize {
    const NAME: &[u8] = b"received";
    let mut count = 0_usize;
    let mut rest = message;
    while count < max && !rest.is_empty() && !rest.starts_with(b"\r\n") {
        if let Some((name, value)) = rest.split_at_checked(NAME.len())
            && name.eq_ignore_ascii_case(NAME)
            && value.trim_ascii_start().starts_with(b":")
        {
            count = count.saturating_add(1);
        }
        let Some(end) = memchr::memchr(b'\n', rest) else {
            break;
        };
        rest = rest.get(end.saturating_add(1)..).unwrap_or_default();
    }
    count
}
