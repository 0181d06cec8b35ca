//! Reading a log that may be damaged: finds every intact record, and the stretches without records. A survey changes
//! no file; [`Survey::mend`] writes damaged segments again, with the remaining records.

use std::collections::BTreeMap;
use std::io;

use memchr::memmem;
use vere_ports::storage::{Storage, StorageFile};

use super::error::{OpenError, io_error};
use super::files::LogFile;
use super::format::{
    FIRST_POSITION, PAYLOAD_MAX, RECORD_HEAD, RecordHead, SEGMENT_HEAD, SegmentHead, segment_name,
    segment_position,
};
use super::recover::{look_at, refuse_unknown};
use super::rewrite::{self, Placed, joined, read_index};
use super::windowed::{WINDOW, Windowed};

/// A stretch of positions without intact records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file of the lost positions, or the file before a missing file.
    pub file: String,
    /// The first lost position.
    pub from: u64,
    /// The position of the first intact record behind the damage.
    pub to: u64,
}

/// A segment as found on the disk.
#[derive(Debug)]
struct Surveyed<F> {
    file: F,
    len: u64,
    /// Absent if the head is damaged.
    head: Option<SegmentHead>,
    /// The position after the segment.
    end: u64,
    /// Whether the segment has to be written again.
    damaged: bool,
}

/// A log as found on the disk.
#[derive(Debug)]
pub(crate) struct Survey<F> {
    pub(crate) id: u64,
    /// The position after the last valid record; a record torn by a crash lies behind this position.
    pub(crate) end: u64,
    /// Synced stretches that are lost.
    pub(crate) damage: Vec<Damage>,
    segments: BTreeMap<u64, Surveyed<F>>,
}

/// Receives a record: head, offset in the file, payload.
type Visit<'a> = dyn FnMut(&RecordHead, u64, &[u8]) -> Result<(), OpenError> + 'a;

/// The result of a walk through a segment.
struct Walked {
    /// The position after the last record.
    position: u64,
    /// The offset in the file after the last record.
    offset: u64,
    /// Unexpected gaps between records, by position.
    gaps: Vec<(u64, u64)>,
    /// Whether octets that are no record lie before intact records.
    torn: bool,
}

impl<F: StorageFile> Survey<F> {
    /// Surveys all segments. Records before the position `applied` are known to have been synced.
    pub(crate) fn of<S: Storage<File = F>>(storage: &S, applied: u64) -> Result<Self, OpenError> {
        Self::within(storage, applied, &|_, len| Some(len), &|_| {})
    }

    /// Surveys the segments of a log that goes on growing, up to the octets that belonged to it when the position
    /// `synced` was the last safe one.
    pub(crate) fn of_growing<S: Storage<File = F>>(
        storage: &S,
        synced: u64,
        files: &[LogFile],
        told: &dyn Fn(u64),
    ) -> Result<Self, OpenError> {
        let part = |first, len: u64| {
            let name = segment_name(first);
            let known = files.iter().find(|file| file.name == name);
            match known {
                Some(file) => Some(len.min(file.octets)),
                None => (first < synced).then_some(len),
            }
        };
        Self::within(storage, synced, &part, told)
    }

    /// Surveys the segments for which `part` names the octets to be read, of all octets. `told` gets the octets of each
    /// segment that was read.
    fn within<S: Storage<File = F>>(
        storage: &S,
        applied: u64,
        part: &dyn Fn(u64, u64) -> Option<u64>,
        told: &dyn Fn(u64),
    ) -> Result<Self, OpenError> {
        let mut segments = BTreeMap::new();
        for name in storage.list().map_err(io_error("."))? {
            if let Some(first) = segment_position(&name) {
                let found = look_at(storage, &name, first)?;
                let Some(len) = part(first, found.len) else {
                    continue;
                };
                let segment = Surveyed {
                    file: found.file,
                    len,
                    head: found.head,
                    end: 0,
                    damaged: false,
                };
                segments.insert(first, segment);
            }
        }
        let heads = segments
            .iter()
            .map(|(first, each)| (*first, &each.file, each.head));
        for first in joined(heads)? {
            segments.remove(&first);
        }
        let mut survey = Self {
            id: identify(&segments)?,
            end: FIRST_POSITION,
            damage: Vec::new(),
            segments,
        };
        survey.look(applied, told)?;
        Ok(survey)
    }

