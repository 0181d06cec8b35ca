//! Opening a log: finds the end of the log, cuts a torn last record, and separates damage from a torn write.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use vere_ports::storage::{Storage, StorageFile};

use super::error::{OpenError, io_error};
use super::format::{
    FIRST_POSITION, HeadError, PAYLOAD_MAX, RECORD_HEAD, RecordHead, RecordKind, SEGMENT_HEAD,
    SegmentHead, segment_name, segment_position,
};
use super::reach::{goes_on_to, proof_behind};
use super::rewrite::{joined, read_index, records};
use super::spare::{SPARES, Spare};
use super::windowed::{WINDOW, Windowed};
use super::{Log, Segment};

/// Takes what a log held, in order.
pub(crate) trait Replay {
    /// A record.
    ///
    /// # Errors
    ///
    /// What is wrong with its payload, whose checksum is right.
    fn record(&mut self, head: &RecordHead, payload: &[u8]) -> Result<(), String>;
}

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenReport {
    /// Records replayed into the metadata.
    pub replayed: u64,
    /// Octets behind the last whole record that were cut: writes that a crash tore, none acknowledged.
    pub cut: u64,
}

/// A segment found on the disk.
#[derive(Debug)]
pub(super) struct Found<F> {
    pub(super) file: F,
    pub(super) len: u64,
    /// Absent if the head is damaged.
    pub(super) head: Option<SegmentHead>,
}

/// The end of the intact log.
struct End {
    /// The position after the last intact record.
    position: u64,
    /// The position before which every record is proven to have been synced.
    proven: u64,
}

impl<S: Storage> Log<S> {
    /// Opens a log and passes every record from the position `from` on to `replay`. Earlier records were applied to
    /// the metadata and so were synced. Without any segments, starts a log under `new_id`; fails if `new_id` is none.
    pub(crate) fn open(
        storage: S,
        (segment_size, spare): (u64, u64),
        new_id: Option<u64>,
        from: u64,
        replay: &mut dyn Replay,
    ) -> Result<(Self, OpenReport), OpenError> {
        let mut found = find(&storage)?;
        let from = from.max(FIRST_POSITION);
        let mut log = Self {
            id: new_id.unwrap_or_default(),
            storage,
            segment_size,
            segments: Arc::default(),
            buffer: Vec::new(),
            written: FIRST_POSITION,
            synced: FIRST_POSITION,
            touched: Vec::new(),
            names: false,
            syncing: false,
            spare: Spare::default(),
            failed: None,
        };
        let mut report = OpenReport::default();
        if found.values().all(|segment| segment.head.is_none()) {
            refuse_headless(&found)?;
            if from > FIRST_POSITION || new_id.is_none() {
                return Err(missing(
                    from,
                    "the log is missing, although its metadata exists",
                ));
            }
        } else {
            log.id = identify(&found)?;
            let end = scan(&found, log.id, from, replay, &mut report)?;
            log.adopt(&mut found, &end, &mut report)?;
        }
        report.cut += log.clear_away(found)?;
        log.find_spare(spare).map_err(io_error(SPARES[0]))?;
        Ok((log, report))
    }

    /// Adopts the segments before the end, and syncs records not yet proven to be synced.
    fn adopt(
        &mut self,
        found: &mut BTreeMap<u64, Found<S::File>>,
        end: &End,
        report: &mut OpenReport,
    ) -> Result<(), OpenError> {
        (self.written, self.synced) = (end.position, end.position);
        let behind = found.split_off(&end.position);
        let kept = std::mem::replace(found, behind);
        let newest = kept.keys().next_back().copied();
        for (first, segment) in kept {
            let name = segment_name(first);
            let error = io_error(&name);
            let mut room = segment.len;
            let mut index = None;
            if segment.head.is_some_and(|head| head.end > 0) {
                room = 0;
                let read = read_index(&segment.file).map_err(&error)?;
                let (read, _) = read.ok_or_else(|| OpenError::Damaged {
                    file: name.clone(),
                    offset: segment.len,
                    reason: "no index".to_owned(),
                })?;
                index = Some(read);
            } else if Some(first) == newest {
                let used = SEGMENT_HEAD as u64 + (end.position - first);
                report.cut += count_cut(&segment.file, used, segment.len).map_err(&error)?;
                segment.file.truncate(used).map_err(&error)?;
                room = used;
                if used < self.segment_size {
                    match segment.file.allocate(self.segment_size) {
                        Ok(()) => room = self.segment_size,
                        // The disk lacks space for the whole file: a part already allocated is freed for other files.
                        Err(_) => segment.file.truncate(used).map_err(&error)?,
                    }
                }
            }
            if end.proven < end.position {
                write_again(&segment.file, first, end.proven).map_err(&error)?;
            }
            let file = segment.file;
            Arc::make_mut(&mut self.segments).insert(first, Segment { file, room, index });
        }
        Ok(())
    }

