//! The text forms of O/R addresses.
//!
//! ```text
//! G=John;S=Smith;O=Acme;OU1=Sales;P=Acme;A=Carrier;C=GB;DDA:RFC-822=js(a)acme.example     RFC 1685, F.401 annex
//! /G=John/S=Smith/OU=Sales/O=Acme/PRMD=Acme/ADMD=Carrier/C=GB/DD.RFC-822=...              RFC 2156 section 4.1
//! ```
//!
//! A slash at the beginning marks the second form. In the first form a doubled `;` is a semicolon of the value,
//! and a doubled `=` an equals sign of the type of a domain-defined attribute. In the second form `$` takes the
//! next character literally, a doubled `/` is a slash of the value, `*` begins a text in T.61 with octets such
//! as `{233}`, and several `OU` and `DD` have the most significant one last. Keywords of both forms are known
//! in both.

use vere_ber::TeletexString;

use std::fmt;
use std::str::FromStr;

use super::attribute::Attribute;
use super::attributes::Attributes;
use super::compose::ComposeError;
use super::model::OrAddress;

/// Characters of an address text, at most.
const CHARACTERS_MAX: usize = 4_096;

/// A fault of text as an O/R address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    /// The character, counted from 1.
    pub column: usize,
    /// The fault.
    pub fault: AddressFault,
}

/// The fault at the column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressFault {
    /// No attribute at all.
    Empty,
    /// More than 4,096 characters.
    TooLong,
    /// A keyword that no form has.
    Keyword(String),
    /// A keyword without an equals sign.
    Equals(String),
    /// An attribute for the second time.
    Twice(String),
    /// `$` as the last character.
    Escape,
    /// A personal name that is not `given.initials.surname`.
    PersonalName(String),
    /// A value that the attribute cannot have.
    Value(ComposeError),
}

impl std::error::Error for AddressError {}

impl fmt::Display for AddressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column;
        match &self.fault {
            AddressFault::Empty => write!(
                out,
                "expected an O/R address such as G=John;S=Smith;P=Acme;C=GB; found nothing"
            ),
            AddressFault::TooLong => {
                write!(
                    out,
                    "expected at most {CHARACTERS_MAX} characters; found more at column {column}"
                )
            }
            AddressFault::Keyword(found) => {
                write!(
                    out,
                    "expected a keyword such as S, O, OU1, P, A or C; found {found:?} at column {column}"
                )
            }
            AddressFault::Equals(keyword) => {
                write!(
                    out,
                    "expected = after {keyword}; found the end of the attribute at column {column}"
                )
            }
            AddressFault::Twice(keyword) => write!(
                out,
                "expected {keyword} once; found it again at column {column}"
            ),
            AddressFault::Escape => write!(
                out,
                "expected a character after $; found the end at column {column}"
            ),
            AddressFault::PersonalName(found) => {
                write!(
                    out,
                    "expected a name such as John.F.Smith; found {found:?} at column {column}"
                )
            }
            AddressFault::Value(error) => write!(out, "{error} at column {column}"),
        }
    }
}

impl FromStr for OrAddress {
    type Err = AddressError;

    /// Reads an address. An address with a country and without an ADMD has the ADMD of one space (RFC 1685
    /// section 2).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parsed = Parsed::read(text)?;
        let attributes = &mut parsed.attributes;
        if attributes.get(Attribute::Country).is_some()
            && attributes.get(Attribute::Administration).is_none()
        {
            attributes.set(Attribute::Administration, " ");
        }
        parsed
            .attributes
            .to_address()
            .map_err(|error| parsed.locate(error))
    }
}

impl FromStr for Attributes {
    type Err = AddressError;

    /// Reads attributes, which need not be a whole address.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = Parsed::read(text)?;
        match parsed.attributes.to_address() {
            Ok(_) => Ok(parsed.attributes),
            Err(error) => Err(parsed.locate(error)),
        }
    }
}

/// An attribute as written.
#[derive(Default)]
struct Chunk {
    column: usize,
    keyword: String,
    value: Option<String>,
    /// Where the text in T.61 begins in the value.
    teletex: Option<usize>,
}