    /// Finds gaps and the end.
    fn look(&mut self, applied: u64, told: &dyn Fn(u64)) -> Result<(), OpenError> {
        let firsts: Vec<u64> = self.segments.keys().copied().collect();
        let mut proven = applied;
        let mut gaps: Vec<(u64, u64, u64)> = Vec::new();
        if let Some(first) = firsts.first().filter(|first| **first > FIRST_POSITION) {
            gaps.push((FIRST_POSITION, FIRST_POSITION, *first));
        }
        for (number, first) in firsts.iter().enumerate() {
            let next = firsts.get(number + 1).copied();
            let mut claimed = 0;
            let walked = self.walk(*first, u64::MAX, &mut |head, _, _| {
                claimed = claimed.max(head.synced);
                Ok(())
            })?;
            let Some(segment) = self.segments.get_mut(first) else {
                continue;
            };
            told(segment.len);
            proven = proven.max(claimed);
            segment.damaged = segment.head.is_none() || walked.torn;
            segment.end = next.unwrap_or(walked.position);
            if let Some(head) = segment.head.filter(|head| head.end > 0) {
                // A segment written again was synced before the rename.
                proven = proven.max(head.end);
                segment.end = segment.end.max(head.end);
                if head.end < segment.end {
                    gaps.push((*first, head.end, segment.end));
                }
                let index = read_index(&segment.file).map_err(io_error(&segment_name(*first)))?;
                segment.damaged |= index.is_none_or(|(_, end)| end != walked.offset);
            } else if walked.position < segment.end {
                gaps.push((*first, walked.position, segment.end));
            }
            gaps.extend(walked.gaps.iter().map(|(from, to)| (*first, *from, *to)));
        }
        gaps.sort_unstable_by_key(|(_, from, _)| *from);
        self.settle(&gaps, proven);
        Ok(())
    }

    /// Separates lost records, which had been synced, from records that were never safe. The latter are cut, as on
    /// opening.
    fn settle(&mut self, gaps: &[(u64, u64, u64)], proven: u64) {
        let last = self.segments.values().next_back();
        let reached = last.map_or(FIRST_POSITION, |segment| segment.end);
        let torn = gaps.iter().find(|(_, from, _)| *from >= proven);
        self.end = torn.map_or(reached, |(_, from, _)| *from);
        for (first, from, to) in gaps.iter().filter(|(_, from, _)| *from < proven) {
            self.lose(*first, *from, (*to).min(self.end));
        }
        let end = self.end;
        self.segments.retain(|first, segment| {
            segment.end = segment.end.min(end);
            // A segment without valid records is removed when the log is opened.
            segment.damaged &= *first < end;
            *first <= end
        });
        if let Some((first, _)) = self.segments.last_key_value()
            && proven > end
        {
            // Positions are never reused: new records come behind the lost records.
            self.lose(*first, end, proven);
            self.end = proven;
        }
    }

    fn lose(&mut self, first: u64, from: u64, to: u64) {
        self.damage.push(Damage {
            file: segment_name(first),
            from,
            to,
        });
        if let Some(segment) = self.segments.get_mut(&first) {
            segment.damaged = true;
            segment.end = segment.end.max(to);
        }
    }

    /// Returns the files that have to be written again.
    pub(crate) fn unsound(&self) -> impl Iterator<Item = String> {
        let unsound = self.segments.iter().filter(|(_, each)| each.damaged);
        unsound.map(|(first, _)| segment_name(*first))
    }

    /// Passes every intact record before the end to `visit`, in order.
    pub(crate) fn records(&self, visit: &mut Visit<'_>) -> Result<(), OpenError> {
        for first in self.segments.keys() {
            self.walk(*first, self.end, visit)?;
        }
        Ok(())
    }

    /// Passes the intact records of a segment before a position to `visit`.
    fn walk(&self, first: u64, before: u64, visit: &mut Visit<'_>) -> Result<Walked, OpenError> {
        let mut walked = Walked {
            position: first,
            offset: SEGMENT_HEAD as u64,
            gaps: Vec::new(),
            torn: false,
        };
        let Some(segment) = self.segments.get(&first) else {
            return Ok(walked);
        };
        let name = segment_name(first);
        let next = self.segments.range(first.saturating_add(1)..).next();
        let limit = next.map_or(before, |(next, _)| before.min(*next));
        // Gaps are damage only in a segment never written again: rewriting leaves records out and does not list them.
        let dense = segment.head.is_some_and(|head| head.end == 0);
        let mut reader = Windowed::new(&segment.file, segment.len);
        let (mut offset, mut skipped) = (walked.offset, false);
        loop {
            let found = read_record(&mut reader, self.id, offset).map_err(io_error(&name))?;
            let fits = |head: &RecordHead| {
                let here = !dense || offset == SEGMENT_HEAD as u64 + (head.position - first);
                head.position >= walked.position && head.end() <= limit && here
            };
            if let Some((head, payload)) = found.filter(|(head, _)| fits(head)) {
                if (skipped || dense) && head.position > walked.position {
                    walked.gaps.push((walked.position, head.position));
                }
                refuse_unknown(&head, &name, offset)?;
                walked.torn |= skipped;
                skipped = false;
                visit(&head, offset, payload)?;
                walked.position = head.end();
                offset += head.end() - head.position;
                walked.offset = offset;
                continue;
            }
            match next_head(segment, self.id, offset + 1).map_err(io_error(&name))? {
                Some(next) => (offset, skipped) = (next, true),
                None => return Ok(walked),
            }
        }
    }

