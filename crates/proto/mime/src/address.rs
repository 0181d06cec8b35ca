//! Lists of addresses (RFC 5322 section 3.4), for ENVELOPE and for envelopes of SMTP: octets are kept, nothing is
//! decoded.
//!
//! ```text
//! address-list   = (address *("," address))
//! address        = mailbox / group
//! mailbox        = [phrase] "<" [route ":"] addr-spec ">" / addr-spec
//! group          = phrase ":" [address-list] ";"
//! addr-spec      = local-part "@" (domain / domain-literal)
//! domain-literal = "[" *dtext "]"
//! ```
//!
//! The parser makes a single pass over any input: octets outside the grammar become part of the surrounding text. A
//! `;` outside a group separates addresses too.

use memchr::memmem;

use crate::header::unfold;
use crate::{ADDRESSES_MAX, COMMENT_DEPTH_MAX};

/// As many octets of a field as that many long addresses take.
const LIST_OCTETS_MAX: usize = ADDRESSES_MAX * 128;

/// An address in the terms of RFC 9051 section 7.5.2. A group begins with an entry that has a mailbox and no host,
/// and ends with an entry without both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// The phrase, quoting removed, or the comment behind a bare address.
    pub name: Option<Vec<u8>>,
    /// The source route.
    pub route: Option<Vec<u8>>,
    /// The local part, quoting removed; of the beginning of a group, its name.
    pub mailbox: Option<Vec<u8>>,
    /// The domain.
    pub host: Option<Vec<u8>>,
}

/// The treatment of the quotes around a local part or a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// The quotes are removed: the content is the text.
    Removed,
    /// The quotes are kept, so that the text can be parsed as an addr-spec.
    Kept,
}

/// An address, or the beginning or end of a group.
#[derive(Debug)]
enum Entry {
    Mailbox(Mailbox),
    /// The beginning of a group with a name.
    Group(Vec<u8>),
    GroupEnd,
}

/// One address.
#[derive(Debug)]
struct Mailbox {
    name: Option<Vec<u8>>,
    route: Option<Vec<u8>>,
    /// Local part, `@` and domain; without `@`, the text in the same place.
    text: Vec<u8>,
    /// Where in `text` the last `@` outside quotes is.
    at: Option<usize>,
}

/// The entry under construction.
#[derive(Debug, Default)]
struct Reading {
    /// Words of the phrase or of a bare address.
    text: Vec<u8>,
    /// Where in `text` the last `@` outside quotes is.
    at: Option<usize>,
    /// Whether a blank came since the last word.
    blank: bool,
    comment: Option<Vec<u8>>,
    angle: Option<Angle>,
}

/// The text between `<` and `>`.
#[derive(Debug, Default)]
struct Angle {
    text: Vec<u8>,
    at: Option<usize>,
    route: Option<Vec<u8>>,
    /// Whether the `>` was read; text behind `>` belongs to no address.
    closed: bool,
}

impl Reading {
    fn push(&mut self, octet: u8) {
        let in_angle = self.angle.is_some();
        let blank = std::mem::take(&mut self.blank);
        let (text, at) = match &mut self.angle {
            Some(angle) if angle.closed => return,
            Some(angle) => (&mut angle.text, angle.at),
            None => (&mut self.text, self.at),
        };
        // Blanks beside an `@` are not part of the address, nor are blanks beside a dot outside a phrase.
        let begins = text.is_empty() || at.is_some_and(|at| at.saturating_add(1) == text.len());
        let joins = (in_angle || at.is_some()) && (octet == b'.' || text.ends_with(b"."));
        if blank && !begins && !joins {
            text.push(b' ');
        }
        text.push(octet);
    }

    fn at_sign(&mut self) {
        self.blank = false;
        let (text, at) = match &mut self.angle {
            Some(angle) if angle.closed => return,
            Some(angle) => (&mut angle.text, &mut angle.at),
            None => (&mut self.text, &mut self.at),
        };
        *at = Some(text.len());
        text.push(b'@');
    }

