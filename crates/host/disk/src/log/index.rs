//! Indexes: the data of a full segment that a restart needs, in a file beside the segment.
//!
//! ```text
//! head     0  magic "VEREIDX" 0 (8) | format version u32 = 1 | version of the outlines u32
//!         16  log id u64 | segment number u64 | position u64 | end u64
//!         48  payload length u64 | crc32 of the payload u32 | crc32 of the segment's head u32
//!         64  crc32 of octets 0..64 u32
//! payload 68  for each entry: content length u32 | outline length u32 | outline, the engine's
//! ```
//! All numbers are little-endian. *position* and *end* are the positions of the segment's entries. An
//! index is written once all octets of its segment are synced, and used only if it fits the segment's
//! head and the head of the following segment: otherwise the segment is read whole.

use std::io;

use vere_ports::spool_log::{LogOutliner, OutlinedEntry, UnreadableEntry};
use vere_ports::storage::{Storage, StorageFile};

use super::format::{ENTRY_LEN, HEAD_LEN, Head};
use super::octets::Octets;

/// The version written and read.
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"VEREIDX\0";
/// Octets before the payload.
const INDEX_HEAD_LEN: usize = 68;
/// Octets of an entry in the payload, before the outline.
const FIXED_LEN: usize = 8;

/// A segment followed by another segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sealed {
    pub(super) log_id: u64,
    pub(super) number: u64,
    /// The position of the first entry.
    pub(super) position: u64,
    /// Where the next segment begins.
    pub(super) end: u64,
}

impl Sealed {
    /// Octets of the entries.
    pub(super) const fn octets(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }
}

/// The outlines of a segment.
#[derive(Debug)]
pub(super) struct Index {
    payload: Vec<u8>,
    /// Octets before this position were synced, as the entries record or as their presence proves.
    pub(super) synced: u64,
}

/// Why a segment has no index.
#[derive(Debug)]
pub(super) enum NoIndex {
    /// The content differs from the written content, from this offset on.
    Damaged(u64),
    /// The engine cannot interpret the entries.
    Unreadable(UnreadableEntry),
    /// The file cannot be read.
    Io(io::Error),
}

