//! The fields of an entry: what readers search.

use vere_units::{Timestamp, TraceId};

use super::{u32_at, u64_at};
use crate::entry::{Entry, Kind};

/// Octets before the texts.
const FIXED: usize = 28;
/// Octets of the length of a text.
const LENGTH: usize = 4;

/// Counts the octets of the fields of an entry.
pub(crate) fn encoded_len(entry: &Entry) -> u64 {
    let octets: usize = texts(entry).map(|text| LENGTH + text.len()).sum();
    (FIXED + octets) as u64
}

/// Appends the fields of an entry, whose length was checked with [`encoded_len`].
pub(crate) fn encode(entry: &Entry, out: &mut Vec<u8>) {
    out.extend_from_slice(&entry.at.as_millis().to_le_bytes());
    out.extend_from_slice(&entry.trace.as_u64().to_le_bytes());
    out.extend_from_slice(&[entry.kind.code(), 0, 0, 0]);
    for count in [entry.destinations.len(), entry.recipients.len()] {
        out.extend_from_slice(&length(count));
    }
    for text in texts(entry) {
        out.extend_from_slice(&length(text.len()));
        out.extend_from_slice(text.as_bytes());
    }
}

/// Lengths fit, as all fields together have at most [`META_OCTETS_MAX`](super::META_OCTETS_MAX) octets.
fn length(octets: usize) -> [u8; 4] {
    u32::try_from(octets).unwrap_or(u32::MAX).to_le_bytes()
}

/// All texts in the order of the format.
fn texts(entry: &Entry) -> impl Iterator<Item = &str> {
    let single = [
        Some(entry.identifier.as_str()),
        entry.about.as_deref(),
        entry.originator.as_deref(),
        Some(entry.source.as_str()),
        entry.content_type.as_deref(),
    ];
    let single = single.into_iter().map(Option::unwrap_or_default);
    let lists = entry.destinations.iter().chain(&entry.recipients);
    single.chain(lists.map(String::as_str))
}

/// The fields of an entry as read. An absent text is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields<'a> {
    /// The time of arrival.
    pub at: Timestamp,
    /// The id in the trace.
    pub trace: TraceId,
    /// The kind.
    pub kind: Kind,
    /// The MTS identifier.
    pub identifier: &'a str,
    /// The MTS identifier of the subject of a report.
    pub about: &'a str,
    /// The O/R address of the originator.
    pub originator: &'a str,
    /// The sender: `peer:NAME`, `local`, `gateway:NAME`.
    pub source: &'a str,
    /// The content type.
    pub content_type: &'a str,
    /// The destinations of the parts.
    pub destinations: Texts<'a>,
    /// The O/R addresses of the recipients.
    pub recipients: Texts<'a>,
}

/// Texts one behind the other, each behind its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texts<'a> {
    count: usize,
    octets: &'a [u8],
}

impl<'a> Texts<'a> {
    /// The number of texts.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no text.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut rest = self.octets;
        std::iter::from_fn(move || text(&mut rest))
    }
}

/// Reads fields; `None` unless exactly the fields of an entry are there.
pub(crate) fn decode(octets: &[u8]) -> Option<Fields<'_>> {
    let mut rest = octets.get(FIXED..)?;
    let kind = octets.get(16..20)?;
    let (destinations, recipients) = (u32_at(octets, 20)?, u32_at(octets, 24)?);
    let fields = Fields {
        at: Timestamp::from_millis(u64_at(octets, 0)?),
        trace: TraceId::new(u64_at(octets, 8)?),
        kind: Kind::of_code(*kind.first()?)?,
        identifier: text(&mut rest)?,
        about: text(&mut rest)?,
        originator: text(&mut rest)?,
        source: text(&mut rest)?,
        content_type: text(&mut rest)?,
        destinations: texts_of(&mut rest, destinations)?,
        recipients: texts_of(&mut rest, recipients)?,
    };
    (rest.is_empty() && kind.ends_with(&[0; 3])).then_some(fields)
}

fn texts_of<'a>(rest: &mut &'a [u8], count: u32) -> Option<Texts<'a>> {
    let count = usize::try_from(count).ok()?;
    let octets = *rest;
    for _ in 0..count {
        text(rest)?;
    }
    let octets = octets.get(..octets.len().checked_sub(rest.len())?)?;
    Some(Texts { count, octets })
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(u32_at(rest, 0)?).ok()?;
    let (text, behind) = rest.get(LENGTH..)?.split_at_checked(length)?;
    *rest = behind;
    std::str::from_utf8(text).ok()
}
