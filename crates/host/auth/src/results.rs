//! The field Authentication-Results (RFC 8601 section 2.2), ours and those of others.
//!
//! ```text
//! authres-header-field = "Authentication-Results:" authres-payload
//! authres-payload      = [CFWS] authserv-id [ CFWS authres-version ] ( no-result / 1*resinfo ) [CFWS] CRLF
//! authserv-id          = value
//! resinfo              = [CFWS] ";" methodspec [ CFWS reasonspec ] [ CFWS 1*propspec ]
//! propspec             = ptype [CFWS] "." [CFWS] property [CFWS] "=" pvalue
//! pvalue               = [CFWS] ( ( value / [ [ local-part ] "@" ] domain-name ) [CFWS]
//! value                = token / quoted-string
//! ```

use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::Range;

use vere_mime::Field;

use crate::arc::Arc;
use crate::dkim::Signed;
use crate::dmarc::Dmarc;
use crate::dns::Session;
use crate::iprev::Iprev;
use crate::signature::Algorithm;

/// The name of the field.
const NAME: &str = "Authentication-Results";
/// Most octets of a line, if its words allow that (RFC 5322 section 2.1.1).
const LINE_OCTETS_MAX: usize = 78;
/// Most octets of a value; the rest is left out. The longest valid one is an address of 320 octets.
const VALUE_OCTETS_MAX: usize = 320;
/// Most comments in each other; a field with more is ours or nobody's.
const COMMENT_DEPTH_MAX: usize = 32;

/// The results for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The signatures of DKIM, in the order of the message.
    pub dkim: Vec<Signed>,
    /// The number of signatures that were not checked.
    pub ignored: usize,
    /// The chain of ARC.
    pub arc: Arc,
    /// The evaluation of DMARC.
    pub dmarc: Dmarc,
    /// The reverse name of the client.
    pub iprev: Iprev,
}

impl Authentication {
    /// Writes the field Authentication-Results, with its line end, in the name of a service (authserv-id), which is a domain name.
    #[must_use]
    pub fn field(&self, service: &str, session: Session<'_>) -> Vec<u8> {
        field(self, service, session)
    }
}

/// Writes the field, with its last line end: printable ASCII in lines of 998 octets at most. The name of the service is a domain name.
fn field(authentication: &Authentication, service: &str, session: Session<'_>) -> Vec<u8> {
    let mut field = Folded::new(NAME);
    field.word(&value(service));
    spf(&mut field, session);
    for signed in &authentication.dkim {
        dkim(&mut field, signed);
    }
    if authentication.ignored > 0 {
        let ignored = format!("({} more signatures ignored)", authentication.ignored);
        field.word(&ignored);
    }
    arc(&mut field, &authentication.arc, session.client);
    dmarc(&mut field, &authentication.dmarc);
    let iprev = &authentication.iprev;
    field.method("iprev", iprev.result.as_str());
    if let Some(name) = &iprev.name {
        field.comment(name);
    }
    field.property("policy.iprev", &session.client.to_canonical().to_string());
    field.finish()
}

fn spf(field: &mut Folded, session: Session<'_>) {
    if let Some(result) = session.spf {
        field.method("spf", result.as_str());
        match session.reverse_path {
            "" => field.property("smtp.helo", session.helo),
            path => field.property("smtp.mailfrom", path),
        }
    }
    if let Some(result) = session.spf_helo {
        field.method("spf", result.as_str());
        field.property("smtp.helo", session.helo);
    }
}

fn dkim(field: &mut Folded, signed: &Signed) {
    field.method("dkim", signed.result().as_str());
    if let Some(fault) = signed.fault {
        field.comment(&fault.to_string());
    }
    if signed.is_testing {
        field.comment("testing");
    }
    let properties = [
        ("header.d", signed.domain.as_deref()),
        ("header.i", signed.identity.as_deref()),
        ("header.s", signed.selector.as_deref()),
        ("header.a", signed.algorithm.map(Algorithm::as_str)),
        (
            "header.b",
            Some(signed.value.as_str()).filter(|value| !value.is_empty()),
        ),
    ];
    for (name, value) in properties {
        if let Some(value) = value {
            field.property(name, value);
        }
    }
}

