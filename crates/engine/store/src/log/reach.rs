//! The reach of a segment: whether the records continue to a position, and whether a record behind proves that more
//! was synced.

use std::io;

use memchr::memmem;
use vere_ports::storage::StorageFile;

use super::format::{RECORD_HEAD, RecordHead, SEGMENT_HEAD};
use super::recover::Found;
use super::windowed::{WINDOW, Windowed};

/// Whether the records of a segment reach this position. A segment restored from an older copy ends earlier. A
/// damaged head proves nothing, and is left to a check.
pub(super) fn goes_on_to<F: StorageFile>(
    segment: &Found<F>,
    (first, id): (u64, u64),
    position: u64,
) -> io::Result<bool> {
    if segment.head.is_some_and(|head| head.end > 0) {
        return Ok(true);
    }
    let mut reader = Windowed::new(&segment.file, segment.len);
    let mut at = first;
    while at < position {
        let octets = reader.get(SEGMENT_HEAD as u64 + (at - first), RECORD_HEAD)?;
        let Some(octets) = octets.filter(|octets| octets.iter().any(|octet| *octet != 0)) else {
            return Ok(false);
        };
        let head = octets
            .first_chunk()
            .and_then(|octets| RecordHead::decode(octets, id));
        match head.filter(|head| head.position == at) {
            Some(head) => at = head.end(),
            None => return Ok(true),
        }
    }
    Ok(at == position)
}

/// The `synced` of a record behind `offset` that claims more than `position`.
pub(super) fn proof_behind<F: StorageFile>(
    file: &F,
    len: u64,
    mut offset: u64,
    id: u64,
    position: u64,
) -> io::Result<Option<u64>> {
    let needle = id.to_le_bytes();
    let finder = memmem::Finder::new(&needle);
    let mut octets = Vec::new();
    while offset + RECORD_HEAD as u64 <= len {
        let count = (len - offset).min(WINDOW as u64);
        octets.resize(usize::try_from(count).map_err(io::Error::other)?, 0);
        file.read_at(&mut octets, offset)?;
        for at in finder.find_iter(&octets) {
            let head = octets[at..]
                .first_chunk()
                .and_then(|head| RecordHead::decode(head, id));
            if let Some(head) = head.filter(|head| head.synced > position) {
                return Ok(Some(head.synced));
            }
        }
        // A head may lie across the border of two windows.
        offset += (count + 1).saturating_sub(RECORD_HEAD as u64).max(1);
    }
    Ok(None)
}