    /// Whether the last octet of the address is an `@`.
    fn is_before_domain(&self) -> bool {
        let (text, at) = match &self.angle {
            Some(angle) => (&angle.text, angle.at),
            None => (&self.text, self.at),
        };
        at.is_some_and(|at| at.saturating_add(1) == text.len())
    }

    /// Whether a separator may end the address here: the address is complete, or not begun.
    fn may_end(&self) -> bool {
        match &self.angle {
            Some(angle) => angle.closed,
            None => self.at.is_some() || self.text.is_empty(),
        }
    }

    /// The address read so far, if any.
    fn finish(&mut self) -> Option<Entry> {
        let reading = std::mem::take(self);
        let Some(angle) = reading.angle else {
            let mailbox = Mailbox {
                name: reading.comment,
                route: None,
                text: reading.text,
                at: reading.at,
            };
            return (!mailbox.text.is_empty()).then_some(Entry::Mailbox(mailbox));
        };
        let name = Some(reading.text).filter(|text| !text.is_empty());
        Some(Entry::Mailbox(Mailbox {
            name: name.or(reading.comment),
            route: angle.route,
            text: angle.text,
            at: angle.at,
        }))
    }
}

impl Mailbox {
    fn host(&self) -> Option<&[u8]> {
        self.text.get(self.at?.saturating_add(1)..)
    }
}

impl From<Entry> for Address {
    fn from(entry: Entry) -> Self {
        match entry {
            Entry::Mailbox(mut mailbox) => {
                let host = mailbox.host().unwrap_or_default().to_vec();
                mailbox.text.truncate(mailbox.at.unwrap_or(usize::MAX));
                Self {
                    name: mailbox.name,
                    route: mailbox.route,
                    mailbox: Some(mailbox.text),
                    // The host is set even if empty: an entry without a host would begin a group.
                    host: Some(host),
                }
            }
            Entry::Group(name) => Self {
                mailbox: Some(name),
                ..Self::default()
            },
            Entry::GroupEnd => Self::default(),
        }
    }
}

/// The list in the value of a field, unfolded to one line and cut at the length limit.
pub(crate) fn list_of(value: &[u8]) -> Vec<u8> {
    unfold(value.get(..LIST_OCTETS_MAX).unwrap_or(value))
}

/// Parses a list in one line; returns at most [`ADDRESSES_MAX`] addresses.
#[must_use]
pub fn addresses(list: &[u8]) -> Vec<Address> {
    let entries = List::of(list, Quotes::Removed);
    entries.take(ADDRESSES_MAX).map(Address::from).collect()
}

/// Returns the addresses in the value of a field, folded or not, in the form of SMTP: with quotes, without names,
/// comments, source routes and blanks. The number is not bounded, because each address is a recipient.
///
/// An address without a domain and a malformed address are returned as written, so that the caller's error can quote
/// the text. U+FFFD, which no address contains, replaces octets outside UTF-8.
#[must_use]
pub fn addr_specs(value: &[u8]) -> Vec<String> {
    let text = |entry| match entry {
        Entry::Mailbox(mailbox) => Some(mailbox.text).filter(|text| !text.is_empty()),
        Entry::Group(_) | Entry::GroupEnd => None,
    };
    List::of(&unfold(value), Quotes::Kept)
        .filter_map(text)
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .collect()
}

/// For a list in one line, `mailbox@host` of each address whose written form differs: quotes, comments or blanks
/// come between the parts.
pub(crate) fn respelled(list: &[u8]) -> Vec<Vec<u8>> {
    let mut entries = List::of(list, Quotes::Removed);
    let mut start = 0;
    let all = std::iter::from_fn(|| {
        let entry = entries.next()?;
        let written = list.get(start..entries.read()).unwrap_or_default();
        start = entries.read();
        Some((entry, written))
    });
    let of = |(entry, written): (Entry, &[u8])| match entry {
        Entry::Mailbox(mailbox) => {
            mailbox.host().filter(|host| !host.is_empty())?;
            let is_written = memmem::find(written, &mailbox.text).is_some();
            (!is_written).then_some(mailbox.text)
        }
        Entry::Group(_) | Entry::GroupEnd => None,
    };
    all.take(ADDRESSES_MAX).filter_map(of).collect()
}

