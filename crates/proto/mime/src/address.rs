//! Lists of addresses (RFC 5322 section 3.4), for ENVELOPE: octets are kept, nothing is decoded.
//!
//! ```text
//! address-list = (address *("," address))
//! address      = mailbox / group
//! mailbox      = [phrase] "<" [route ":"] addr-spec ">" / addr-spec
//! group        = phrase ":" [address-list] ";"
//! ```
//!
//! One pass forwards, whatever comes: what fits no rule becomes part of the text around it.

use memchr::memmem;

use crate::header::unfold;
use crate::{ADDRESSES_MAX, COMMENT_DEPTH_MAX};

/// As many octets of a field as that many long addresses take.
const LIST_OCTETS_MAX: usize = ADDRESSES_MAX * 128;

/// An address in the terms of RFC 9051 section 7.5.2. A group begins with one that has a mailbox and
/// no host, and ends with one that has neither.
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

/// What is being read.
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

/// What is between `<` and `>`.
#[derive(Debug, Default)]
struct Angle {
    text: Vec<u8>,
    at: Option<usize>,
    route: Option<Vec<u8>>,
    /// Whether the `>` came; what stands behind it is of no address.
    closed: bool,
}

impl Reading {
    fn push(&mut self, octet: u8) {
        match &mut self.angle {
            Some(angle) if angle.closed => {}
            Some(angle) => angle.text.push(octet),
            None => {
                // Blanks beside an `@` are none of the address.
                let begins = self.text.is_empty()
                    || self
                        .at
                        .is_some_and(|at| at.saturating_add(1) == self.text.len());
                if std::mem::take(&mut self.blank) && !begins {
                    self.text.push(b' ');
                }
                self.text.push(octet);
            }
        }
    }

    fn at_sign(&mut self) {
        match &mut self.angle {
            Some(angle) if angle.closed => {}
            Some(angle) => {
                angle.at = Some(angle.text.len());
                angle.text.push(b'@');
            }
            None => {
                self.blank = false;
                self.at = Some(self.text.len());
                self.text.push(b'@');
            }
        }
    }

    /// The address that was read, if there is one.
    fn finish(&mut self) -> Option<Address> {
        let reading = std::mem::take(self);
        if let Some(angle) = reading.angle {
            let (mailbox, host) = split(angle.text, angle.at);
            let name = Some(reading.text).filter(|text| !text.is_empty());
            return Some(Address {
                name: name.or(reading.comment),
                route: angle.route,
                mailbox: Some(mailbox),
                // With a host, even when it is empty: without one it would begin a group.
                host: Some(host.unwrap_or_default()),
            });
        }
        if reading.text.is_empty() {
            return None;
        }
        let (mailbox, host) = split(reading.text, reading.at);
        Some(Address {
            name: reading.comment,
            route: None,
            mailbox: Some(mailbox),
            host: Some(host.unwrap_or_default()),
        })
    }
}

fn split(mut text: Vec<u8>, at: Option<usize>) -> (Vec<u8>, Option<Vec<u8>>) {
    match at {
        None => (text, None),
        Some(at) => {
            let host = text.get(at.saturating_add(1)..).map(<[u8]>::to_vec);
            text.truncate(at);
            (text, host)
        }
    }
}

/// The list that the value of a field is, in one line, as much of it as is read.
pub(crate) fn list_of(value: &[u8]) -> Vec<u8> {
    unfold(value.get(..LIST_OCTETS_MAX).unwrap_or(value))
}

/// Reads a list in one line; at most [`ADDRESSES_MAX`] of it.
#[must_use]
pub fn addresses(list: &[u8]) -> Vec<Address> {
    let (found, _) = addresses_with_ends(list);
    found
}

/// Of a list in one line `mailbox@host` of each address in which these are not written one behind the other:
/// quotes, comments or blanks are among them.
pub(crate) fn respelled(list: &[u8]) -> Vec<Vec<u8>> {
    let (found, ends) = addresses_with_ends(list);
    let mut start = 0;
    let of = |(address, end): (Address, usize)| {
        let written = list.get(start..end);
        start = end;
        let host = address.host.filter(|host| !host.is_empty())?;
        let spelled = [address.mailbox?, host].join(&b'@');
        memmem::find(written?, &spelled)
            .is_none()
            .then_some(spelled)
    };
    found.into_iter().zip(ends).filter_map(of).collect()
}

/// Addresses, and where in the list each of them ends and the next begins.
fn addresses_with_ends(list: &[u8]) -> (Vec<Address>, Vec<usize>) {
    let mut found = Vec::new();
    let mut ends = Vec::new();
    let mut reading = Reading::default();
    let mut in_group = false;
    let mut octets = list.iter();
    while let Some(octet) = octets.next() {
        match *octet {
            b'"' => quoted(&mut octets.by_ref().copied(), &mut reading),
            b'(' => {
                let comment = comment(&mut octets.by_ref().copied());
                reading.comment = Some(comment).filter(|text| !text.is_empty());
                reading.blank = true;
            }
            b'<' if reading.angle.is_none() => reading.angle = Some(Angle::default()),
            b'@' => reading.at_sign(),
            b'>' if let Some(angle) = &mut reading.angle => angle.closed = true,
            b':' => match &mut reading.angle {
                Some(angle) if angle.closed => {}
                Some(angle) => {
                    angle.route = Some(std::mem::take(&mut angle.text));
                    angle.at = None;
                }
                None => {
                    in_group = true;
                    let group = std::mem::take(&mut reading);
                    found.push(Address {
                        mailbox: Some(group.text),
                        ..Address::default()
                    });
                }
            },
            b';' if in_group => {
                found.extend(reading.finish());
                found.push(Address::default());
                in_group = false;
            }
            b',' => match &mut reading.angle {
                // A route may have several hosts.
                Some(angle) if !angle.closed && angle.text.starts_with(b"@") => {
                    angle.text.push(b',')
                }
                _ => found.extend(reading.finish()),
            },
            b' ' | b'\t' => reading.blank = true,
            octet => reading.push(octet),
        }
        let rest = octets.as_slice().len();
        ends.resize(found.len(), list.len().saturating_sub(rest));
        if found.len() >= ADDRESSES_MAX {
            return (found, ends);
        }
    }
    found.extend(reading.finish());
    if in_group {
        found.push(Address::default());
    }
    ends.resize(found.len(), list.len());
    (found, ends)
}

/// Reads up to the closing quote.
fn quoted(octets: &mut impl Iterator<Item = u8>, reading: &mut Reading) {
    while let Some(octet) = octets.next() {
        match octet {
            b'"' => return,
            b'\\' => octets
                .next()
                .into_iter()
                .for_each(|octet| reading.push(octet)),
            _ => reading.push(octet),
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
