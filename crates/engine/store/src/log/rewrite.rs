//! Writing a segment again without needless records.
//!
//! Remaining records are copied octet by octet and keep their positions. A rename replaces the old file by the new
//! file atomically. An index at the end of the new file lists the offsets of records; every eighth entry is kept in
//! memory.

use std::io;
use std::sync::Arc;

use vere_ports::storage::{Storage, StorageFile};

use super::error::{OpenError, io_error};
use super::format::{RECORD_HEAD, RecordHead, SEGMENT_HEAD, SegmentHead, segment_name, u64_at};
use super::windowed::Windowed;

/// Records between two entries of an index.
const SPARSE: usize = 8;
/// Octets of an index entry: position and offset.
const ENTRY: usize = 16;
/// Octets of the trailer behind the index: offset of the index, number of entries, checksum of the index, checksum of
/// these three.
const TRAILER: usize = 24;
/// Octets gathered before a write.
const BUFFER: usize = 1024 * 1024;
/// Unsynced octets from which the new file is synced, so that no sync of the log has to wait for many octets at once.
const UNSYNCED: u64 = 4 * 1024 * 1024;

/// Every eighth record of a segment that was written again: position and offset, rising.
pub(crate) type Index = Arc<Vec<(u64, u64)>>;

/// The file of a segment in the making.
pub(crate) fn new_name(first: u64) -> String {
    format!("{first:016x}.new")
}

#[derive(Debug)]
pub(crate) struct Made<F> {
    pub(crate) file: F,
    pub(crate) index: Index,
    pub(crate) len: u64,
    pub(crate) saved: u64,
}

/// A record and where it lies.
pub(crate) type Placed = (RecordHead, u64);

/// Writes records to the file that will take the place of a segment, and syncs it.
pub(crate) fn write<S: Storage>(
    storage: &S,
    head: SegmentHead,
    reader: &mut Windowed<'_, S::File>,
    stay: &[Placed],
) -> io::Result<Made<S::File>> {
    let mut out = Rewriting::new(storage, &head)?;
    for (head, offset) in stay {
        out.begin(head.position);
        let count = RECORD_HEAD + head.length as usize;
        let octets = reader
            .get(*offset, count)?
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        if vere_checksum::crc32(&octets[RECORD_HEAD..]) != head.payload_crc {
            return Err(io::Error::other(format!(
                "the record at {} is damaged",
                head.position
            )));
        }
        out.put(octets)?;
    }
    out.finish()
}

/// The file that will take the place of a segment, in the making.
#[derive(Debug)]
pub(crate) struct Rewriting<F> {
    file: F,
    buffer: Vec<u8>,
    written: u64,
    synced: u64,
    index: Vec<(u64, u64)>,
    records: usize,
}

impl<F: StorageFile> Rewriting<F> {
    /// Begins one; what is left of an earlier one goes.
    pub(crate) fn new<S: Storage<File = F>>(storage: &S, head: &SegmentHead) -> io::Result<Self> {
        let name = new_name(head.first);
        match storage.remove(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Self {
            file: storage.create(&name)?,
            buffer: head.encode().to_vec(),
            written: 0,
            synced: 0,
            index: Vec::new(),
            records: 0,
        })
    }