    /// Removes segments without any synced record. Returns the octets behind their heads.
    fn clear_away(&mut self, found: BTreeMap<u64, Found<S::File>>) -> Result<u64, OpenError> {
        let mut octets = 0;
        for (first, segment) in found {
            let name = segment_name(first);
            let cut = count_cut(&segment.file, SEGMENT_HEAD as u64, segment.len);
            octets += cut.map_err(io_error(&name))?;
            self.storage.remove(&name).map_err(io_error(&name))?;
        }
        self.storage.sync().map_err(io_error("."))?;
        Ok(octets)
    }
}

fn missing(offset: u64, reason: &str) -> OpenError {
    OpenError::Damaged {
        file: "log".to_owned(),
        offset,
        reason: reason.to_owned(),
    }
}

/// Refuses a log without an intact segment head if any segment has records. No crash leaves a new log in this state:
/// the head of the first segment is safe before the first record is written.
fn refuse_headless<F: StorageFile>(found: &BTreeMap<u64, Found<F>>) -> Result<(), OpenError> {
    for (first, segment) in found {
        let file = segment_name(*first);
        let held = count_cut(&segment.file, SEGMENT_HEAD as u64, segment.len);
        if held.map_err(io_error(&file))? > 0 {
            return Err(OpenError::Damaged {
                file,
                offset: 0,
                reason: "the head of the segment is incomplete, and the segment is not empty"
                    .to_owned(),
            });
        }
    }
    Ok(())
}

/// Opens the existing segments.
fn find<S: Storage>(storage: &S) -> Result<BTreeMap<u64, Found<S::File>>, OpenError> {
    let mut found = BTreeMap::new();
    for name in storage.list().map_err(io_error("."))? {
        let Some(first) = segment_position(&name) else {
            if name.ends_with(".new") {
                // The leftover of an interrupted rewrite.
                storage.remove(&name).map_err(io_error(&name))?;
            }
            continue;
        };
        let segment = look_at(storage, &name, first)?;
        found.insert(first, segment);
    }
    let heads = found
        .iter()
        .map(|(first, found)| (*first, &found.file, found.head));
    for first in joined(heads)? {
        found.remove(&first);
        let name = segment_name(first);
        storage.remove(&name).map_err(io_error(&name))?;
    }
    Ok(found)
}

pub(super) fn look_at<S: Storage>(
    storage: &S,
    name: &str,
    first: u64,
) -> Result<Found<S::File>, OpenError> {
    let error = io_error(name);
    let file = storage.open(name).map_err(&error)?;
    let len = file.len().map_err(&error)?;
    if len < SEGMENT_HEAD as u64 {
        return Ok(Found {
            file,
            len,
            head: None,
        });
    }
    let mut octets = [0; SEGMENT_HEAD];
    file.read_at(&mut octets, 0).map_err(&error)?;
    let head = match SegmentHead::decode(&octets) {
        Ok(head) => Some(head).filter(|head| head.first == first),
        Err(HeadError::Damaged) => None,
        Err(HeadError::Version(version)) => {
            let file = name.to_owned();
            return Err(OpenError::Version { file, version });
        }
    };
    Ok(Found { file, len, head })
}

