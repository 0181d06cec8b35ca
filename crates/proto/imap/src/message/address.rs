//! Addresses of header fields (RFC 5322 section 3.4), read as well as they can be.

use super::value::{quoted, skip_comment};

/// An address as ENVELOPE shows it, or a mark of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The display name.
    pub name: Option<Vec<u8>>,
    /// The source route, which nobody writes any more.
    pub route: Option<Vec<u8>>,
    /// The local part; the name of a group where it begins.
    pub mailbox: Option<Vec<u8>>,
    /// The domain; nothing for the marks of a group.
    pub host: Option<Vec<u8>>,
}

/// Reads a list of addresses.
#[must_use]
pub fn parse(field: &[u8]) -> Vec<Address> {
    let mut reader = Reader {
        rest: field,
        ..Reader::default()
    };
    while let Some((&octet, behind)) = reader.rest.split_first() {
        reader.rest = behind;
        reader.octet(octet);
    }
    reader.end_address();
    if reader.in_group {
        reader.addresses.push(Address::default());
    }
    reader.addresses
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a [u8],
    addresses: Vec<Address>,
    /// Words so far, with a space wherever there was space.
    words: Vec<u8>,
    space: bool,
    comment: Option<Vec<u8>>,
    /// What stood between angle brackets.
    angle: Option<Vec<u8>>,
    in_group: bool,
}

impl Reader<'_> {
    fn octet(&mut self, octet: u8) {
        match octet {
            b',' => self.end_address(),
            b':' if !self.in_group && self.angle.is_none() && !self.words.contains(&b'@') => {
                self.in_group = true;
                let name = std::mem::take(&mut self.words);
                self.addresses.push(Address {
                    mailbox: Some(name),
                    ..Address::default()
                });
                self.reset();
            }
            b';' if self.in_group => {
                self.end_address();
                self.in_group = false;
                self.addresses.push(Address::default());
            }
            b'<' => self.angle = Some(self.angle_address()),
            b'(' => {
                let before = self.rest;
                skip_comment(&mut self.rest);
                let length = before.len().saturating_sub(self.rest.len());
                let inside = before.get(..length).unwrap_or_default();
                let inside = inside.strip_suffix(b")").unwrap_or(inside);
                self.comment = Some(super::header::unfold(inside));
            }
            b'"' => {
                self.word_begins();
                quoted(&mut self.rest, &mut self.words);
            }
            b' ' | b'\t' | b'\r' | b'\n' => self.space = true,
            _ => {
                self.word_begins();
                self.words.push(octet);
            }
        }
    }

    fn word_begins(&mut self) {
        if std::mem::take(&mut self.space) && !self.words.is_empty() {
            self.words.push(b' ');
        }
    }

    /// Takes what stands up to `>`, without space.
    fn angle_address(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some((&octet, behind)) = self.rest.split_first() {
            self.rest = behind;
            match octet {
                b'>' => break,
                b'"' => quoted(&mut self.rest, &mut text),
                b'(' => skip_comment(&mut self.rest),
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => text.push(octet),
            }
        }
        text
    }

    fn reset(&mut self) {
        self.words.clear();
        self.space = false;
        self.comment = None;
        self.angle = None;
    }

    fn end_address(&mut self) {
        let words = std::mem::take(&mut self.words);
        let non_empty = |text: Vec<u8>| Some(text).filter(|text| !text.is_empty());
        let address = match self.angle.take() {
            Some(angle) => Some(split(&angle, non_empty(words))),
            None if words.is_empty() => None,
            None => {
                let plain: Vec<u8> = words.into_iter().filter(|octet| *octet != b' ').collect();
                Some(split(&plain, self.comment.take()))
            }
        };
        self.addresses.extend(address);
        self.reset();
    }
}

/// Splits `@route:local@domain`.
fn split(address: &[u8], name: Option<Vec<u8>>) -> Address {
    let (route, address) = match address.iter().position(|octet| *octet == b':') {
        Some(colon) if address.starts_with(b"@") => {
            let (route, rest) = address.split_at(colon);
            (Some(route.to_vec()), rest.get(1..).unwrap_or_default())
        }
        _ => (None, address),
    };
    let (mailbox, host) = match address.iter().rposition(|octet| *octet == b'@') {
        Some(at) => {
            let (mailbox, host) = address.split_at(at);
            (mailbox, host.get(1..).unwrap_or_default())
        }
        // Without a host it would be the mark of a group.
        None => (address, &b""[..]),
    };
    Address {
        name,
        route,
        mailbox: Some(mailbox.to_vec()),
        host: Some(host.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(field: &str) -> String {
        let text = |part: &Option<Vec<u8>>| match part {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => "NIL".to_owned(),
        };
        parse(field.as_bytes())
            .iter()
            .map(|a| {
                format!(
                    "[{}|{}|{}|{}]",
                    text(&a.name),
                    text(&a.route),
                    text(&a.mailbox),
                    text(&a.host)
                )
            })
            .collect()
    }

    #[test]
    fn reads_addresses() {
        for (field, wanted) in [
            (" a@b.example", "[NIL|NIL|a|b.example]"),
            (
                "Terry Gray <gray@cac.washington.edu>",
                "[Terry Gray|NIL|gray|cac.washington.edu]",
            ),
            (
                "\"Gray,  T.\" <gray@x>, b@y (Bob)",
                "[Gray,  T.|NIL|gray|x][Bob|NIL|b|y]",
            ),
            (
                "=?utf-8?q?H=C3=A4?=\r\n =?utf-8?q?ns?= <h@x>",
                "[=?utf-8?q?H=C3=A4?= =?utf-8?q?ns?=|NIL|h|x]",
            ),
            (
                "A Group:Ed <e@x>,joe@y;, z@z",
                "[NIL|NIL|A Group|NIL][Ed|NIL|e|x][NIL|NIL|joe|y][NIL|NIL|NIL|NIL][NIL|NIL|z|z]",
            ),
            (
                "undisclosed-recipients:;",
                "[NIL|NIL|undisclosed-recipients|NIL][NIL|NIL|NIL|NIL]",
            ),
            ("<@r1,@r2:a@b>", "[NIL|@r1,@r2|a|b]"),
            (
                "Pete(A nice \\) chap) <pete@silly.test>",
                "[Pete|NIL|pete|silly.test]",
            ),
            ("root", "[NIL|NIL|root|]"),
            ("\"a@b\"@c", "[NIL|NIL|a@b|c]"),
            ("a @ b . c", "[NIL|NIL|a|b.c]"),
            (",, ,", ""),
            ("x: a@b", "[NIL|NIL|x|NIL][NIL|NIL|a|b][NIL|NIL|NIL|NIL]"),
            ("<", "[NIL|NIL||]"),
        ] {
            assert_eq!(shown(field), wanted, "{field}");
        }
    }
}
