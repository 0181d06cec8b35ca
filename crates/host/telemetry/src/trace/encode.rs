//! Serialises one event as a line of JSON into a buffer, without allocating.

use std::fmt::Display;
use std::io::Write as _;

use super::Event;

/// Longest address, queue name or `Message-ID` kept, in octets before escaping.
///
/// A mailbox has at most 254 octets in a path (RFC 5321 section 4.5.3.1.3); a `Message-ID` above
/// this bound is cut, and so is a search for it.
pub const ADDRESS_OCTETS_MAX: usize = 320;
/// Longest reply text kept, in octets before escaping.
pub const TEXT_OCTETS_MAX: usize = 512;
/// Upper bound of one line: every text field at its bound and each octet escaped.
///
/// An escape takes six octets for one (`\u001b`): 6 * (5 * 320 + 2 * 512 + 64), and numbers.
pub const LINE_OCTETS_MAX: usize = 20 * 1024;

/// Appends `event` to `out` as one line.
pub(super) fn line(out: &mut Vec<u8>, event: &Event<'_>) {
    out.extend_from_slice(b"{\"t\":");
    display(out, event.at.as_millis());
    out.extend_from_slice(b",\"id\":\"");
    display(out, event.id);
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
    display(out, count);
    out.extend_from_slice(b"}\n");
}

fn who(out: &mut Vec<u8>, event: &Event<'_>) {
    text(out, "queue", event.queue, ADDRESS_OCTETS_MAX);
    text(out, "rcpt", event.rcpt, ADDRESS_OCTETS_MAX);
    text(out, "reverse_path", event.reverse_path, ADDRESS_OCTETS_MAX);
    text(out, "message_id", event.message_id, ADDRESS_OCTETS_MAX);
    number(out, "size", event.size);
    number(out, "recipients", event.recipients);
    quoted(out, "peer", event.peer);
    text(out, "account", event.account, ADDRESS_OCTETS_MAX);
    text(out, "tls", event.tls, 64);
}

fn outcome(out: &mut Vec<u8>, event: &Event<'_>) {
    number(out, "code", event.code);
    text(out, "reply", event.reply, TEXT_OCTETS_MAX);
    text(out, "remote", event.remote, TEXT_OCTETS_MAX);
    number(out, "duration_ms", event.duration.map(|d| d.as_millis()));
    number(out, "attempt", event.attempt);
    number(out, "next", event.next.map(|t| t.as_millis()));
    quoted(out, "related", event.related);
}

fn display(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a vector cannot fail, and the types shown here have no failing Display.
    let _ = write!(out, "{value}");
}

fn key(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(out: &mut Vec<u8>, name: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        key(out, name);
        display(out, value);
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

/// Appends `value` as the inside of a JSON string that is safe to print on a terminal.
///
/// Besides what JSON demands, C0 and C1 controls, line separators and the characters that turn the
/// direction of text are written as `\u` escapes.
pub(crate) fn escape(out: &mut Vec<u8>, value: &str) {
    if value
        .bytes()
        .all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\')
    {
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
                // All of these lie in the basic plane: one escape, no surrogates.
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