/// Returns the number of the log, which all segments share.
fn identify<F>(found: &BTreeMap<u64, Found<F>>) -> Result<u64, OpenError> {
    let mut ids = found
        .iter()
        .filter_map(|(first, segment)| Some((first, segment.head?.log)));
    let id = ids.next().map(|(_, id)| id).unwrap_or_default();
    match ids.find(|(_, other)| *other != id) {
        None => Ok(id),
        Some((first, _)) => Err(OpenError::Damaged {
            file: segment_name(*first),
            offset: 0,
            reason: "the segment belongs to another store".to_owned(),
        }),
    }
}

/// Passes every record from `from` on to `replay`, and finds the end of the log.
fn scan<F: StorageFile>(
    found: &BTreeMap<u64, Found<F>>,
    id: u64,
    from: u64,
    replay: &mut dyn Replay,
    report: &mut OpenReport,
) -> Result<End, OpenError> {
    // A newer segment with a torn head has no records applied to the metadata.
    let mut before = found.range(..=from).rev();
    let start = before.find(|(first, segment)| segment.head.is_some() || **first < from);
    let start = start.map(|(first, _)| *first);
    let Some(start) = start else {
        return Err(missing(from, "the beginning of the log is missing"));
    };
    let mut end = End {
        position: from,
        proven: from,
    };
    let reaches = |segment: &Found<F>| {
        let again = segment.head.is_some_and(|head| head.end > 0);
        again || SEGMENT_HEAD as u64 + (from - start) <= segment.len
    };
    let segment = found
        .get(&start)
        .filter(|segment| segment.head.is_some() && reaches(segment));
    let was_taken = match segment {
        Some(segment) => {
            goes_on_to(segment, (start, id), from).map_err(io_error(&segment_name(start)))?
        }
        None => false,
    };
    if !was_taken {
        return Err(OpenError::Damaged {
            file: segment_name(start),
            offset: 0,
            reason: "it ends before what was taken from it".to_owned(),
        });
    }
    for (first, segment) in found.range(start..) {
        let name = segment_name(*first);
        let Some(head) = segment.head.filter(|_| *first <= end.position) else {
            break;
        };
        if head.end > 0 {
            scan_again(segment, &head, &mut end, replay, report)?;
            continue;
        }
        let mut reader = Windowed::new(&segment.file, segment.len);
        while let Some(head) =
            whole(&mut reader, *first, id, end.position).map_err(io_error(&name))?
        {
            let offset = SEGMENT_HEAD as u64 + (end.position - first);
            let payload = reader.get(offset + RECORD_HEAD as u64, head.length as usize);
            let payload = payload.map_err(io_error(&name))?.unwrap_or_default();
            refuse_unknown(&head, &name, offset)?;
            let done = replay.record(&head, payload);
            done.map_err(|reason| OpenError::Damaged {
                file: name.clone(),
                offset,
                reason,
            })?;
            report.replayed += 1;
            end.proven = end.proven.max(head.synced);
            end.position = head.end();
        }
    }
    refuse_damage(found, id, &end)?;
    Ok(end)
}

/// Passes the records of a segment written again to `replay`. The segment was synced before the rename.
fn scan_again<F: StorageFile>(
    segment: &Found<F>,
    head: &SegmentHead,
    end: &mut End,
    replay: &mut dyn Replay,
    report: &mut OpenReport,
) -> Result<(), OpenError> {
    let name = segment_name(head.first);
    let damaged = |offset: u64, reason: &str| OpenError::Damaged {
        file: name.clone(),
        offset,
        reason: reason.to_owned(),
    };
    let index = read_index(&segment.file).map_err(io_error(&name))?;
    let (_, records_end) = index.ok_or_else(|| damaged(segment.len, "no index"))?;
    let mut reader = Windowed::new(&segment.file, records_end);
    let all = records(&mut reader, head.first, head.end, head.log).map_err(io_error(&name))?;
    let mut at = SEGMENT_HEAD as u64;
    for (record, offset) in all {
        at = offset + RECORD_HEAD as u64 + u64::from(record.length);
        refuse_unknown(&record, &name, offset)?;
        if record.position < end.position {
            continue;
        }
        let payload = reader.get(offset + RECORD_HEAD as u64, record.length as usize);
        let payload = payload.map_err(io_error(&name))?.unwrap_or_default();
        if vere_checksum::crc32(payload) != record.payload_crc {
            return Err(damaged(offset, "checksum"));
        }
        replay
            .record(&record, payload)
            .map_err(|reason| damaged(offset, &reason))?;
        report.replayed += 1;
    }
    if at != records_end {
        return Err(damaged(at, "not a record"));
    }
    end.position = end.position.max(head.end);
    end.proven = end.proven.max(head.end);
    Ok(())
}