    /// Writes damaged segments again with their intact records. The original octets stay beside the new file as
    /// `*.damaged`. After a crash, mending can be repeated.
    pub(crate) fn mend<S: Storage<File = F>>(&self, storage: &S) -> Result<(), OpenError> {
        if let Some((first, segment)) = self.segments.first_key_value()
            && *first > FIRST_POSITION
        {
            let name = segment_name(FIRST_POSITION);
            let head = SegmentHead {
                log: self.id,
                first: FIRST_POSITION,
                end: *first,
            };
            let nothing = &mut Windowed::new(&segment.file, 0);
            let made = rewrite::write(storage, head, nothing, &[])
                .and_then(|_| rewrite::replace(storage, FIRST_POSITION));
            made.map_err(io_error(&name))?;
        }
        for (first, segment) in self.segments.iter().filter(|(_, each)| each.damaged) {
            let name = segment_name(*first);
            let mut records: Vec<Placed> = Vec::new();
            self.walk(*first, self.end, &mut |head, offset, _| {
                records.push((*head, offset));
                Ok(())
            })?;
            let mended = keep_aside(storage, &segment.file, *first)
                .and_then(|()| {
                    let mut reader = Windowed::new(&segment.file, segment.len);
                    let head = SegmentHead {
                        log: self.id,
                        first: *first,
                        end: segment.end,
                    };
                    rewrite::write(storage, head, &mut reader, &records)
                })
                .and_then(|_| rewrite::replace(storage, *first));
            mended.map_err(io_error(&name))?;
        }
        Ok(())
    }
}

/// Returns the number of the log, found in most segment heads. Without an intact head, the first record gives the
/// number.
fn identify<F: StorageFile>(segments: &BTreeMap<u64, Surveyed<F>>) -> Result<u64, OpenError> {
    let mut ids: BTreeMap<u64, usize> = BTreeMap::new();
    for head in segments.values().filter_map(|segment| segment.head) {
        *ids.entry(head.log).or_default() += 1;
    }
    if let Some((id, _)) = ids.into_iter().max_by_key(|(_, count)| *count) {
        return Ok(id);
    }
    for (first, segment) in segments {
        let name = segment_name(*first);
        let mut reader = Windowed::new(&segment.file, segment.len);
        let octets = reader.get(SEGMENT_HEAD as u64, RECORD_HEAD);
        let octets = octets.map_err(io_error(&name))?;
        let Some(octets) = octets.and_then(<[u8]>::first_chunk::<RECORD_HEAD>) else {
            continue;
        };
        let id = super::format::u64_at(octets, 0);
        if RecordHead::decode(octets, id).is_some() {
            return Ok(id);
        }
    }
    Err(OpenError::Damaged {
        file: "log".to_owned(),
        offset: 0,
        reason: "no segment head and no first record identifies the log".to_owned(),
    })
}

/// Returns the record that begins at an offset, if intact.
fn read_record<'a, F: StorageFile>(
    reader: &'a mut Windowed<'_, F>,
    id: u64,
    offset: u64,
) -> io::Result<Option<(RecordHead, &'a [u8])>> {
    let head = reader.get(offset, RECORD_HEAD)?;
    let head = head.and_then(|octets| RecordHead::decode(octets.first_chunk()?, id));
    let Some(head) = head.filter(|head| head.length as usize <= PAYLOAD_MAX) else {
        return Ok(None);
    };
    let payload = reader.get(offset + RECORD_HEAD as u64, head.length as usize)?;
    let whole = payload.filter(|payload| vere_checksum::crc32(payload) == head.payload_crc);
    Ok(whole.map(|payload| (head, payload)))
}

/// Returns the offset of the next record head, from an offset on.
fn next_head<F: StorageFile>(
    segment: &Surveyed<F>,
    id: u64,
    mut offset: u64,
) -> io::Result<Option<u64>> {
    let needle = id.to_le_bytes();
    let finder = memmem::Finder::new(&needle);
    let mut octets = Vec::new();
    while offset + RECORD_HEAD as u64 <= segment.len {
        let count = (segment.len - offset).min(WINDOW as u64);
        octets.resize(usize::try_from(count).map_err(io::Error::other)?, 0);
        segment.file.read_at(&mut octets, offset)?;
        let is_head = |at: &usize| {
            let head = octets[*at..].first_chunk();
            head.is_some_and(|head| RecordHead::decode(head, id).is_some())
        };
        if let Some(at) = finder.find_iter(&octets).find(is_head) {
            return Ok(Some(offset + at as u64));
        }
        // A head may lie across the border of two windows.
        offset += (count + 1).saturating_sub(RECORD_HEAD as u64).max(1);
    }
    Ok(None)
}

/// Copies a file, so that the original octets survive the replacement.
fn keep_aside<S: Storage>(storage: &S, file: &S::File, first: u64) -> io::Result<()> {
    let name = format!("{first:016x}.damaged");
    match storage.remove(&name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let copy = storage.create(&name)?;
    let (len, mut offset) = (file.len()?, 0);
    let mut octets = Vec::new();
    while offset < len {
        let count = (len - offset).min(WINDOW as u64);
        octets.resize(usize::try_from(count).map_err(io::Error::other)?, 0);
        file.read_at(&mut octets, offset)?;
        copy.write_at([&octets, &[]], offset)?;
        offset += count;
    }
    copy.sync()?;
    storage.sync()
}