/// A list in one line, read entry by entry.
#[derive(Debug)]
struct List<'a> {
    octets: std::slice::Iter<'a, u8>,
    len: usize,
    quotes: Quotes,
    reading: Reading,
    in_group: bool,
    /// Whether a group ended together with the last address.
    group_ended: bool,
}

impl<'a> List<'a> {
    fn of(list: &'a [u8], quotes: Quotes) -> Self {
        Self {
            octets: list.iter(),
            len: list.len(),
            quotes,
            reading: Reading::default(),
            in_group: false,
            group_ended: false,
        }
    }

    /// Number of octets read: the position behind the last address, where the next address begins.
    fn read(&self) -> usize {
        self.len.saturating_sub(self.octets.as_slice().len())
    }

    /// Processes an octet, and returns the entry that the octet completes.
    fn take(&mut self, octet: u8) -> Option<Entry> {
        let reading = &mut self.reading;
        match octet {
            b'"' => quoted(&mut self.octets, reading, self.quotes),
            b'(' => {
                let comment = comment(&mut self.octets.by_ref().copied());
                reading.comment = Some(comment).filter(|text| !text.is_empty());
                reading.blank = true;
            }
            b'[' if reading.is_before_domain() => literal(&mut self.octets, reading),
            b'<' if reading.angle.is_none() => {
                reading.blank = false;
                reading.angle = Some(Angle::default());
            }
            b'@' => reading.at_sign(),
            b'>' if let Some(angle) = &mut reading.angle => angle.closed = true,
            b':' => return self.colon(),
            b';' if self.in_group => {
                (self.in_group, self.group_ended) = (false, true);
                return self.reading.finish().or_else(|| self.group_end());
            }
            b';' if reading.may_end() => return reading.finish(),
            b',' => match &mut reading.angle {
                // A route may have several hosts.
                Some(angle) if !angle.closed && angle.text.starts_with(b"@") => {
                    angle.text.push(b',');
                }
                _ => return reading.finish(),
            },
            b' ' | b'\t' => reading.blank = true,
            octet => reading.push(octet),
        }
        None
    }

    /// The end of a route, or of a group's name.
    fn colon(&mut self) -> Option<Entry> {
        match &mut self.reading.angle {
            Some(angle) if angle.closed => None,
            Some(angle) => {
                angle.route = Some(std::mem::take(&mut angle.text));
                angle.at = None;
                None
            }
            None => {
                self.in_group = true;
                Some(Entry::Group(std::mem::take(&mut self.reading).text))
            }
        }
    }

    fn group_end(&mut self) -> Option<Entry> {
        std::mem::take(&mut self.group_ended).then_some(Entry::GroupEnd)
    }
}

impl Iterator for List<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some(end) = self.group_end() {
            return Some(end);
        }
        while let Some(octet) = self.octets.next() {
            if let Some(entry) = self.take(*octet) {
                return Some(entry);
            }
        }
        self.group_ended = std::mem::take(&mut self.in_group);
        self.reading.finish().or_else(|| self.group_end())
    }
}

/// Reads up to the closing quote.
fn quoted(octets: &mut std::slice::Iter<'_, u8>, reading: &mut Reading, quotes: Quotes) {
    let mark = |octet, reading: &mut Reading| {
        if quotes == Quotes::Kept {
            reading.push(octet);
        }
    };
    mark(b'"', reading);
    while let Some(octet) = octets.next() {
        match octet {
            b'"' => return mark(b'"', reading),
            b'\\' => {
                mark(b'\\', reading);
                octets
                    .next()
                    .into_iter()
                    .for_each(|octet| reading.push(*octet));
            }
            octet => reading.push(*octet),
        }
    }
}

