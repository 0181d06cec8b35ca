//! The FETCH response of a message (RFC 9051 section 7.5.2).

use std::ops::Range;

use bytes::Bytes;
use vere_mime::{EnvelopeView, Parsed};

use crate::command::{FetchItem, Part, Partial, Section};
use crate::date;
use crate::flags::{Flag, Flags};
use crate::message::{self, Content, Extract, UnknownEncoding};
use crate::write;

use super::Enabled;
use super::answer::{FlagsOf, Row};
use super::output::Output;
use super::selected::Selected;

/// Writes the flags of a message, with `\Recent` for clients that know the flag.
pub(super) fn flags(output: &mut Output, selected: &Selected, enabled: Enabled, row: &FlagsOf) {
    let mut before = "(";
    for flag in row.flags.iter() {
        output.text(before);
        match &flag {
            Flag::System(flag) => {
                output.text("\\");
                output.text(flag.name());
            }
            Flag::Keyword(word) => output.text(word),
        }
        before = " ";
    }
    if !enabled.rev2 && selected.recent.contains(row.uid) {
        output.text(before);
        output.text("\\Recent");
        before = " ";
    }
    output.text(if before == " " { ")" } else { "()" });
}

/// Announces keywords before their first use (RFC 9051 section 7.3.5).
pub(super) fn announce(output: &mut Output, selected: &mut Selected, flags: &Flags) {
    if selected.learn(flags) {
        known_flags(output, selected);
    }
}

/// Writes `FLAGS`, and the flags that clients can store.
pub(super) fn known_flags(output: &mut Output, selected: &Selected) {
    let mut names = String::from("\\Answered \\Flagged \\Deleted \\Seen \\Draft");
    for word in &selected.keywords {
        names.push(' ');
        names.push_str(word);
    }
    output.line(&format!("* FLAGS ({names})"));
    if selected.read_only {
        output.line("* OK [PERMANENTFLAGS ()] nothing can be stored");
    } else {
        output.line(&format!(
            "* OK [PERMANENTFLAGS ({names} \\*)] can be stored"
        ));
    }
}

/// A message whose response is being written.
#[derive(Debug)]
pub(super) struct RowWork {
    row: Row,
    number: u32,
    /// Whether this FETCH sets `\Seen`.
    seen: bool,
    /// How many items are written.
    written: usize,
    /// The parsed structure, decoded when first needed.
    parsed: Option<Parsed>,
    /// Decoded parts, together not longer than the message: encoded parts never overlap.
    decoded: Vec<(Vec<u32>, Bytes)>,
    /// The range of the message still to come in the open literal.
    to_come: Range<usize>,
}

/// How far a response is written.
pub(super) enum Written {
    Whole,
    /// Until as much waits as may.
    Full,
    /// Stopped at octets of a literal that are not in memory.
    UntilPiece,
}

/// The octets shown by an item.
enum Shown {
    Here(Bytes),
    /// This range of the message, which is not in memory.
    Behind(Range<usize>),
}

impl RowWork {
    pub(super) fn new(row: Row, number: u32, seen: bool) -> Self {
        Self {
            row,
            number,
            seen,
            written: 0,
            parsed: None,
            decoded: Vec::new(),
            to_come: 0..0,
        }
    }

    /// The next octets of the message, with its UID.
    pub(super) fn next_piece(&self, octets_max: usize) -> (crate::Uid, Range<usize>) {
        let first = self.to_come.start;
        let end = self.to_come.end.min(first.saturating_add(octets_max));
        (self.row.flags.uid, first..end)
    }

    /// Takes note of octets that came; says whether there are more to come.
    pub(super) fn piece_came(&mut self, octets: usize) -> bool {
        self.to_come.start = self.to_come.start.saturating_add(octets);
        !self.to_come.is_empty()
    }

    pub(super) fn memory(&self) -> usize {
        let decoded = self.decoded.iter().map(|(_, octets)| octets.len());
        decoded.fold(self.row.memory(), usize::saturating_add)
    }

    /// The octets of an extract: a range of the message, or new octets.
    fn octets(&self, found: Extract) -> Bytes {
        match found {
            Extract::Range(range) => self.row.content.slice(range),
            Extract::Made(octets) => Bytes::from(octets),
        }
    }

    fn shown(&self, found: Extract) -> Shown {
        match found {
            Extract::Range(range) if self.row.behind > 0 => Shown::Behind(range),
            found => Shown::Here(self.octets(found)),
        }
    }