fn arc(field: &mut Folded, arc: &Arc, client: IpAddr) {
    field.method("arc", arc.as_str());
    match arc {
        // A message without a chain has no property.
        Arc::None => return,
        Arc::Pass { sets, sealer, .. } => field.comment(&format!("i={sets} d={sealer}")),
        Arc::Fail(fault) => field.comment(&fault.to_string()),
    }
    field.property("smtp.remote-ip", &client.to_canonical().to_string());
}

fn dmarc(field: &mut Folded, dmarc: &Dmarc) {
    field.method("dmarc", dmarc.result.as_str());
    match (dmarc.policy, dmarc.applied, dmarc.fault) {
        (Some(policy), Some(applied), _) if policy != applied => {
            field.comment(&format!("p={policy} t=y applied={applied}"));
        }
        (Some(policy), ..) => field.comment(&format!("p={policy}")),
        (None, _, Some(fault)) => field.comment(fault),
        (None, _, None) => {}
    }
    if let Some(domain) = &dmarc.domain {
        field.property("header.from", domain);
    }
}

/// A field under construction, which begins a new line before a word that does not fit.
#[derive(Debug)]
struct Folded {
    text: String,
    /// Octets of the last line.
    line: usize,
}

impl Folded {
    fn new(name: &str) -> Self {
        let text = format!("{name}:");
        Self {
            line: text.len(),
            text,
        }
    }

    fn word(&mut self, word: &str) {
        let longer = self.line.saturating_add(1).saturating_add(word.len());
        if longer > LINE_OCTETS_MAX {
            self.text.push_str("\r\n\t");
            self.line = 1;
        } else {
            self.text.push(' ');
            self.line = self.line.saturating_add(1);
        }
        self.text.push_str(word);
        self.line = self.line.saturating_add(word.len());
    }

    fn method(&mut self, method: &str, result: &str) {
        self.text.push_str(";\r\n\t");
        self.line = 1;
        let _ = write!(self.text, "{method}={result}");
        self.line = self
            .line
            .saturating_add(method.len())
            .saturating_add(result.len())
            .saturating_add(1);
    }

    /// Writes a comment of words that are printable ASCII; parentheses are replaced.
    fn comment(&mut self, text: &str) {
        let text = text.replace('(', "[").replace(')', "]");
        self.word(&format!("({text})"));
    }

    fn property(&mut self, name: &str, text: &str) {
        self.word(&format!("{name}={}", value(text)));
    }

    fn finish(mut self) -> Vec<u8> {
        self.text.push_str("\r\n");
        self.text.into_bytes()
    }
}

/// Whether an octet is one of a token (RFC 2045 section 5.1).
const fn is_token(octet: u8) -> bool {
    octet.is_ascii_graphic()
        && !matches!(
            octet,
            b'(' | b')'
                | b'<'
                | b'>'
                | b'@'
                | b','
                | b';'
                | b':'
                | b'\\'
                | b'"'
                | b'/'
                | b'['
                | b']'
                | b'?'
                | b'='
        )
}

