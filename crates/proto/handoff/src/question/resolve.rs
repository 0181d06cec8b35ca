//! RESOLVE: records of the DNS.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::wire::{Content, WireError};

/// Maximum octets of a name as text (RFC 1035 section 2.3.4), with a trailing dot.
pub const NAME_OCTETS_MAX: usize = 254;
/// Maximum of records in an answer.
pub const RECORDS_MAX: usize = 32;
/// Maximum octets of an answer's records, so that the frame has less than `FRAME_OCTETS_MAX`.
const RECORDS_OCTETS_MAX: usize = 4_000;

/// The name that is looked up: 1 to [`NAME_OCTETS_MAX`] visible characters of ASCII, otherwise unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    /// Returns the text as a name.
    ///
    /// # Errors
    /// [`WireError::Address`] for an empty or an overlong text, [`WireError::Content`] for other characters.
    pub fn new(text: &'a str) -> Result<Self, WireError> {
        match text.len() {
            1..=NAME_OCTETS_MAX if text.bytes().all(|octet| octet.is_ascii_graphic()) => {
                Ok(Self(text))
            }
            1..=NAME_OCTETS_MAX => Err(WireError::Content),
            octets => Err(WireError::Address(octets)),
        }
    }

    /// Returns the text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        put_short(self.0.as_bytes(), out);
    }

    pub(super) fn decode(content: &mut Content<'a>) -> Result<Self, WireError> {
        let [octets] = content.array()?;
        Self::new(content.text(octets.into())?)
    }
}

/// Types of records, by the numbers of the DNS (RFC 1035 section 3.2.2, RFC 3596 section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// IPv4 addresses.
    A,
    /// Names of an address.
    Ptr,
    /// Exchangers.
    Mx,
    /// Texts.
    Txt,
    /// IPv6 addresses.
    Aaaa,
}

impl RecordType {
    /// Every type.
    pub const ALL: &[Self] = &[Self::A, Self::Ptr, Self::Mx, Self::Txt, Self::Aaaa];

    pub(super) const fn number(self) -> u8 {
        match self {
            Self::A => 1,
            Self::Ptr => 12,
            Self::Mx => 15,
            Self::Txt => 16,
            Self::Aaaa => 28,
        }
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|record| record.number() == number)
    }
}

/// A record. Names are as in the DNS, without a trailing dot; the root is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// A name of an address.
    Ptr(String),
    /// Preference and host of an exchanger.
    Mx(u16, String),
    /// The strings of a text, joined.
    Txt(Vec<u8>),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
}

impl Record {
    const fn kind(&self) -> RecordType {
        match self {
            Self::A(_) => RecordType::A,
            Self::Ptr(_) => RecordType::Ptr,
            Self::Mx(..) => RecordType::Mx,
            Self::Txt(_) => RecordType::Txt,
            Self::Aaaa(_) => RecordType::Aaaa,
        }
    }

    /// Octets of the record in an answer.
    const fn octets(&self) -> usize {
        match self {
            Self::A(_) => 1 + 4,
            Self::Aaaa(_) => 1 + 16,
            Self::Ptr(name) => name.len().saturating_add(1 + 1),
            Self::Mx(_, name) => name.len().saturating_add(1 + 2 + 1),
            Self::Txt(text) => text.len().saturating_add(1 + 2),
        }
    }

    /// Whether the record has a form in an answer.
    fn fits(&self) -> bool {
        match self {
            Self::Ptr(name) | Self::Mx(_, name) => is_host(name),
            Self::A(_) | Self::Aaaa(_) | Self::Txt(_) => true,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind().number());
        match self {
            Self::A(address) => out.extend_from_slice(&address.octets()),
            Self::Aaaa(address) => out.extend_from_slice(&address.octets()),
            Self::Ptr(name) => put_short(name.as_bytes(), out),
            Self::Mx(preference, name) => {
                out.extend_from_slice(&preference.to_le_bytes());
                put_short(name.as_bytes(), out);
            }
            Self::Txt(text) => {
                let octets = u16::try_from(text.len()).unwrap_or(u16::MAX);
                out.extend_from_slice(&octets.to_le_bytes());
                out.extend_from_slice(text);
            }
        }
    }