/// Attributes and where they are.
#[derive(Default)]
struct Parsed {
    attributes: Attributes,
    columns: Vec<(String, usize)>,
    /// The values of `OU`, of which the last is the most significant.
    units: Vec<String>,
    /// The domain-defined attributes of the second form, of which the last is the first.
    reversed: Vec<(String, String)>,
}

impl Parsed {
    fn read(text: &str) -> Result<Self, AddressError> {
        let text = text.trim_end_matches(['\r', '\n']);
        let slashes = text.trim_start().starts_with('/');
        let mut parsed = Self::default();
        for chunk in Lexer::split(text, slashes)? {
            let column = chunk.column;
            parsed
                .take(chunk)
                .map_err(|fault| AddressError { column, fault })?;
        }
        parsed.finish()
    }

    fn take(&mut self, chunk: Chunk) -> Result<(), AddressFault> {
        let Chunk {
            column,
            keyword,
            value,
            teletex,
        } = chunk;
        let Some(value) = value else {
            return Err(AddressFault::Equals(keyword));
        };
        let value = decoded(value, teletex);
        if let Some((kind, local)) = domain_defined(&keyword) {
            self.columns.push((format!("DDA:{kind}"), column));
            self.columns.push(("DDA".into(), column));
            let list = if local {
                &mut self.attributes.domain_defined
            } else {
                &mut self.reversed
            };
            list.push((kind.into(), value));
            return Ok(());
        }
        match keyword.to_ascii_uppercase().as_str() {
            "OU" => self.units.push(value),
            "PN" => self.take_personal_name(column, &value)?,
            "PD-ADDRESS" | "PD-A" => {
                for (attribute, line) in Attribute::LINES.into_iter().zip(value.split('|')) {
                    self.put(attribute, column, line.into())?;
                }
            }
            _ => {
                let attribute = Attribute::from_keyword(&keyword);
                self.put(
                    attribute.ok_or(AddressFault::Keyword(keyword))?,
                    column,
                    value,
                )?;
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        attribute: Attribute,
        column: usize,
        value: String,
    ) -> Result<(), AddressFault> {
        if self.attributes.get(attribute).is_some() {
            return Err(AddressFault::Twice(attribute.keyword().into()));
        }
        self.columns.push((attribute.keyword().into(), column));
        self.attributes.set(attribute, value);
        Ok(())
    }

    /// `given.initials.surname`: the given name has two letters or more, an initial has one.
    fn take_personal_name(&mut self, column: usize, value: &str) -> Result<(), AddressFault> {
        let (before, surname) = value.rsplit_once('.').unwrap_or(("", value));
        let mut parts = before.split('.').filter(|part| !part.is_empty()).peekable();
        let given = parts.next_if(|part| part.chars().count() > 1);
        let initials: String = parts.collect();
        if surname.is_empty() || initials.chars().count() > Attribute::Initials.characters_max() {
            return Err(AddressFault::PersonalName(value.into()));
        }
        self.put(Attribute::Surname, column, surname.into())?;
        if let Some(given) = given {
            self.put(Attribute::GivenName, column, given.into())?;
        }
        if !initials.is_empty() {
            self.put(Attribute::Initials, column, initials)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Self, AddressError> {
        let mut units = std::mem::take(&mut self.units);
        units.reverse();
        let count = units.len();
        for (attribute, unit) in Attribute::UNITS.into_iter().zip(units) {
            self.put(attribute, 1, unit)
                .map_err(|fault| AddressError { column: 1, fault })?;
        }
        if count > Attribute::UNITS.len() {
            return Err(AddressError {
                column: 1,
                fault: AddressFault::Keyword("OU".into()),
            });
        }
        self.reversed.reverse();
        self.attributes.domain_defined.append(&mut self.reversed);
        if self.attributes.is_empty() {
            return Err(AddressError {
                column: 1,
                fault: AddressFault::Empty,
            });
        }
        Ok(self)
    }

    fn locate(&self, error: ComposeError) -> AddressError {
        let found = self
            .columns
            .iter()
            .find(|(keyword, _)| *keyword == error.keyword);
        let column = found.map_or(1, |(_, column)| *column);
        AddressError {
            column,
            fault: AddressFault::Value(error),
        }
    }
}

/// The type of a domain-defined attribute, and whether it is written in the first form.
fn domain_defined(keyword: &str) -> Option<(&str, bool)> {
    if keyword.eq_ignore_ascii_case("RFC-822") {
        return Some(("RFC-822", true));
    }
    const PREFIXES: [(&str, bool); 4] = [
        ("DDA:", true),
        ("DD:", true),
        ("DDA.", false),
        ("DD.", false),
    ];
    PREFIXES.into_iter().find_map(|(prefix, local)| {
        let (start, kind) = keyword.split_at_checked(prefix.len())?;
        start.eq_ignore_ascii_case(prefix).then_some((kind, local))
    })
}

/// The text of a value: the part in T.61, if present.
fn decoded(value: String, teletex: Option<usize>) -> String {
    let Some(encoded) = teletex
        .and_then(|start| value.get(start..))
        .filter(|text| !text.is_empty())
    else {
        return value;
    };
    let mut octets = Vec::new();
    let mut rest = encoded;
    while let Some(character) = rest.chars().next() {
        let octet = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let octet = octet.and_then(|(digits, rest)| Some((digits.parse::<u8>().ok()?, rest)));
        if let Some((octet, after)) = octet {
            octets.push(octet);
            rest = after;
        } else {
            octets.push(u8::try_from(character).unwrap_or(b'?'));
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
        }
    }
    TeletexString::from_octets(octets.into())
        .text()
        .into_owned()
}

struct Lexer {
    slashes: bool,
    chunks: Vec<Chunk>,
    chunk: Chunk,
}

impl Lexer {
    fn split(text: &str, slashes: bool) -> Result<Vec<Chunk>, AddressError> {
        let mut lexer = Self {
            slashes,
            chunks: Vec::new(),
            chunk: Chunk::default(),
        };
        let mut characters = text.chars().zip(1..).peekable();
        while let Some((character, column)) = characters.next() {
            if column > CHARACTERS_MAX {
                return Err(AddressError {
                    column,
                    fault: AddressFault::TooLong,
                });
            }
            let next = characters.peek().map(|(next, _)| *next);
            if character == '$' && slashes {
                let fault = AddressFault::Escape;
                let (escaped, _) = characters.next().ok_or(AddressError { column, fault })?;
                lexer.push(escaped, column);
            } else if lexer.doubles(character, next) {
                characters.next();
                lexer.push(character, column);
            } else {
                lexer.plain(character, column);
            }
        }
        lexer.end();
        Ok(lexer.chunks)
    }

    /// Whether a doubled character stands for a single character.
    fn doubles(&self, character: char, next: Option<char>) -> bool {
        let in_value = self
            .chunk
            .value
            .as_ref()
            .is_some_and(|value| !value.is_empty() || !self.slashes);
        let in_type = self.chunk.value.is_none() && domain_defined(&self.chunk.keyword).is_some();
        next == Some(character)
            && match character {
                ';' => (in_value || in_type) && !self.slashes,
                '/' => in_value && self.slashes,
                '=' => in_type,
                _ => false,
            }
    }

    fn plain(&mut self, character: char, column: usize) {
        match character {
            '/' if self.slashes => self.end(),
            ';' => self.end(),
            '=' if self.chunk.value.is_none() => self.chunk.value = Some(String::new()),
            '*' if self.slashes && self.chunk.value.is_some() && self.chunk.teletex.is_none() => {
                self.chunk.teletex = self.chunk.value.as_ref().map(String::len);
            }
            _ => self.push(character, column),
        }
    }

    fn push(&mut self, character: char, column: usize) {
        if let Some(value) = &mut self.chunk.value {
            return value.push(character);
        }
        if !self.chunk.keyword.is_empty() || !character.is_whitespace() {
            if self.chunk.keyword.is_empty() {
                self.chunk.column = column;
            }
            self.chunk.keyword.push(character);
        }
    }

    fn end(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        if !chunk.keyword.is_empty() || chunk.value.is_some() {
            self.chunks.push(chunk);
        }
    }
}
