//! The trace fields that the host puts before a message (RFC 5321 section 4.4, RFC 7208 section 9.1).

use std::borrow::Cow;

use vere_units::Timestamp;

use crate::address::{DomainOrLiteral, ForwardPath, ReversePath, is_dot_string};

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

/// What a result of SPF is about (RFC 7208 section 9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpfIdentity {
    /// The reverse-path.
    MailFrom,
    /// The name in HELO or EHLO, which stands for the null reverse-path as well.
    Helo,
}

/// Makes the `Received-SPF:` field for a message, folded, with CRLF after each line. The result is a word of RFC 7208
/// section 2.6.
///
/// Deviates: the field has no comment; the pairs say the same, and a comment would repeat a stranger's words.
///
/// ```text
/// header-field   = "Received-SPF:" [CFWS] result FWS [comment FWS] [ key-value-list ] CRLF
/// key-value-list = key-value-pair *( ";" [CFWS] key-value-pair ) [";"]
/// key-value-pair = key [CFWS] "=" ( dot-atom / quoted-string )      ; RFC 7208 section 9.1
/// ```
#[must_use]
pub fn received_spf_header(
    (identity, result): (SpfIdentity, &str),
    session: &SessionInfo,
    reverse_path: &ReversePath,
    hostname: &str,
) -> Vec<u8> {
    let client = session.address.ip().to_canonical().to_string();
    let helo = session.helo.as_ref().map(ToString::to_string);
    let identity = match identity {
        SpfIdentity::MailFrom => "mailfrom",
        SpfIdentity::Helo => "helo",
    };
    let mut field = Folded::new("Received-SPF:");
    field.word(&[result]);
    for (key, value) in [
        ("receiver", hostname),
        ("client-ip", &client),
        ("envelope-from", reverse_path.as_str()),
        ("helo", helo.as_deref().unwrap_or_default()),
    ] {
        field.word(&[key, "=", &value_of(value), ";"]);
    }
    field.word(&["identity=", identity]);
    field.text.extend_from_slice(b"\r\n");
    field.text
}

/// A text of a stranger as `dot-atom / quoted-string` (RFC 5322 sections 3.2.3 and 3.2.4).
fn value_of(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && is_dot_string(text) {
        return Cow::Borrowed(text);
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    Cow::Owned(format!("\"{escaped}\""))
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