/// A text as a value: a token or an address as it is, any other text as a quoted string. Octets outside printable ASCII become `?`.
fn value(text: &str) -> String {
    let shown = |character: char| match character {
        ' '..='~' => character,
        _ => '?',
    };
    let text: String = text.chars().take(VALUE_OCTETS_MAX).map(shown).collect();
    let is_word = |word: &str| word.bytes().all(is_token);
    let is_plain = match text.rsplit_once('@') {
        Some((local, domain)) => {
            let atoms = local.is_empty() || local.split('.').all(|atom| !atom.is_empty());
            atoms && is_word(local) && is_word(domain) && !domain.is_empty()
        }
        None => is_word(&text) && !text.is_empty(),
    };
    if is_plain {
        return text;
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

/// Finds the fields Authentication-Results of a message that claim to be written by a service, which no message of the outside may have
/// (RFC 8601 section 5). The ranges are those of whole fields in the message, in order.
///
/// A field whose service cannot be read is found as well: another reader may find the name in the field.
#[must_use]
pub fn foreign_fields(message: &[u8], service: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut begin = 0_usize;
    for field in vere_mime::fields(message) {
        let end = begin.saturating_add(field.raw.len());
        if is_foreign(&field, service) {
            ranges.push(begin..end);
        }
        begin = end;
    }
    ranges
}

fn is_foreign(field: &Field<'_>, service: &str) -> bool {
    if !field.is(NAME) {
        return false;
    }
    let without_dot = |name: &[u8]| name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase();
    let name = service_of(field.value);
    name.is_none_or(|name| without_dot(&name) == without_dot(service.as_bytes()))
}

/// Reads the service: `[CFWS] ( token / quoted-string )`; `None` for a field without one.
fn service_of(value: &[u8]) -> Option<Vec<u8>> {
    let rest = behind_comments(value)?;
    let name: Vec<u8> = match rest.strip_prefix(b"\"") {
        Some(mut rest) => {
            let mut name = Vec::new();
            loop {
                match rest {
                    [b'"', ..] => break name,
                    [b'\\', octet, behind @ ..] | [octet, behind @ ..] => {
                        // Line ends are no part of a folded text.
                        if !matches!(octet, b'\r' | b'\n') {
                            name.push(*octet);
                        }
                        rest = behind;
                    }
                    [] => return None,
                }
            }
        }
        None => {
            let octets = rest.iter().copied();
            // Names outside ASCII are possible (RFC 8601 section 2.2, RFC 6532).
            octets
                .take_while(|octet| is_token(*octet) || !octet.is_ascii())
                .collect()
        }
    };
    (!name.is_empty()).then_some(name)
}

/// Skips white space and comments; `None` for a comment without an end.
fn behind_comments(value: &[u8]) -> Option<&[u8]> {
    let mut rest = value;
    let mut depth = 0_usize;
    loop {
        rest = match (depth, rest) {
            (_, [b'(', behind @ ..]) => {
                depth = depth.saturating_add(1);
                behind
            }
            (0, [octet, behind @ ..]) if octet.is_ascii_whitespace() => behind,
            (0, rest) => return Some(rest),
            (_, [b')', behind @ ..]) => {
                depth = depth.saturating_sub(1);
                behind
            }
            (_, [b'\\', _, behind @ ..] | [_, behind @ ..]) => behind,
            (_, []) => return None,
        };
        if depth > COMMENT_DEPTH_MAX {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_tokens_addresses_or_quoted() {
        for (text, expected) in [
            ("example.org", "example.org"),
            ("ann@example.org", "ann@example.org"),
            ("@example.org", "@example.org"),
            ("a.b+c@example.org", "a.b+c@example.org"),
            ("2001:db8::1", "\"2001:db8::1\""),
            ("aB/+c=", "\"aB/+c=\""),
            ("", "\"\""),
            ("a@", "\"a@\""),
            ("a b\"\\@x.example", "\"a b\\\"\\\\@x.example\""),
            ("x\r\nBcc: y", "\"x??Bcc: y\""),
            ("\u{fc}@x.example", "\"?@x.example\""),
            ("[192.0.2.1]", "\"[192.0.2.1]\""),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
        assert_eq!(value(&"x".repeat(5_000)).len(), VALUE_OCTETS_MAX);
    }

    #[test]
    fn fields_that_claim_our_name_are_found() {
        let found = |value: &str| {
            let message = format!(
                "A: b\r\nauthentication-results : {value}\r\nC: d\r\n\r\n{NAME}: mx.example; none\r\n"
            );
            match foreign_fields(message.as_bytes(), "MX.example")[..] {
                [] => false,
                [ref range] => {
                    assert_eq!(
                        &message[range.clone()],
                        format!("authentication-results : {value}\r\n")
                    );
                    true
                }
                _ => panic!("several"),
            }
        };
        for value in [
            "mx.example; none",
            "Mx.Example;spf=pass",
            "mx.example 1; none",
            "mx.example/1; none",
            "mx.example",
            "mx.example.; none",
            "\"mx.example\"; none",
            "\"m\\x.example\" 1; none",
            "(a \\) (b)\r\n c) \r\n\tmx.example (d); none",
            "(without end mx.example; none",
            "\"mx.example",
            "; none",
            "",
            "@mx.example; none",
        ] {
            assert!(found(value), "{value}");
        }
        for value in [
            "mx.example.org; none",
            "a.mx.example; none",
            "other (mx.example); none",
            "\"x mx.example\"; none",
        ] {
            assert!(!found(value), "{value}");
        }
        assert!(found(&format!("{}mx.example; none", "(".repeat(100))));
        assert_eq!(
            foreign_fields(
                b"X-Authentication-Results: mx.example; none\r\n",
                "mx.example"
            ),
            []
        );
    }
}
