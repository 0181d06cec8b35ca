//! The files of a log during recovery.

use std::io;

use vere_ports::storage::StorageFile;

use super::format::{ENTRY_LEN, Entry, Head};
use super::spares::write_zeros;

/// Octets read at once.
pub(super) const READ_AT_ONCE: u64 = 1 << 20;

/// A file that may be a segment.
#[derive(Debug, Clone)]
pub(super) struct SegmentFile<F> {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) file: F,
    /// Octets of the file.
    pub(super) file_len: u64,
    /// The end of the entries, known after reading.
    pub(super) len: u64,
    /// The head, known after reading.
    pub(super) head: Option<Head>,
}

impl<F: StorageFile> SegmentFile<F> {
    /// Zeros all octets from `from` on that are not zero, and shortens the file to at most `len`
    /// octets.
    pub(super) fn wipe(&self, from: u64, len: u64) -> io::Result<()> {
        let end = self.file_len.min(len.max(from));
        if end < self.file_len {
            self.file.truncate(end)?;
        }
        let mut octets = Octets::new(&self.file, end);
        let mut at = from;
        while at < end {
            let part = READ_AT_ONCE.min(end - at);
            let there = octets.at(at, part)?.unwrap_or_default();
            if there.iter().any(|octet| *octet != 0) {
                write_zeros(&self.file, at, at + part)?;
            }
            at += part;
        }
        Ok(())
    }
}

/// The greatest positions recorded in entries.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) synced: u64,
    /// Where one ends.
    pub(super) end: u64,
}

/// A file read in pieces.
pub(super) struct Octets<'a, F> {
    file: &'a F,
    len: u64,
    buffer: Vec<u8>,
    begin: u64,
}

impl<'a, F: StorageFile> Octets<'a, F> {
    pub(super) const fn new(file: &'a F, len: u64) -> Self {
        Self {
            file,
            len,
            buffer: Vec::new(),
            begin: 0,
        }
    }

    /// Reads this many octets from `offset` on; `None` when the file ends before. Memory is reserved
    /// only for octets within the file.
    pub(super) fn at(&mut self, offset: u64, len: u64) -> io::Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(len).filter(|end| *end <= self.len) else {
            return Ok(None);
        };
        if offset < self.begin || end > self.begin + self.buffer.len() as u64 {
            let ahead = len.max(READ_AT_ONCE).min(self.len - offset);
            self.buffer
                .resize(usize::try_from(ahead).map_err(io::Error::other)?, 0);
            self.file.read_at(&mut self.buffer, offset)?;
            self.begin = offset;
        }
        let start = (offset - self.begin) as usize;
        Ok(Some(&self.buffer[start..start + len as usize]))
    }

    /// The entry at `offset` with its payload.
    pub(super) fn entry(&mut self, offset: u64, log_id: u64) -> io::Result<Option<(Entry, &[u8])>> {
        let header = self
            .at(offset, ENTRY_LEN as u64)?
            .and_then(<[u8]>::first_chunk);
        let Some(entry) = header.and_then(|header| Entry::decode(header, log_id)) else {
            return Ok(None);
        };
        let payload = self.at(offset + ENTRY_LEN as u64, u64::from(entry.payload_len))?;
        let whole = |payload: &&[u8]| vere_checksum::crc32(payload) == entry.payload_crc;
        Ok(payload.filter(whole).map(|payload| (entry, payload)))
    }

    /// The greatest positions recorded in the headers of entries anywhere from `offset` on. The payload
    /// of such an entry may be damaged.
    pub(super) fn search(
        &mut self,
        mut offset: u64,
        log_id: u64,
        head: Option<Head>,
    ) -> io::Result<Found> {
        let id = log_id.to_le_bytes();
        let mut most = Found::default();
        while offset + ENTRY_LEN as u64 <= self.len {
            let part = READ_AT_ONCE.min(self.len - offset);
            let octets = self.at(offset, part)?.unwrap_or_default();
            for found in memchr::memmem::find_iter(octets, &id) {
                let Some(header) = octets[found..].first_chunk() else {
                    continue;
                };
                let at = offset + found as u64;
                let placed = |entry: &Entry| {
                    head.is_none_or(|head| {
                        at.checked_sub(head.entries_at())
                            .is_some_and(|skip| head.position + skip == entry.position)
                    })
                };
                if let Some(entry) = Entry::decode(header, log_id).filter(placed) {
                    most.synced = most.synced.max(entry.synced);
                    most.end = most.end.max(entry.position.saturating_add(entry.len()));
                }
            }
            if part < READ_AT_ONCE {
                break;
            }
            // An entry may lie across the border.
            offset += part - (ENTRY_LEN as u64 - 1);
        }
        Ok(most)
    }
}
