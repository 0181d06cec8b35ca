//! Reads the elements of the grammar (RFC 9051 section 9) from a whole command.

use std::borrow::Cow;

use crate::limits::MAILBOX_NAME_OCTETS_MAX;
use crate::set::{SeqNumber, SequenceSet};
use crate::utf7;

use super::CommandError;

pub(super) type Result<T> = std::result::Result<T, CommandError>;

/// A position in a command, whose literals lie in the text as sent.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// Whether mailbox names are UTF-8 and not modified UTF-7.
    utf8: bool,
}

pub(super) const fn expected<T>(what: &'static str) -> Result<T> {
    Err(CommandError::Expected(what))
}

/// `ATOM-CHAR`: any CHAR except atom-specials.
pub(super) fn is_atom_char(octet: u8) -> bool {
    matches!(octet, 0x21..=0x7e)
        && !matches!(
            octet,
            b'(' | b')' | b'{' | b'%' | b'*' | b'"' | b'\\' | b']'
        )
}

fn is_astring_char(octet: u8) -> bool {
    is_atom_char(octet) || octet == b']'
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a [u8], utf8: bool) -> Self {
        Self { rest: text, utf8 }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn advance(&mut self, octets: usize) -> &'a [u8] {
        let (taken, rest) = self
            .rest
            .split_at_checked(octets)
            .unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    /// Consumes this octet, if next.
    pub(super) fn eat(&mut self, octet: u8) -> bool {
        let next = self.peek() == Some(octet);
        if next {
            self.advance(1);
        }
        next
    }

    /// Consumes this word, in any case, if next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let next = self
            .rest
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
        if next {
            self.advance(word.len());
        }
        next
    }

    pub(super) fn expect(&mut self, octet: u8, what: &'static str) -> Result<()> {
        if self.eat(octet) {
            Ok(())
        } else {
            expected(what)
        }
    }

    pub(super) fn space(&mut self) -> Result<()> {
        self.expect(b' ', "a space")
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.at_end() {
            Ok(())
        } else {
            expected("the end of the command")
        }
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self
            .rest
            .iter()
            .position(|octet| !wanted(*octet))
            .unwrap_or(self.rest.len());
        self.advance(end)
    }

    pub(super) fn atom(&mut self, what: &'static str) -> Result<&'a str> {
        match std::str::from_utf8(self.take_while(is_atom_char)) {
            Ok(atom) if !atom.is_empty() => Ok(atom),
            _ => expected(what),
        }
    }

    /// `number64`, without a sign.
    pub(super) fn number(&mut self) -> Result<u64> {
        let digits = self.take_while(|octet| octet.is_ascii_digit());
        std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .filter(|number| *number <= i64::MAX.cast_unsigned())
            .map_or_else(|| expected("a number"), Ok)
    }

    pub(super) fn number32(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).or_else(|_| expected("a number of 32 bits"))
    }

    /// `nz-number`.
    pub(super) fn nz_number(&mut self) -> Result<u32> {
        match self.number32()? {
            0 => expected("a number that is not zero"),
            number => Ok(number),
        }
    }

    /// `astring = 1*ASTRING-CHAR / string`.
    pub(super) fn astring(&mut self) -> Result<Cow<'a, [u8]>> {
        match self.peek() {
            Some(b'"' | b'{') => self.string(),
            _ => match self.take_while(is_astring_char) {
                [] => expected("a string"),
                atom => Ok(Cow::Borrowed(atom)),
            },
        }
    }

    /// `string = quoted / literal`.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        match self.peek() {
            Some(b'"') => self.quoted(),
            Some(b'{') => self.literal().map(Cow::Borrowed),
            _ => expected("a string"),
        }
    }

    /// `nstring = string / "NIL"`.
    pub(super) fn nstring(&mut self) -> Result<Option<Cow<'a, [u8]>>> {
        if self.eat_word("NIL") {
            return Ok(None);
        }
        self.string().map(Some)
    }

    fn quoted(&mut self) -> Result<Cow<'a, [u8]>> {
        self.expect(b'"', "a quoted string")?;
        let plain = self.take_while(|octet| octet != b'"' && octet != b'\\');
        if self.eat(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut whole = plain.to_vec();
        loop {
            match self.advance(1) {
                b"\"" => return Ok(Cow::Owned(whole)),
                b"\\" => match self.advance(1) {
                    [octet @ (b'"' | b'\\')] => whole.push(*octet),
                    _ => return expected("an escaped quote or backslash"),
                },
                _ => return expected("the end of a quoted string"),
            }
            whole.extend_from_slice(self.take_while(|octet| octet != b'"' && octet != b'\\'));
        }
    }

    /// `literal = "{" number64 ["+"] "}" CRLF *CHAR8`, whose octets follow in the text (RFC 7888).
    pub(super) fn literal(&mut self) -> Result<&'a [u8]> {
        const WHAT: &str = "a literal";
        self.expect(b'{', WHAT)?;
        let length = self.number()?;
        self.eat(b'+');
        if !self.eat_word("}\r\n") {
            return expected(WHAT);
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.rest.len() {
            return expected(WHAT);
        }
        Ok(self.advance(length))
    }

    /// A string as text.
    pub(super) fn text(&mut self) -> Result<String> {
        let octets = self.astring()?.into_owned();
        String::from_utf8(octets).or_else(|_| expected("text in UTF-8"))
    }

    /// `mailbox = "INBOX" / astring`, decoded from UTF-8 or modified UTF-7.
    pub(super) fn mailbox(&mut self) -> Result<String> {
        let octets = self.astring()?;
        self.mailbox_name(&octets)
    }

    /// Reads what stands in a string as the name of a mailbox, or as a pattern of names.
    pub(super) fn mailbox_name(&self, octets: &[u8]) -> Result<String> {
        const WHAT: &str = "a mailbox name in modified UTF-7 or UTF-8";
        if octets.len() > MAILBOX_NAME_OCTETS_MAX {
            return Err(CommandError::NameTooLong);
        }
        let name = std::str::from_utf8(octets).or_else(|_| expected(WHAT))?;
        if name.chars().any(char::is_control) {
            return expected("a mailbox name without control characters");
        }
        let name = if self.utf8 || !name.is_ascii() {
            name.to_owned()
        } else {
            utf7::decode(name).ok_or(CommandError::NameEncoding)?
        };
        Ok(canonical(name))
    }

    /// `sequence-set`, or `$` (RFC 5182).
    pub(super) fn sequence_set(&mut self) -> Result<SequenceSet> {
        if self.eat(b'$') {
            return Ok(SequenceSet::Saved);
        }
        let mut ranges = Vec::new();
        loop {
            let first = self.seq_number()?;
            let last = if self.eat(b':') {
                self.seq_number()?
            } else {
                first
            };
            ranges.push((first, last));
            if !self.eat(b',') {
                return Ok(SequenceSet::Ranges(ranges));
            }
        }
    }

    fn seq_number(&mut self) -> Result<SeqNumber> {
        if self.eat(b'*') {
            return Ok(SeqNumber::Largest);
        }
        self.nz_number()
            .map(SeqNumber::Value)
            .or_else(|_| expected("a message number, UID or *"))
    }

    /// `"(" item *(SP item) ")"`, or an empty list where `may_be_empty`.
    pub(super) fn list<T>(
        &mut self,
        may_be_empty: bool,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(b'(', "a list in parentheses")?;
        if may_be_empty && self.eat(b')') {
            return Ok(Vec::new());
        }
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if self.eat(b')') {
                return Ok(items);
            }
            self.expect(b' ', "a space or the end of a list")?;
        }
    }
}

/// INBOX is the same mailbox in any case, also as the parent of other mailboxes (RFC 9051 section
/// 5.1).
fn canonical(name: String) -> String {
    const INBOX: &str = "INBOX";
    match name.get(..INBOX.len()) {
        Some(start)
            if start.eq_ignore_ascii_case(INBOX)
                && matches!(name.as_bytes().get(INBOX.len()), None | Some(b'/')) =>
        {
            let rest = name.get(INBOX.len()..).unwrap_or_default();
            format!("{INBOX}{rest}")
        }
        _ => name,
    }
}