impl From<io::Error> for NoIndex {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for NoIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(offset) => write!(f, "damaged at offset {offset}"),
            Self::Unreadable(error) => f.write_str(&error.0),
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// Reads a whole segment and makes its index.
pub(super) fn build<F: StorageFile>(
    file: &F,
    segment: Sealed,
    outliner: &LogOutliner,
) -> Result<Index, NoIndex> {
    let file_len = file.len()?;
    let mut octets = Octets::new(file, file_len);
    let head = octets
        .at(0, HEAD_LEN as u64)?
        .and_then(<[u8]>::first_chunk)
        .and_then(|head| Head::decode(head).ok())
        .filter(|head| is_head_of(head, segment))
        .ok_or(NoIndex::Damaged(0))?;
    let payload = octets.at(HEAD_LEN as u64, u64::from(head.payload_len))?;
    if payload.is_none_or(|payload| vere_checksum::crc32(payload) != head.payload_crc) {
        return Err(NoIndex::Damaged(0));
    }
    let mut index = Index {
        payload: Vec::new(),
        synced: head.synced,
    };
    let (mut offset, mut position) = (head.entries_at(), segment.position);
    while position < segment.end {
        let found = octets.entry(offset, segment.log_id)?;
        let (entry, content) = found
            .filter(|(entry, _)| entry.position == position)
            .ok_or(NoIndex::Damaged(offset))?;
        index.synced = index.synced.max(entry.synced);
        let out = &mut index.payload;
        out.extend_from_slice(&entry.payload_len.to_le_bytes());
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        (outliner.outline)(content, out).map_err(NoIndex::Unreadable)?;
        let len = u32::try_from(out.len() - at - 4).map_err(io::Error::other)?;
        out[at..at + 4].copy_from_slice(&len.to_le_bytes());
        offset += entry.len();
        position += entry.len();
    }
    if position == segment.end {
        Ok(index)
    } else {
        Err(NoIndex::Damaged(offset))
    }
}

fn is_head_of(head: &Head, segment: Sealed) -> bool {
    let is = (head.log_id, head.number, head.position);
    is == (segment.log_id, segment.number, segment.position)
}

/// Reads the index of a segment with this head and this many octets; `None` without a matching index.
pub(super) fn load<S: Storage>(
    storage: &S,
    segment: Sealed,
    head: &Head,
    file_len: u64,
    outliner: &LogOutliner,
) -> io::Result<Option<Index>> {
    let file = match storage.open(&index_name(segment.number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let len = file.len()?;
    // An outline is never longer than its entry: no memory is taken for more.
    if len < INDEX_HEAD_LEN as u64 || len > file_len.saturating_add(INDEX_HEAD_LEN as u64) {
        return Ok(None);
    }
    let ends_there = head.entries_at().saturating_add(segment.octets()) <= file_len;
    let mut first = [0; INDEX_HEAD_LEN];
    file.read_at(&mut first, 0)?;
    let payload_len = len - INDEX_HEAD_LEN as u64;
    let mut wanted = Vec::with_capacity(INDEX_HEAD_LEN);
    write_head(
        &mut wanted,
        segment,
        head_crc(head),
        outliner.version,
        payload_len,
    );
    // Everything but the checksums is known.
    if !ends_there || first[..56] != wanted[..56] || first[60..64] != wanted[60..64] {
        return Ok(None);
    }
    let payload_len = usize::try_from(payload_len).map_err(io::Error::other)?;
    let mut payload = vec![0; payload_len];
    file.read_at(&mut payload, INDEX_HEAD_LEN as u64)?;
    let crc =
        |at: usize| -> Option<u32> { Some(u32::from_le_bytes(*first.get(at..)?.first_chunk()?)) };
    if crc(56) != Some(vere_checksum::crc32(&payload))
        || crc(64) != Some(vere_checksum::crc32(&first[..64]))
    {
        return Ok(None);
    }
    let index = Index {
        payload,
        synced: segment.end,
    };
    Ok(index.fits(segment, outliner).then_some(index))
}

/// A checksum that identifies a segment's head.
fn head_crc(head: &Head) -> u32 {
    let octets = head.encode();
    vere_checksum::crc32(&octets)
}

/// Appends the head of an index, without its checksums: zeros stand there.
fn write_head(out: &mut Vec<u8>, segment: Sealed, head: u32, outlines: u32, payload_len: u64) {
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&outlines.to_le_bytes());
    for number in [
        segment.log_id,
        segment.number,
        segment.position,
        segment.end,
        payload_len,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&head.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

impl Index {
    /// The entries, the first of which begins at `offset` in the file.
    pub(super) fn entries(
        &self,
        segment: Sealed,
        mut offset: u64,
    ) -> impl Iterator<Item = (OutlinedEntry, &[u8])> {
        let mut position = segment.position;
        let mut rest = self.payload.as_slice();
        std::iter::from_fn(move || {
            let (len, outline, after) = split(rest)?;
            let entry = OutlinedEntry {
                segment: segment.number,
                offset,
                position,
                len,
            };
            let taken = ENTRY_LEN as u64 + u64::from(len);
            (offset, position, rest) = (offset + taken, position + taken, after);
            Some((entry, outline))
        })
    }

    /// Whether the entries fill the segment, and each outline is plausible.
    fn fits(&self, segment: Sealed, outliner: &LogOutliner) -> bool {
        let (mut rest, mut left) = (self.payload.as_slice(), segment.octets());
        while !rest.is_empty() {
            let Some((len, outline, after)) = split(rest) else {
                return false;
            };
            let Some(less) = left.checked_sub(ENTRY_LEN as u64 + u64::from(len)) else {
                return false;
            };
            if !(outliner.check)(outline, len) {
                return false;
            }
            (rest, left) = (after, less);
        }
        left == 0
    }

    /// Writes the index into its file, replacing an existing file. On return the content is on stable
    /// storage, but not the name.
    pub(super) fn write<S: Storage>(
        &self,
        storage: &S,
        segment: Sealed,
        outlines: u32,
    ) -> io::Result<()> {
        let file = storage.open(&super::format::segment_name(segment.number))?;
        let mut head = [0; HEAD_LEN];
        file.read_at(&mut head, 0)?;
        let mut first = Vec::with_capacity(INDEX_HEAD_LEN);
        let len = self.payload.len() as u64;
        write_head(
            &mut first,
            segment,
            vere_checksum::crc32(&head),
            outlines,
            len,
        );
        first[56..60].copy_from_slice(&vere_checksum::crc32(&self.payload).to_le_bytes());
        let crc = vere_checksum::crc32(&first[..64]);
        first[64..].copy_from_slice(&crc.to_le_bytes());
        remove(storage, segment.number)?;
        let file = storage.create(&index_name(segment.number))?;
        file.write_at([&first, &self.payload], 0)?;
        file.sync()
    }
}

/// The first entry of a payload: content length, outline, and what follows.
fn split(payload: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (&[c0, c1, c2, c3, o0, o1, o2, o3], rest) = payload.split_first_chunk::<FIXED_LEN>()?;
    let outline = u32::from_le_bytes([o0, o1, o2, o3]) as usize;
    let (outline, rest) = rest.split_at_checked(outline)?;
    Some((u32::from_le_bytes([c0, c1, c2, c3]), outline, rest))
}

/// Removes the index of a segment, if present.
pub(super) fn remove<S: Storage>(storage: &S, number: u64) -> io::Result<()> {
    match storage.remove(&index_name(number)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The file of a segment's index.
pub(super) fn index_name(number: u64) -> String {
    format!("{number:016x}.index")
}

/// The segment number of an index file, if the file is an index.
pub(super) fn index_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".index")?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (index_name(number) == name).then_some(number)
}