/// Reads up to the closing bracket.
fn literal(octets: &mut std::slice::Iter<'_, u8>, reading: &mut Reading) {
    reading.push(b'[');
    for octet in octets {
        reading.push(*octet);
        if *octet == b']' {
            return;
        }
    }
}

/// Reads up to the closing parenthesis; comments within are left out.
fn comment(octets: &mut impl Iterator<Item = u8>) -> Vec<u8> {
    let mut text = Vec::new();
    let mut depth = 1_usize;
    while let Some(octet) = octets.next() {
        match octet {
            b'(' if depth < COMMENT_DEPTH_MAX => depth = depth.saturating_add(1),
            b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b'\\' => text.extend(octets.next().filter(|_| depth == 1)),
            _ if depth == 1 => text.push(octet),
            _ => {}
        }
    }
    text.trim_ascii().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(address: &Address) -> String {
        let part = |part: &Option<Vec<u8>>| match part {
            None => "NIL".to_owned(),
            Some(octets) => format!("{:?}", String::from_utf8_lossy(octets)),
        };
        let Address {
            name,
            route,
            mailbox,
            host,
        } = address;
        format!(
            "({} {} {} {})",
            part(name),
            part(route),
            part(mailbox),
            part(host)
        )
    }

    fn check(list: &str, expected: &str) {
        let found: Vec<_> = addresses(list.as_bytes()).iter().map(text).collect();
        assert_eq!(found.join(""), expected, "{list}");
    }

    #[test]
    fn mailboxes() {
        check("a@b.c", r#"(NIL NIL "a" "b.c")"#);
        check(
            "Terry Gray <gray@cac.washington.edu>, x@y",
            r#"("Terry Gray" NIL "gray" "cac.washington.edu")(NIL NIL "x" "y")"#,
        );
        check(
            r#""Joe \"Q\" <x>, Public" <joe@h>"#,
            r#"("Joe \"Q\" <x>, Public" NIL "joe" "h")"#,
        );
        check(
            "=?utf-8?q?J=C3=B8?=  X <j@h>",
            r#"("=?utf-8?q?J=C3=B8?= X" NIL "j" "h")"#,
        );
        check(
            "joe@h (Joe (the) Public)",
            r#"("Joe  Public" NIL "joe" "h")"#,
        );
        check(r#""a b"@h"#, r#"(NIL NIL "a b" "h")"#);
        check("<@x,@y:joe@h>", r#"(NIL "@x,@y" "joe" "h")"#);
        check(
            "<a@h> :x@y, <b@h> <c@h>, <@d@h>, e",
            r#"(NIL NIL "a" "h")(NIL NIL "b" "h")(NIL NIL "@d" "h")(NIL NIL "e" "")"#,
        );
        check("<>", r#"(NIL NIL "" "")"#);
        check("a (x) @ (y) h", r#"("y" NIL "a" "h")"#);
        check("undisclosed", r#"(NIL NIL "undisclosed" "")"#);
        check(", ,", "");
        check("<a b . c @h . d>", r#"(NIL NIL "a b.c" "h.d")"#);
        check("J. Q. Public <a@h>", r#"("J. Q. Public" NIL "a" "h")"#);
    }

    #[test]
    fn what_is_in_brackets_behind_an_at_sign_is_a_domain() {
        check(
            "u@[IPv6:2001:db8::1], <v@ [192.0.2.1]>",
            r#"(NIL NIL "u" "[IPv6:2001:db8::1]")(NIL NIL "v" "[192.0.2.1]")"#,
        );
        check(
            "[note: x] <a@h>",
            r#"(NIL NIL "[note" NIL)("x]" NIL "a" "h")(NIL NIL NIL NIL)"#,
        );
        check("u@[never, closed", r#"(NIL NIL "u" "[never, closed")"#);
    }

    /// Some programs write a `;` where a `,` belongs.
    #[test]
    fn a_semicolon_behind_an_address_ends_it() {
        check(
            "a@h; B <b@h>; c@h",
            r#"(NIL NIL "a" "h")("B" NIL "b" "h")(NIL NIL "c" "h")"#,
        );
        check("Doe; J <j@h>", r#"("Doe; J" NIL "j" "h")"#);
        check(
            "g:a@h;; <b;c@h>",
            r#"(NIL NIL "g" NIL)(NIL NIL "a" "h")(NIL NIL NIL NIL)(NIL NIL "b;c" "h")"#,
        );
    }

    #[test]
    fn every_form_of_an_address_is_found_as_smtp_has_it() {
        for (value, expected) in [
            ("a@b.example", &["a@b.example"][..]),
            (
                "root, Alice <a@b>,\r\n \"Doe, J.\" <j@d>",
                &["root", "a@b", "j@d"],
            ),
            ("Friends: a@b, c@d; , e@f", &["a@b", "c@d", "e@f"]),
            ("undisclosed-recipients:;", &[]),
            ("a@b (work (not) \\) home), (only a comment)", &["a@b"]),
            ("\"odd, \\\"name\\\"\"@b", &["\"odd, \\\"name\\\"\"@b"]),
            ("Old <@x,@y:a@b>, p @ q . r", &["a@b", "p@q.r"]),
            ("u@[IPv6:2001:db8::1], <>", &["u@[IPv6:2001:db8::1]"]),
            ("a@b; \"c;d\"@e; <f\r\n\t@ g>", &["a@b", "\"c;d\"@e", "f@g"]),
            ("<\"a . b\" @c>", &["\"a . b\"@c"]),
            // Malformed addresses are left for the caller to reject.
            ("John Doe, a@", &["John Doe", "a@"]),
            ("a@b c@d, <a b@c>", &["a@b c@d", "a b@c"]),
            ("\"never closed, a@b", &["\"never closed, a@b"]),
            ("", &[]),
        ] {
            assert_eq!(addr_specs(value.as_bytes()), expected, "{value}");
        }
        assert_eq!(addr_specs(b"\xff@b"), ["\u{FFFD}@b"]);
        let many = "a@b,".repeat(ADDRESSES_MAX + 1);
        assert_eq!(addr_specs(many.as_bytes()).len(), ADDRESSES_MAX + 1);
        assert_eq!(addresses(many.as_bytes()).len(), ADDRESSES_MAX);
    }

    #[test]
    fn addresses_that_are_not_written_in_one_piece_are_spelled_anew() {
        let check = |list: &str, expected: &[&str]| {
            let found = respelled(list.as_bytes());
            let found: Vec<_> = found
                .iter()
                .map(|one| String::from_utf8_lossy(one))
                .collect();
            assert_eq!(found, expected, "{list}");
        };
        check("a@b.c, Joe <joe@h>, <@x:route@h>", &[]);
        check(
            "<user-from (comment)@ (comment) domain.org>",
            &["user-from@domain.org"],
        );
        // Each is looked for in its own part of the list alone.
        check(
            "a @h, a@h, g:b@ h;, \"c\"@h, d(x)@h",
            &["a@h", "b@h", "c@h", "d@h"],
        );
        check("a@h, a @h", &["a@h"]);
        check("g: a @h", &["a@h"]);
        check("undisclosed (x), Group:;, a @, @ b", &["@b"]);
        check("", &[]);
    }

    #[test]
    fn groups() {
        check(
            "A Group:Ed <joe@where.test>,jd@h; x@y",
            r#"(NIL NIL "A Group" NIL)("Ed" NIL "joe" "where.test")(NIL NIL "jd" "h")(NIL NIL NIL NIL)(NIL NIL "x" "y")"#,
        );
        check(
            "Undisclosed recipients:;",
            r#"(NIL NIL "Undisclosed recipients" NIL)(NIL NIL NIL NIL)"#,
        );
        check(
            "g: a@b",
            r#"(NIL NIL "g" NIL)(NIL NIL "a" "b")(NIL NIL NIL NIL)"#,
        );
    }
}