/// Refuses a record of an unknown kind.
pub(super) fn refuse_unknown(head: &RecordHead, file: &str, offset: u64) -> Result<(), OpenError> {
    match head.kind {
        RecordKind::Body | RecordKind::Batch => Ok(()),
        RecordKind::Other(kind) => Err(OpenError::Kind {
            file: file.to_owned(),
            offset,
            kind,
        }),
    }
}

/// Returns the head of the record at a position, if the record is complete and intact.
fn whole<F: StorageFile>(
    reader: &mut Windowed<'_, F>,
    first: u64,
    id: u64,
    position: u64,
) -> io::Result<Option<RecordHead>> {
    let offset = SEGMENT_HEAD as u64 + (position - first);
    let head = reader.get(offset, RECORD_HEAD)?;
    let head = head.and_then(|octets| RecordHead::decode(octets.first_chunk()?, id));
    let Some(head) = head.filter(|head| head.position == position) else {
        return Ok(None);
    };
    if head.length as usize > PAYLOAD_MAX {
        return Ok(None);
    }
    let payload = reader.get(offset + RECORD_HEAD as u64, head.length as usize)?;
    let right = payload.is_some_and(|payload| vere_checksum::crc32(payload) == head.payload_crc);
    Ok(right.then_some(head))
}

/// Fails if a record behind the end proves that missing records had been synced.
fn refuse_damage<F: StorageFile>(
    found: &BTreeMap<u64, Found<F>>,
    id: u64,
    end: &End,
) -> Result<(), OpenError> {
    let newest = found.range(..end.position.saturating_add(1)).next_back();
    let Some((first, _)) = newest else {
        return Ok(());
    };
    for (other, segment) in found.range(first..) {
        let name = segment_name(*other);
        let skip = end.position.saturating_sub(*other) + SEGMENT_HEAD as u64;
        let proof = proof_behind(&segment.file, segment.len, skip, id, end.position);
        if let Some(claim) = proof.map_err(io_error(&name))? {
            let offset = SEGMENT_HEAD as u64 + (end.position - first);
            return Err(OpenError::Damaged {
                file: segment_name(*first),
                offset,
                reason: format!("{name} says that everything before position {claim} was synced"),
            });
        }
    }
    Ok(())
}

/// Returns the number of octets behind `used`, up to the last octet other than zero.
fn count_cut<F: StorageFile>(file: &F, used: u64, len: u64) -> io::Result<u64> {
    let mut end = len;
    let mut octets = Vec::new();
    while end > used {
        let count = (end - used).min(WINDOW as u64);
        octets.resize(usize::try_from(count).map_err(io::Error::other)?, 0);
        file.read_at(&mut octets, end - count)?;
        if let Some(last) = octets.iter().rposition(|octet| *octet != 0) {
            return Ok(end - count + last as u64 + 1 - used);
        }
        end -= count;
    }
    Ok(0)
}

/// Writes all octets from `proven` on once more and syncs the file. After a failed sync or a crash, a system may
/// regard pages as clean that never reached the disk.
fn write_again<F: StorageFile>(file: &F, first: u64, proven: u64) -> io::Result<()> {
    let len = file.len()?;
    let mut offset = SEGMENT_HEAD as u64 + proven.saturating_sub(first);
    if offset == SEGMENT_HEAD as u64 {
        offset = 0;
    }
    let mut octets = Vec::new();
    while offset < len {
        let count = (len - offset).min(WINDOW as u64);
        octets.resize(usize::try_from(count).map_err(io::Error::other)?, 0);
        file.read_at(&mut octets, offset)?;
        file.write_at([&octets, &[]], offset)?;
        offset += count;
    }
    file.sync()
}
