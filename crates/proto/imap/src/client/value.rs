//! The values within responses (RFC 9051 section 9).

use super::ProtocolError;
use super::reader::Line;

/// Nesting depth of lists; a deeper response is refused, which bounds the stack.
const DEPTH_MAX: usize = 64;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `NIL`.
    Nil,
    /// An atom, a number, a flag: what is written without quotes.
    Atom(Vec<u8>),
    /// A string: quoted, or a kept literal.
    String(Vec<u8>),
    /// A literal of this many octets, passed on.
    PassedOn(u64),
    /// A list.
    List(Vec<Self>),
}

impl Value {
    /// The octets of an atom or string.
    #[must_use]
    pub fn octets(&self) -> Option<&[u8]> {
        match self {
            Self::Atom(octets) | Self::String(octets) => Some(octets),
            _ => None,
        }
    }

    /// The octets as text, if valid UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.octets()?).ok()
    }

    /// The number written by an atom.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self) -> Option<T> {
        self.text()?.parse().ok()
    }

    /// The members of a list.
    #[must_use]
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(members) => Some(members),
            _ => None,
        }
    }
}

/// Reads a response from the beginning.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    line: &'a Line,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(line: &'a Line) -> Self {
        Self { line, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.line.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, octets: usize) {
        self.at = self.at.saturating_add(octets);
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    /// The unread rest, as text for people.
    pub(super) fn remainder(&self) -> String {
        String::from_utf8_lossy(self.rest()).into_owned()
    }

    /// Skips this octet, if next.
    pub(super) fn pass(&mut self, octet: u8) -> bool {
        let is_next = self.peek() == Some(octet);
        self.skip(usize::from(is_next));
        is_next
    }

    /// Skips blanks: some servers write several.
    pub(super) fn blanks(&mut self) {
        while self.pass(b' ') {}
    }

    /// Reads up to the next blank, parenthesis or end; brackets and their content belong to the word, as in
    /// `BODY[HEADER.FIELDS (TO)]`.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let mut depth = 0_usize;
        let end = rest.iter().position(|octet| {
            match octet {
                b'[' => depth = depth.saturating_add(1),
                b']' => depth = depth.saturating_sub(1),
                b' ' | b'(' | b')' if depth == 0 => return true,
                _ => {}
            }
            false
        });
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.skip(word.len());
        word
    }

    /// The next value.
    pub(super) fn value(&mut self) -> Result<Value, ProtocolError> {
        // The lists that are open: kept here and not on the stack.
        let mut open: Vec<Vec<Value>> = Vec::new();
        loop {
            self.blanks();
            let value = match self.peek() {
                Some(b'(') => {
                    self.skip(1);
                    if open.len() >= DEPTH_MAX {
                        return Err(ProtocolError::Malformed("list"));
                    }
                    open.push(Vec::new());
                    continue;
                }
                Some(b')') => {
                    self.skip(1);
                    Value::List(open.pop().ok_or(ProtocolError::Malformed("list"))?)
                }
                Some(_) => self.single()?,
                None => return Err(ProtocolError::Malformed("value")),
            };
            match open.last_mut() {
                Some(list) => list.push(value),
                None => return Ok(value),
            }
        }
    }

    fn single(&mut self) -> Result<Value, ProtocolError> {
        match self.peek() {
            Some(b'"') => self.quoted(),
            Some(b'{') => self.literal(),
            Some(b'~') if self.rest().get(1) == Some(&b'{') => {
                self.skip(1);
                self.literal()
            }
            _ => {
                let word = self.word();
                if word.is_empty() {
                    return Err(ProtocolError::Malformed("value"));
                }
                Ok(match word.eq_ignore_ascii_case(b"NIL") {
                    true => Value::Nil,
                    false => Value::Atom(word.to_vec()),
                })
            }
        }
    }

    fn quoted(&mut self) -> Result<Value, ProtocolError> {
        self.skip(1);
        let mut text = Vec::new();
        loop {
            let rest = self.rest();
            let at = memchr::memchr2(b'"', b'\\', rest);
            let at = at.ok_or(ProtocolError::Malformed("quoted string"))?;
            text.extend_from_slice(rest.get(..at).unwrap_or_default());
            self.skip(at.saturating_add(1));
            if rest.get(at) == Some(&b'"') {
                return Ok(Value::String(text));
            }
            let escaped = self.peek();
            text.push(escaped.ok_or(ProtocolError::Malformed("quoted string"))?);
            self.skip(1);
        }
    }

    fn literal(&mut self) -> Result<Value, ProtocolError> {
        let wrong = ProtocolError::Malformed("literal");
        let begin = self.at;
        let rest = self.rest();
        let end = memchr::memchr(b'}', rest).ok_or(wrong)?;
        let digits = rest.get(1..end).unwrap_or_default();
        let digits = digits.strip_suffix(b"+").unwrap_or(digits);
        let octets: u64 = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .ok_or(wrong)?;
        self.skip(end.saturating_add(3));
        if self.line.passed_on.contains(&begin) {
            return Ok(Value::PassedOn(octets));
        }
        let octets = usize::try_from(octets).map_err(|_| wrong)?;
        let text = self.rest().get(..octets).ok_or(wrong)?.to_vec();
        self.skip(octets);
        Ok(Value::String(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, passed_on: &[usize]) -> Result<Value, ProtocolError> {
        let line = Line {
            text: text.as_bytes().to_vec(),
            passed_on: passed_on.to_vec(),
        };
        Cursor::new(&line).value()
    }

    #[test]
    fn reads_every_kind() {
        let atom = |text: &str| Value::Atom(text.as_bytes().to_vec());
        let string = |text: &str| Value::String(text.as_bytes().to_vec());
        assert_eq!(value("12 x", &[]), Ok(atom("12")));
        assert_eq!(value("nil", &[]), Ok(Value::Nil));
        assert_eq!(value(r#""a \"b\\" c"#, &[]), Ok(string(r#"a "b\"#)));
        assert_eq!(value("{3}\r\na)\n x", &[]), Ok(string("a)\n")));
        assert_eq!(value("~{1}\r\n)", &[]), Ok(string(")")));
        assert_eq!(
            value("(\\Seen (  ) {900}\r\n \"\")", &[12]),
            Ok(Value::List(vec![
                atom("\\Seen"),
                Value::List(vec![]),
                Value::PassedOn(900),
                string("")
            ]))
        );
        assert_eq!(
            value("BODY[HEADER.FIELDS (TO CC)]<0>)", &[]),
            Ok(atom("BODY[HEADER.FIELDS (TO CC)]<0>"))
        );
    }

    #[test]
    fn refuses_what_is_none() {
        for text in ["", ")", "(", "(a", "\"a", "\"a\\", "{9}\r\na", "{x}\r\na"] {
            assert!(value(text, &[]).is_err(), "{text:?}");
        }
        assert!(value(&"(".repeat(1_000_000), &[]).is_err());
    }
}
