//! Assembles whole responses from octets in pieces of any size; large literals are passed on on
//! arrival (RFC 9051 sections 4.3 and 7).

use super::{ClientLimits, ProtocolError};

/// The result of reading a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// A literal of so many octets begins, which is passed on and not kept.
    Literal(u64),
    /// The next octets of the literal.
    Piece(&'a [u8]),
    /// The response is whole.
    Line(Line),
}

/// A response without its CRLF.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The text, with the kept literals.
    pub(super) text: Vec<u8>,
    /// Positions in the text of the `{` of literals passed on; the text omits the octets of such
    /// literals.
    pub(super) passed_on: Vec<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    line: Line,
    /// Where the last part of the text begins that is no literal.
    part: usize,
    expect: Expect,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    #[default]
    Text,
    /// Octets of a kept literal.
    Kept(usize),
    /// Octets of a literal passed on.
    PassedOn(u64),
}

impl Reader {
    /// Takes octets up to the next thing that came: how many, and the thing.
    ///
    /// # Errors
    /// [`ProtocolError::TooLong`].
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        limits: &ClientLimits,
    ) -> Result<(usize, Option<Read<'a>>), ProtocolError> {
        match self.expect {
            Expect::Text => self.take_text(bytes, limits),
            Expect::Kept(left) => {
                let piece = bytes.get(..left).unwrap_or(bytes);
                self.line.text.extend_from_slice(piece);
                self.expect = match left.saturating_sub(piece.len()) {
                    0 => self.text_again(),
                    left => Expect::Kept(left),
                };
                Ok((piece.len(), None))
            }
            Expect::PassedOn(left) => {
                let room = usize::try_from(left).unwrap_or(usize::MAX);
                let piece = bytes.get(..room).unwrap_or(bytes);
                let taken = u64::try_from(piece.len()).unwrap_or(left);
                self.expect = match left.saturating_sub(taken) {
                    0 => self.text_again(),
                    left => Expect::PassedOn(left),
                };
                let read = (!piece.is_empty()).then_some(Read::Piece(piece));
                Ok((piece.len(), read))
            }
        }
    }

    fn text_again(&mut self) -> Expect {
        self.part = self.line.text.len();
        Expect::Text
    }

    fn take_text<'a>(
        &mut self,
        bytes: &'a [u8],
        limits: &ClientLimits,
    ) -> Result<(usize, Option<Read<'a>>), ProtocolError> {
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end.saturating_add(1));
        let piece = bytes.get(..taken).unwrap_or(bytes);
        if self.line.text.len().saturating_add(taken) > limits.response_octets_max {
            return Err(ProtocolError::TooLong);
        }
        self.line.text.extend_from_slice(piece);
        if end.is_none() {
            return Ok((taken, None));
        }
        let announced = match may_have_literals(&self.line.text) {
            true => self.announced(),
            false => None,
        };
        match announced {
            Some((at, octets)) => Ok((taken, self.begin_literal(at, octets, limits)?)),
            None => Ok((taken, Some(Read::Line(self.end_line())))),
        }
    }

    fn end_line(&mut self) -> Line {
        let mut line = std::mem::take(self).line;
        line.text.pop();
        if line.text.last() == Some(&b'\r') {
            line.text.pop();
        }
        line
    }

    /// The literal announced at the end of the last part: position and size in octets.
    fn announced(&self) -> Option<(usize, u64)> {
        let part = self.line.text.get(self.part..)?;
        let inside = part.strip_suffix(b"}\r\n")?;
        let begin = memchr::memrchr(b'{', inside)?;
        let digits = inside.get(begin.saturating_add(1)..)?;
        let digits = digits.strip_suffix(b"+").unwrap_or(digits);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let octets = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some((self.part.saturating_add(begin), octets))
    }

    fn begin_literal<'a>(
        &mut self,
        at: usize,
        octets: u64,
        limits: &ClientLimits,
    ) -> Result<Option<Read<'a>>, ProtocolError> {
        let kept = usize::try_from(octets)
            .ok()
            .filter(|octets| *octets <= limits.literal_kept_max);
        if let Some(octets) = kept {
            if self.line.text.len().saturating_add(octets) > limits.response_octets_max {
                return Err(ProtocolError::TooLong);
            }
            self.expect = match octets {
                0 => self.text_again(),
                octets => Expect::Kept(octets),
            };
            return Ok(None);
        }
        self.line.passed_on.push(at);
        self.expect = Expect::PassedOn(octets);
        Ok(Some(Read::Literal(octets)))
    }
}

/// Whether braces at the end of the first line announce a literal: they do not in text for people.
fn may_have_literals(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"* ") else {
        return false;
    };
    let end = memchr::memchr2(b' ', b'\r', rest).unwrap_or(rest.len());
    let word = rest.get(..end).unwrap_or_default();
    let conditions: [&[u8]; 5] = [b"OK", b"NO", b"BAD", b"BYE", b"PREAUTH"];
    !conditions
        .iter()
        .any(|condition| condition.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> ClientLimits {
        ClientLimits {
            response_octets_max: 60,
            literal_kept_max: 4,
        }
    }

    fn all(octets: &[u8], piece: usize) -> Result<Vec<String>, ProtocolError> {
        let mut reader = Reader::default();
        let mut found = Vec::new();
        let mut passed = String::new();
        for piece in octets.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (taken, read) = reader.take(rest, &limits())?;
                rest = &rest[taken..];
                match read {
                    Some(Read::Literal(octets)) => found.push(format!("literal {octets}")),
                    Some(Read::Piece(piece)) => passed += &String::from_utf8_lossy(piece),
                    Some(Read::Line(line)) => {
                        let text = String::from_utf8_lossy(&line.text);
                        found.push(format!("{text} {:?}{passed}", line.passed_on));
                        passed.clear();
                    }
                    None => {}
                }
            }
        }
        Ok(found)
    }

    fn check(octets: &str, wanted: &[&str]) {
        for piece in [1, 2, 7, 1_000] {
            let found = all(octets.as_bytes(), piece).unwrap();
            assert_eq!(found, wanted, "{octets:?} by {piece}");
        }
    }

    #[test]
    fn small_literals_are_kept_and_large_ones_passed_on() {
        check("* 1 EXISTS\r\na OK\r\n", &["* 1 EXISTS []", "a OK []"]);
        check(
            "* LIST () {3}\r\na\r\n x\r\n",
            &["* LIST () {3}\r\na\r\n x []"],
        );
        check(
            "* 1 FETCH (BODY[] {5}\r\n{9}\r\n X {0}\r\n)\r\n",
            &[
                "literal 5",
                "* 1 FETCH (BODY[] {5}\r\n X {0}\r\n) [18]{9}\r\n",
            ],
        );
    }

    #[test]
    fn text_for_people_announces_nothing() {
        check("* OK {5}\r\na no {5}\r\n", &["* OK {5} []", "a no {5} []"]);
        check("* X {5x}\r\n* X {}\r\n", &["* X {5x} []", "* X {} []"]);
    }

    #[test]
    fn a_line_has_a_bound() {
        let line = format!("* {}\r\n", "x".repeat(60));
        for piece in [1, 1_000] {
            assert_eq!(all(line.as_bytes(), piece), Err(ProtocolError::TooLong));
        }
    }
}