    /// The decoded content of a part, decoded when it is first needed.
    pub(super) fn binary(&mut self, path: &[u32]) -> Result<Option<Bytes>, UnknownEncoding> {
        if let Some((_, octets)) = self.decoded.iter().find(|(known, _)| known == path) {
            return Ok(Some(octets.clone()));
        }
        let parsed = parsed(&mut self.parsed, &self.row);
        let Some(found) = content(&self.row).binary(parsed, path)? else {
            return Ok(None);
        };
        let is_made = matches!(found, Extract::Made(_));
        let octets = self.octets(found);
        if is_made {
            self.decoded.push((path.to_vec(), octets.clone()));
        }
        Ok(Some(octets))
    }
}

/// Writes the items of one message.
pub(super) struct RowWriter<'a> {
    pub(super) output: &'a mut Output,
    pub(super) selected: &'a mut Selected,
    pub(super) enabled: Enabled,
    /// Whether the content of the message is the section that is asked for.
    pub(super) is_cut: bool,
    /// Whether the extract is the header.
    pub(super) is_header: bool,
    pub(super) work: &'a mut RowWork,
    /// A part is encoded in a way that is not known.
    pub(super) unknown_encoding: bool,
}

impl RowWriter<'_> {
    /// Writes items with labels, until the output is full or octets are missing; returns whether the response
    /// is complete. The next call continues at the same place.
    pub(super) fn write(
        &mut self,
        items: &[FetchItem],
        labels: &[String],
        octets_max: usize,
    ) -> Written {
        let with_flags = self.work.seen && !items.contains(&FetchItem::Flags);
        for (item, label) in items.iter().zip(labels).skip(self.work.written) {
            if self.output.len() >= octets_max {
                return Written::Full;
            }
            match self.work.written {
                0 => self.begin(with_flags || items.contains(&FetchItem::Flags)),
                _ => self.output.text(" "),
            }
            self.item(item, label);
            self.work.written = self.work.written.saturating_add(1);
            if !self.work.to_come.is_empty() {
                return Written::UntilPiece;
            }
        }
        if with_flags {
            self.output.text(" ");
            self.flags();
        }
        self.output.line(")");
        Written::Whole
    }

    fn begin(&mut self, with_flags: bool) {
        let row = &self.work.row;
        if with_flags {
            announce(self.output, self.selected, &row.flags.flags);
            self.selected.told(&row.flags);
        }
        self.selected.shown(row.flags.mod_seq);
        self.output.text("* ");
        self.output.number(self.work.number.into());
        self.output.text(" FETCH (");
    }

    fn flags(&mut self) {
        self.output.text("FLAGS ");
        let of = &self.work.row.flags;
        flags(self.output, self.selected, self.enabled, of);
    }

    fn item(&mut self, item: &FetchItem, label: &str) {
        let row = &self.work.row;
        match item {
            FetchItem::Uid => {
                self.output.text("UID ");
                self.output.number(row.flags.uid.into());
            }
            FetchItem::Flags => self.flags(),
            FetchItem::InternalDate => {
                self.output.text("INTERNALDATE ");
                date::put_date_time(row.date, self.output.buffer());
            }
            FetchItem::Size => {
                self.output.text("RFC822.SIZE ");
                self.output.number(row.size);
            }
            FetchItem::ModSeq => {
                self.output.text("MODSEQ (");
                self.output.number(row.flags.mod_seq);
                self.output.text(")");
            }
            FetchItem::Envelope => {
                self.output.text("ENVELOPE ");
                let found = EnvelopeView::read(&row.parsed).unwrap_or_default();
                message::envelope(found, self.output.buffer());
            }
            FetchItem::Body => self.body_structure("BODY ", false),
            FetchItem::BodyStructure => self.body_structure("BODYSTRUCTURE ", true),
            FetchItem::Section {
                section, partial, ..
            } => self.section(label, section, *partial),
            FetchItem::Rfc822(part) => {
                let section = Section {
                    path: Vec::new(),
                    part: part.clone(),
                };
                self.section(label, &section, None);
            }
            FetchItem::Binary { path, partial, .. } => self.binary(label, path, *partial),
            FetchItem::BinarySize(path) => self.binary_size(label, path),
        }
    }

    fn body_structure(&mut self, label: &str, extended: bool) {
        self.output.text(label);
        let parsed = parsed(&mut self.work.parsed, &self.work.row);
        message::body_structure(parsed, extended, self.output.buffer());
    }

    fn section(&mut self, label: &str, section: &Section, partial: Option<Partial>) {
        let is_header = self.is_header && section.path.is_empty() && section.part == Part::Header;
        if self.is_cut || is_header {
            let all = match self.work.row.behind {
                // No other item shows content.
                0 if self.is_cut => Shown::Here(std::mem::take(&mut self.work.row.content)),
                0 => Shown::Here(self.work.row.content.clone()),
                behind => Shown::Behind(0..behind),
            };
            return self.string(label, Some(all), partial, "");
        }
        let content = content(&self.work.row);
        let found = match section.path.as_slice() {
            [] => Some(content.whole(&section.part)),
            _ => content.section(parsed(&mut self.work.parsed, &self.work.row), section),
        };
        let found = found.map(|found| self.work.shown(found));
        self.string(label, found, partial, "");
    }

    fn string(&mut self, label: &str, found: Option<Shown>, partial: Option<Partial>, mark: &str) {
        self.output.text(label);
        if let Some(partial) = partial {
            self.output.text(&format!("<{}>", partial.first));
        }
        let found = match found {
            None => return self.output.text(" NIL"),
            Some(Shown::Behind(range)) => {
                let range = match partial {
                    Some(partial) => within(&range, partial),
                    None => range,
                };
                self.output.text(" ");
                write::literal_head(self.output.buffer(), range.len());
                self.work.to_come = range;
                return;
            }
            Some(Shown::Here(found)) => found,
        };
        let found = match partial {
            Some(partial) => cut(&found, partial),
            None => found,
        };
        let found = if mark.is_empty() {
            without_nul(found)
        } else {
            found
        };
        self.output.text(" ");
        self.output.text(mark);
        write::literal_head(self.output.buffer(), found.len());
        self.output.content(found);
    }

    fn binary(&mut self, label: &str, path: &[u32], partial: Option<Partial>) {
        let found = self.work.binary(path);
        self.unknown_encoding |= found.is_err();
        let found = found.ok().flatten();
        let holds_nul = found
            .as_ref()
            .is_some_and(|found| memchr::memchr(0, found).is_some());
        let mark = if holds_nul { "~" } else { "" };
        self.string(label, found.map(Shown::Here), partial, mark);
    }

    fn binary_size(&mut self, label: &str, path: &[u32]) {
        let found = self.work.binary(path);
        self.unknown_encoding |= found.is_err();
        let size = found.ok().flatten().map_or(0, |found| found.len());
        self.output.text(label);
        self.output.text(" ");
        self.output.number(size as u64);
    }
}

