//! Serialises one event as a line of JSON into a buffer, without allocating.

use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use super::Event;

/// Longest address, queue name or `Message-ID` kept, in octets before escaping.
///
/// A mailbox has at most 254 octets in a path (RFC 5321 section 4.5.3.1.3); a `Message-ID` above
/// this bound is cut, and so is a search for it.
pub const ADDRESS_OCTETS_MAX: usize = 320;
/// Longest reply text kept, in octets before escaping.
pub const TEXT_OCTETS_MAX: usize = 512;
/// Longest word about encryption or SPF kept, in octets before escaping.
const WORD_OCTETS_MAX: usize = 64;
/// Longest list of rules kept, in octets before escaping.
pub const RULES_OCTETS_MAX: usize = 2_048;
/// Longest facts kept, in octets of base64, which needs no escape. Longer facts are not written: their beginning says nothing.
pub const FACTS_OCTETS_MAX: usize = 8_192;
/// Upper bound of a line: every text field at its limit and each octet escaped.
///
/// An escape takes six octets (`\u001b`): 6 * (5 * 320 + 2 * 512 + 5 * 64 + 2,048), facts, and numbers.
pub const LINE_OCTETS_MAX: usize = 40 * 1024;

/// Appends `event` to `out` as a line.
pub(super) fn line(out: &mut Vec<u8>, event: &Event<'_>) {
    out.extend_from_slice(b"{\"t\":");
    decimal(out, event.at.as_millis());
    out.extend_from_slice(b",\"id\":\"");
    out.extend_from_slice(&event.id.characters());
    out.extend_from_slice(b"\",\"ev\":\"");
    out.extend_from_slice(event.kind.name().as_bytes());
    out.push(b'"');
    who(out, event);
    outcome(out, event);
    out.extend_from_slice(b"}\n");
}

/// The line that says how many events the buffer could not hold.
pub(super) fn lost_line(out: &mut Vec<u8>, count: u64) {
    out.extend_from_slice(b"{\"lost\":");
    decimal(out, count);
    out.extend_from_slice(b"}\n");
}

fn who(out: &mut Vec<u8>, event: &Event<'_>) {
    text(out, "queue", event.queue, ADDRESS_OCTETS_MAX);
    text(out, "rcpt", event.rcpt, ADDRESS_OCTETS_MAX);
    text(out, "reverse_path", event.reverse_path, ADDRESS_OCTETS_MAX);
    text(out, "message_id", event.message_id, ADDRESS_OCTETS_MAX);
    number(out, "size", event.size);
    number(out, "recipients", event.recipients);
    if let Some(address) = event.peer {
        key(out, "peer");
        out.push(b'"');
        socket(out, address);
        out.push(b'"');
    }
    text(out, "account", event.account, ADDRESS_OCTETS_MAX);
    text(out, "tls", event.tls, WORD_OCTETS_MAX);
    text(out, "spf", event.spf, WORD_OCTETS_MAX);
    text(out, "spf_helo", event.spf_helo, WORD_OCTETS_MAX);
    text(out, "verdict", event.verdict, WORD_OCTETS_MAX);
    text(out, "score", event.score, WORD_OCTETS_MAX);
    text(out, "rules", event.rules, RULES_OCTETS_MAX);
    let facts = event.facts.filter(|facts| facts.len() <= FACTS_OCTETS_MAX);
    text(out, "facts", facts, FACTS_OCTETS_MAX);
}

fn outcome(out: &mut Vec<u8>, event: &Event<'_>) {
    number(out, "code", event.code);
    text(out, "reply", event.reply, TEXT_OCTETS_MAX);
    text(out, "remote", event.remote, TEXT_OCTETS_MAX);
    number(out, "duration_ms", event.duration.map(millis));
    number(out, "attempt", event.attempt);
    number(out, "next", event.next.map(|t| t.as_millis()));
    quoted(out, "related", event.related);
}

fn display(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a vector cannot fail, and the types shown here have no failing Display.
    let _ = write!(out, "{value}");
}

/// Appends a number, without the way through the formatter.
fn decimal(out: &mut Vec<u8>, number: u64) {
    let (mut digits, mut rest, mut first) = ([0; 20], number, 20);
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

fn socket(out: &mut Vec<u8>, address: SocketAddr) {
    let SocketAddr::V4(address) = address else {
        return display(out, address);
    };
    for (octet, behind) in address.ip().octets().into_iter().zip(*b"...:") {
        decimal(out, octet.into());
        out.push(behind);
    }
    decimal(out, address.port().into());
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn key(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(out: &mut Vec<u8>, name: &str, value: Option<impl Into<u64>>) {
    if let Some(value) = value {
        key(out, name);
        decimal(out, value.into());
    }
}

fn quoted(out: &mut Vec<u8>, name: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        key(out, name);
        out.push(b'"');
        display(out, value);
        out.push(b'"');
    }
}

fn text(out: &mut Vec<u8>, name: &str, value: Option<&str>, octets_max: usize) {
    if let Some(value) = value {
        key(out, name);
        out.push(b'"');
        escape(out, cut(value, octets_max));
        out.push(b'"');
    }
}

/// The longest prefix of `value` of at most `octets_max` octets that ends between characters.
pub(crate) fn cut(value: &str, octets_max: usize) -> &str {
    if value.len() <= octets_max {
        return value;
    }
    let mut end = octets_max;
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    &value[..end]
}

/// Whether `value` can be written without escapes. Nearly every value can; the loop checks all octets without
/// an early exit, so that the compiler handles many octets at once.
pub(crate) fn is_plain(value: &str) -> bool {
    let plain = |octet: u8| (b' '..=b'~').contains(&octet) & (octet != b'"') & (octet != b'\\');
    value.bytes().fold(true, |all, octet| all & plain(octet))
}

/// Appends `value` as the inside of a JSON string that is safe to print on a terminal.
///
/// Besides the escapes that JSON demands, C0 and C1 controls, line separators and the characters that change
/// the direction of text are written as `\u` escapes.
pub(crate) fn escape(out: &mut Vec<u8>, value: &str) {
    if is_plain(value) {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    for c in value.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if steers_terminal(c) => {
                // All these characters lie in the basic plane: a single escape, no surrogates.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn steers_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
