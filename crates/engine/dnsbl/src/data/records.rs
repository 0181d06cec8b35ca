//! Records of a generic dataset.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::error::Reason;
use super::head::seconds;
use super::name;
use super::value::TEXT_MAX;

/// A record of a generic dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The name below the zone, lower case, in wire form without the root.
    pub name: Box<[u8]>,
    /// The TTL in seconds, if the record or its dataset has one.
    pub ttl: Option<u32>,
    /// Type and value.
    pub data: RecordData,
}

/// The types of records that a generic dataset has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordData {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// A text of at most [`TEXT_MAX`] octets.
    Txt(Box<[u8]>),
    /// A mail exchanger: its preference, and its name in wire form with the root.
    Mx(u16, Box<[u8]>),
}

/// The first word of a line, and what follows without blanks around.
fn next(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace);
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    (word, rest.trim_ascii())
}

/// Reads a line: `name [ttl] [IN] type value`.
pub(super) fn record(line: &[u8]) -> Result<Record, Reason> {
    let refused = || {
        Reason::syntax(
            "a name, perhaps a TTL, and a record of type A, AAAA, TXT or MX",
            line,
        )
    };
    let (name, rest) = next(line);
    let name = name::relative(&name.to_ascii_lowercase())?;
    let (mut kind, mut value) = next(rest);
    let mut ttl = None;
    if kind.first().is_some_and(u8::is_ascii_digit) {
        ttl = Some(seconds(kind)?);
        (kind, value) = next(value);
    }
    if kind.eq_ignore_ascii_case(b"IN") {
        (kind, value) = next(value);
    }
    let text = || std::str::from_utf8(value).map_err(|_| refused());
    let data = match kind.to_ascii_uppercase().as_slice() {
        b"A" => RecordData::A(text()?.parse().map_err(|_| refused())?),
        b"AAAA" => RecordData::Aaaa(text()?.parse().map_err(|_| refused())?),
        b"TXT" => RecordData::Txt(text_of(value).into()),
        b"MX" => {
            let (preference, exchange) = next(value);
            let preference = std::str::from_utf8(preference).ok();
            let preference = preference.and_then(|text| text.parse().ok());
            RecordData::Mx(preference.ok_or_else(refused)?, name::absolute(exchange)?)
        }
        _ => return Err(refused()),
    };
    Ok(Record {
        name: name.into(),
        ttl,
        data,
    })
}

/// The octets of a text, without quotation marks around, at most as many as a character-string has.
fn text_of(value: &[u8]) -> &[u8] {
    let quoted = value.strip_prefix(b"\"");
    let text = quoted.and_then(|value| value.strip_suffix(b"\""));
    let text = text.unwrap_or(value);
    text.get(..TEXT_MAX).unwrap_or(text)
}

/// Records in the order of the reversed labels of their names.
#[derive(Debug, Default)]
pub(super) struct Records {
    keys: Vec<Vec<u8>>,
    records: Vec<Record>,
}

impl Records {
    /// Sorts records.
    pub(super) fn of(records: Vec<Record>) -> Self {
        let mut keyed: Vec<(Vec<u8>, Record)> = records
            .into_iter()
            .map(|record| (name::reversed(&record.name), record))
            .collect();
        keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (keys, records) = keyed.into_iter().unzip();
        Self { keys, records }
    }

    /// The records of a name.
    pub(super) fn find(&self, wire: &[u8]) -> &[Record] {
        let key = name::reversed(wire);
        let start = self.keys.partition_point(|other| *other < key);
        let end = self.keys.partition_point(|other| *other <= key);
        self.records.get(start..end).unwrap_or_default()
    }

    /// Whether a record lies below a name.
    pub(super) fn any_below(&self, wire: &[u8]) -> bool {
        let key = name::reversed(wire);
        let first = self.keys.partition_point(|other| *other <= key);
        let next = self.keys.get(first);
        next.is_some_and(|other| other.starts_with(&key))
    }

    /// All records.
    pub(super) fn all(&self) -> &[Record] {
        &self.records
    }
}