    fn decode(content: &mut Content<'_>) -> Result<Self, WireError> {
        let [kind] = content.array()?;
        match RecordType::of_number(kind).ok_or(WireError::Content)? {
            RecordType::A => Ok(Self::A(content.array::<4>()?.into())),
            RecordType::Aaaa => Ok(Self::Aaaa(content.array::<16>()?.into())),
            RecordType::Ptr => host(content).map(Self::Ptr),
            RecordType::Mx => {
                let preference = u16::from_le_bytes(content.array()?);
                Ok(Self::Mx(preference, host(content)?))
            }
            RecordType::Txt => {
                let octets = u16::from_le_bytes(content.array()?);
                Ok(Self::Txt(content.take(octets.into())?.to_vec()))
            }
        }
    }
}

/// Records of an answer, in no certain order: at most [`RECORDS_MAX`] and some 4,000 octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    records: Vec<Record>,
    is_cut: bool,
}

impl Records {
    /// Keeps as many of the records as an answer has room for.
    pub fn new(records: impl IntoIterator<Item = Record>) -> Self {
        let mut kept = Self {
            records: Vec::new(),
            is_cut: false,
        };
        let mut octets = 0_usize;
        for record in records {
            let with_it = octets.saturating_add(record.octets());
            let has_room = kept.records.len() < RECORDS_MAX && with_it <= RECORDS_OCTETS_MAX;
            if has_room && record.fits() {
                octets = with_it;
                kept.records.push(record);
            } else {
                kept.is_cut = true;
            }
        }
        kept
    }

    /// Returns the records.
    #[must_use]
    pub fn as_slice(&self) -> &[Record] {
        &self.records
    }

    /// Returns whether the DNS had more records.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.is_cut.into());
        out.push(u8::try_from(self.records.len()).unwrap_or(u8::MAX));
        for record in &self.records {
            record.encode(out);
        }
    }

    pub(super) fn decode(content: &mut Content<'_>) -> Result<Self, WireError> {
        let is_cut = match content.array()? {
            [0] => false,
            [1] => true,
            _ => return Err(WireError::Content),
        };
        let [count] = content.array()?;
        if usize::from(count) > RECORDS_MAX || content.0.len() > RECORDS_OCTETS_MAX {
            return Err(WireError::Content);
        }
        let records = (0..count).map(|_| Record::decode(content));
        Ok(Self {
            records: records.collect::<Result<_, _>>()?,
            is_cut,
        })
    }
}

/// Why an answer has no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoRecords {
    /// The name does not exist (NXDOMAIN).
    NoSuchName,
    /// The name exists, without such records (NODATA).
    NoData,
    /// The lookup failed for now, or the broker has too much to do.
    Unavailable,
}

impl NoRecords {
    /// Every reason.
    pub const ALL: &[Self] = &[Self::NoSuchName, Self::NoData, Self::Unavailable];

    pub(super) const fn number(self) -> u8 {
        match self {
            Self::NoSuchName => 0,
            Self::NoData => 1,
            Self::Unavailable => 2,
        }
    }

    pub(super) const fn of_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::NoSuchName),
            1 => Some(Self::NoData),
            2 => Some(Self::Unavailable),
            _ => None,
        }
    }
}

fn is_host(name: &str) -> bool {
    name.len() <= NAME_OCTETS_MAX && name.bytes().all(|octet| octet.is_ascii_graphic())
}

fn host(content: &mut Content<'_>) -> Result<String, WireError> {
    let [octets] = content.array()?;
    let name = content.text(octets.into())?;
    is_host(name)
        .then(|| name.to_owned())
        .ok_or(WireError::Content)
}

fn put_short(octets: &[u8], out: &mut Vec<u8>) {
    out.push(u8::try_from(octets.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(octets);
}