/// The parsed structure of a message, decoded when first needed.
fn parsed<'a>(kept: &'a mut Option<Parsed>, row: &Row) -> &'a Parsed {
    kept.get_or_insert_with(|| {
        // A structure that the host cannot give is parsed again.
        let message = row.content.get(row.own..).unwrap_or_default();
        Parsed::decode(&row.parsed).unwrap_or_else(|_| Parsed::of(message))
    })
}

fn content(row: &Row) -> Content<'_> {
    Content {
        octets: &row.content,
        own: row.own,
        behind: row.behind,
        header: row.header,
    }
}

/// Replaces NUL, forbidden in literals (RFC 9051 section 9, CHAR8), by 0x80, so that every position and size is
/// unchanged. `BINARY[]` keeps NUL (RFC 3516 section 4.2).
pub(super) fn without_nul(octets: Bytes) -> Bytes {
    match memchr::memchr(0, &octets) {
        None => octets,
        Some(_) => octets
            .iter()
            .map(|octet| if *octet == 0 { write::FOR_NUL } else { *octet })
            .collect(),
    }
}

/// Of how much less than all its octets a range is copied.
const COPIED_BELOW: usize = 4;

/// A part of a range, cut at the end of the range.
fn within(range: &Range<usize>, partial: Partial) -> Range<usize> {
    let place = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let first = range
        .start
        .saturating_add(place(partial.first))
        .min(range.end);
    first..first.saturating_add(place(partial.count)).min(range.end)
}

/// A part of the octets, cut at the end of the octets. A small part is copied, so that the part does not keep
/// all octets in memory until sent.
pub(super) fn cut(octets: &Bytes, partial: Partial) -> Bytes {
    let place = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let first = place(partial.first).min(octets.len());
    let last = first.saturating_add(place(partial.count)).min(octets.len());
    let range = octets.slice(first..last);
    match range.len().saturating_mul(COPIED_BELOW) < octets.len() {
        true => Bytes::copy_from_slice(&range),
        false => range,
    }
}
