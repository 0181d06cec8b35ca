//! The message on standard input, made fit for the mail: line ends, header, recipients.

use vere_mime::{Field, addr_specs, fields};

/// Octets of a line beyond which the line is broken (RFC 5322 section 2.1.1).
const LINE_MAX: usize = 998;
/// Removed fields: no recipient may learn of the blind copies.
const BLIND: [&str; 2] = ["bcc", "resent-bcc"];
const RECIPIENT_FIELDS: [&str; 3] = ["to", "cc", "bcc"];
const RESENT_FIELDS: [&str; 3] = ["resent-to", "resent-cc", "resent-bcc"];

/// A message ready to be sent, with CRLF lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Prepared {
    pub(super) octets: Vec<u8>,
    /// The addresses in the header, in order; only the addresses of `Resent-` fields when present.
    pub(super) named: Vec<String>,
    /// Whether the header has a From field.
    pub(super) has_from: bool,
    /// Whether the message has octets beyond ASCII.
    pub(super) eight_bit: bool,
}

/// Makes a message of what a program wrote: lines that end in LF, CRLF or CR, with or without a header.
///
/// NUL octets are dropped, lines that are too long are broken. Unless `dots_are_text`, a line of one dot
/// is the end.
pub(super) fn prepare(input: &[u8], dots_are_text: bool) -> Prepared {
    let text = with_crlf(input, dots_are_text);
    // A line that cannot belong to a header ends it too.
    let fields: Vec<_> = fields(&text).take_while(Field::is_named).collect();
    let octets: usize = fields.iter().map(|field| field.raw.len()).sum();
    let body = &text[octets..];
    let mut out = Prepared::default();
    let resent = fields.iter().any(|field| is_one_of(field, &RESENT_FIELDS));
    let of_interest = if resent {
        RESENT_FIELDS
    } else {
        RECIPIENT_FIELDS
    };
    let author = if resent { "Resent-From" } else { "From" };
    for field in &fields {
        if is_one_of(field, &of_interest) {
            out.named.extend(addr_specs(field.value));
        }
        out.has_from |= field.is(author);
        if !is_one_of(field, &BLIND) {
            out.lines(field.raw);
        }
    }
    if !body.starts_with(b"\r\n") {
        out.line(b"");
    }
    out.lines(body);
    out
}

fn is_one_of(field: &Field<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| field.is(name))
}

impl Prepared {
    /// Takes lines that end with CRLF.
    fn lines(&mut self, text: &[u8]) {
        let lines = text.split_inclusive(|octet| *octet == b'\n');
        lines.for_each(|line| self.line(line.strip_suffix(b"\r\n").unwrap_or(line)));
    }

    fn line(&mut self, line: &[u8]) {
        let kept: Vec<u8> = line.iter().copied().filter(|octet| *octet != 0).collect();
        self.eight_bit |= !kept.is_ascii();
        let mut rest = kept.as_slice();
        while rest.len() > LINE_MAX {
            let (first, behind) = rest.split_at(break_at(rest));
            self.octets.extend_from_slice(first);
            // A space goes on a header field, and can be told from what was there in a body.
            self.octets.extend_from_slice(b"\r\n ");
            rest = behind;
        }
        self.octets.extend_from_slice(rest);
        self.octets.extend_from_slice(b"\r\n");
    }

    /// Puts a field in front.
    pub(super) fn add_field(&mut self, name: &str, value: &str) {
        let field = format!("{name}: {value}\r\n");
        self.eight_bit |= !field.is_ascii();
        self.octets.splice(0..0, field.into_bytes());
    }
}

/// Where a line that is too long is broken: not within a character of UTF-8, and with room for a space.
fn break_at(line: &[u8]) -> usize {
    let most = LINE_MAX - 1;
    let is_continuation = |at: &usize| line.get(*at).is_some_and(|octet| octet & 0xc0 == 0x80);
    let mut at = most;
    while is_continuation(&at) && at > most - 4 {
        at -= 1;
    }
    if is_continuation(&at) { most } else { at }
}

/// The text with CRLF at the end of each line, from behind what mail programs of old put before a message in a mailbox
/// file, up to the dot that ends it.
fn with_crlf(input: &[u8], dots_are_text: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(input.len() + input.len() / 32);
    let mut rest = input;
    while !rest.is_empty() {
        let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let (line, behind) = rest.split_at(end);
        if line == b"." && !dots_are_text {
            break;
        }
        let is_first = rest.len() == input.len();
        if !(is_first && (line.starts_with(b"From ") || line.starts_with(b">From "))) {
            text.extend_from_slice(line);
            text.extend_from_slice(b"\r\n");
        }
        rest = behind
            .strip_prefix(b"\r\n")
            .unwrap_or_else(|| behind.get(1..).unwrap_or_default());
    }
    text
}