    fn at(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The record at a position of the log follows.
    pub(crate) fn begin(&mut self, position: u64) {
        if self.records.is_multiple_of(SPARSE) {
            self.index.push((position, self.at()));
        }
        self.records += 1;
    }

    /// Takes octets of a record.
    pub(crate) fn put(&mut self, octets: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(octets);
        if self.buffer.len() > BUFFER {
            self.flush()?;
        }
        if self.written - self.synced > UNSYNCED {
            self.file.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at([&self.buffer, &[]], self.written)?;
        self.written = self.at();
        self.buffer.clear();
        Ok(())
    }

    /// Writes the index, and syncs.
    pub(crate) fn finish(mut self) -> io::Result<Made<F>> {
        let start = self.at();
        let octets: Vec<u8> = self
            .index
            .iter()
            .flat_map(|(position, offset)| [position.to_le_bytes(), offset.to_le_bytes()])
            .flatten()
            .collect();
        self.put(&octets)?;
        let mut trailer = Vec::with_capacity(TRAILER);
        trailer.extend_from_slice(&start.to_le_bytes());
        trailer.extend_from_slice(&(self.index.len() as u64).to_le_bytes());
        trailer.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
        trailer.extend_from_slice(&vere_checksum::crc32(&trailer).to_le_bytes());
        self.put(&trailer)?;
        self.flush()?;
        self.file.sync()?;
        Ok(Made {
            file: self.file,
            index: Arc::new(self.index),
            len: self.written,
            saved: 0,
        })
    }
}

/// The heads of a segment's records, up to the position `end`, and where they lie.
pub(crate) fn records<F: StorageFile>(
    reader: &mut Windowed<'_, F>,
    first: u64,
    end: u64,
    log: u64,
) -> io::Result<Vec<Placed>> {
    let mut records = Vec::new();
    let (mut offset, mut position) = (SEGMENT_HEAD as u64, first);
    while position < end {
        let head = reader.get(offset, RECORD_HEAD)?;
        let head = head.and_then(|octets| RecordHead::decode(octets.first_chunk()?, log));
        match head.filter(|head| head.position >= position && head.end() <= end) {
            Some(head) => {
                records.push((head, offset));
                (offset, position) = (offset + (head.end() - head.position), head.end());
            }
            // The last records of a segment that was written again may be gone.
            None => break,
        }
    }
    Ok(records)
}

/// Reads the index at the end of a segment that was written again, and where its records end.
pub(crate) fn read_index<F: StorageFile>(file: &F) -> io::Result<Option<(Index, u64)>> {
    let len = file.len()?;
    let Some(at) = len.checked_sub(TRAILER as u64) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER];
    file.read_at(&mut trailer, at)?;
    let crc = |octets: &[u8], at: usize| {
        vere_checksum::crc32(octets) == super::format::u32_at(&trailer, at)
    };
    let (start, count) = (u64_at(&trailer, 0), u64_at(&trailer, 8));
    let fits = count
        .checked_mul(ENTRY as u64)
        .and_then(|octets| start.checked_add(octets))
        == Some(at);
    if !crc(&trailer[..20], 20) || !fits {
        return Ok(None);
    }
    let mut octets = vec![0; (at - start) as usize];
    file.read_at(&mut octets, start)?;
    if !crc(&octets, 16) {
        return Ok(None);
    }
    let entry = |entry: &[u8]| (u64_at(entry, 0), u64_at(entry, 8));
    Ok(Some((
        Arc::new(octets.chunks_exact(ENTRY).map(entry).collect()),
        start,
    )))
}

/// Returns the segments whose records all lie in an earlier, joined segment. A crash came after the joined segment
/// was written and before the old files were removed. `segments` is in order of position.
pub(super) fn joined<'a, F: StorageFile + 'a>(
    segments: impl Iterator<Item = (u64, &'a F, Option<SegmentHead>)>,
) -> Result<Vec<u64>, OpenError> {
    let (mut all, mut end, mut log) = (Vec::new(), 0, 0);
    for (first, file, head) in segments {
        if first < end && head.is_none_or(|head| head.log == log) {
            all.push(first);
            continue;
        }
        // An intact index proves the segment complete, because the index was written last.
        if let Some(head) = head.filter(|head| head.end > 0)
            && read_index(file)
                .map_err(io_error(&segment_name(first)))?
                .is_some()
        {
            (end, log) = (head.end, head.log);
        }
    }
    Ok(all)
}

/// Returns the offset of the record at a position, in a segment that was written again.
pub(crate) fn find<F: StorageFile>(
    file: &F,
    index: &Index,
    log: u64,
    position: u64,
) -> io::Result<Option<u64>> {
    let Some(at) = index
        .partition_point(|(each, _)| *each <= position)
        .checked_sub(1)
    else {
        return Ok(None);
    };
    let mut offset = index[at].1;
    for _ in 0..SPARSE {
        let mut octets = [0; RECORD_HEAD];
        match file.read_at(&mut octets, offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        match RecordHead::decode(&octets, log) {
            Some(head) if head.position < position => offset += head.end() - head.position,
            Some(head) if head.position == position => return Ok(Some(offset)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Replaces the old file by the new file. On return the replacement survives a crash.
pub(crate) fn replace<S: Storage>(storage: &S, first: u64) -> io::Result<()> {
    storage.rename(&new_name(first), &segment_name(first))?;
    storage.sync()
}