/// The value of a From field: the name, quoted or encoded as it needs (RFC 5322 section 3.2.4, RFC 2047
/// section 4.1), and the address.
pub(super) fn from_value(name: &str, address: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let name = name.trim();
    let is_word = |c: char| c.is_ascii_alphanumeric() || " !#$%&'*+-/=?^_`{|}~".contains(c);
    if name.is_empty() {
        format!("<{address}>")
    } else if name.chars().all(is_word) {
        format!("{name} <{address}>")
    } else if name.is_ascii() {
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{quoted}\" <{address}>")
    } else {
        format!("{} <{address}>", encoded_words(name))
    }
}

/// Octets of text in one encoded word, so that the word has at most 75 octets.
const ENCODED_OCTETS_MAX: usize = 45;

fn encoded_words(text: &str) -> String {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if word.len() + c.len_utf8() > ENCODED_OCTETS_MAX {
            words.push(std::mem::take(&mut word));
        }
        word.push(c);
    }
    words.push(word);
    let encode = |word: &String| format!("=?utf-8?B?{}?=", base64(word.as_bytes()));
    words.iter().map(encode).collect::<Vec<_>>().join("\r\n ")
}

fn base64(octets: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(input: &str, dots_are_text: bool) -> String {
        let octets = prepare(input.as_bytes(), dots_are_text).octets;
        String::from_utf8(octets).expect("text")
    }

    #[test]
    fn a_header_is_kept_and_blind_copies_are_taken_out() {
        let input = "To: root,\n Alice <a@b>\nBCC: secret@b,\n\tother@b\nSubject: x\n\nbody\n";
        let prepared = prepare(input.as_bytes(), true);
        assert_eq!(prepared.named, ["root", "a@b", "secret@b", "other@b"]);
        assert!(!prepared.has_from && !prepared.eight_bit);
        assert_eq!(
            prepared.octets,
            b"To: root,\r\n Alice <a@b>\r\nSubject: x\r\n\r\nbody\r\n"
        );
    }

    #[test]
    fn resent_fields_alone_count_when_there_are_any() {
        let input = "From: a\nTo: old@b\nResent-To: new@b\nResent-Bcc: blind@b\n\nx";
        let prepared = prepare(input.as_bytes(), true);
        assert_eq!(prepared.named, ["new@b", "blind@b"]);
        assert!(
            !prepared.has_from,
            "the one who sends it again is to be named"
        );
        assert!(!String::from_utf8_lossy(&prepared.octets).contains("blind"));
    }

    #[test]
    fn text_without_a_header_gets_an_empty_one() {
        assert_eq!(text("hello there\nyou", true), "\r\nhello there\r\nyou\r\n");
        assert_eq!(text("", true), "\r\n");
        assert_eq!(text("Subject: only", true), "Subject: only\r\n\r\n");
        // The line that cannot belong to a header ends it, as everywhere.
        assert_eq!(text("A: b\nno field\n", true), "A: b\r\n\r\nno field\r\n");
        assert_eq!(text("From me Mon\nA: b\n\nx\n", true), "A: b\r\n\r\nx\r\n");
        assert_eq!(text(" x: y\nA: b\n", true), "\r\n x: y\r\nA: b\r\n");
    }

    #[test]
    fn line_ends_of_every_kind_become_crlf_and_nul_goes() {
        assert_eq!(
            text("A: b\r\n\r\na\rb\nc\0d\r\r\n", true),
            "A: b\r\n\r\na\r\nb\r\ncd\r\n\r\n"
        );
    }

    #[test]
    fn a_dot_ends_the_message_unless_it_is_text() {
        let input = "A: b\n\none\n.\ntwo\n";
        assert_eq!(text(input, false), "A: b\r\n\r\none\r\n");
        assert_eq!(text(input, true), "A: b\r\n\r\none\r\n.\r\ntwo\r\n");
    }

    #[test]
    fn long_lines_are_broken_between_characters() {
        let broken = text(&format!("A: b\n\n{}\n", "ö".repeat(1200)), true);
        let body = broken.strip_prefix("A: b\r\n\r\n").expect("the header");
        assert!(body.split("\r\n").all(|line| line.len() <= LINE_MAX));
        assert_eq!(body.replace("\r\n ", "").trim_end(), "ö".repeat(1200));
    }

    #[test]
    fn names_are_quoted_or_encoded_as_they_need() {
        assert_eq!(from_value("", "a@b"), "<a@b>");
        assert_eq!(from_value("Cron Daemon", "a@b"), "Cron Daemon <a@b>");
        assert_eq!(from_value("J. \"X\"", "a@b"), "\"J. \\\"X\\\"\" <a@b>");
        assert_eq!(from_value("Jörg", "a@b"), "=?utf-8?B?SsO2cmc=?= <a@b>");
        assert_eq!(from_value("x\r\nBcc: y", "a@b"), "\"xBcc: y\" <a@b>");
        for line in from_value(&"ö".repeat(80), "a@b").split("\r\n ") {
            assert!(line.len() <= 75 + 6, "{line}");
        }
    }
}
