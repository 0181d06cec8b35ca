//! Reads a file in windows: a sequence of small reads at the price of a few large reads.

use std::io;

use vere_ports::storage::StorageFile;

/// Octets read at once.
pub(super) const WINDOW: usize = 1024 * 1024;

/// Reads a file in windows.
pub(crate) struct Windowed<'a, F> {
    file: &'a F,
    len: u64,
    at: u64,
    octets: Vec<u8>,
}

impl<'a, F: StorageFile> Windowed<'a, F> {
    pub(crate) fn new(file: &'a F, len: u64) -> Self {
        Self {
            file,
            len,
            at: 0,
            octets: Vec::new(),
        }
    }

    /// `count` octets from `offset` on; absent when the file ends before.
    pub(crate) fn get(&mut self, offset: u64, count: usize) -> io::Result<Option<&[u8]>> {
        if offset + count as u64 > self.len {
            return Ok(None);
        }
        let held = self.at..self.at + self.octets.len() as u64;
        if offset < held.start || offset + count as u64 > held.end {
            let want = (self.len - offset).min(count.max(WINDOW) as u64);
            self.octets
                .resize(usize::try_from(want).map_err(io::Error::other)?, 0);
            self.file.read_at(&mut self.octets, offset)?;
            self.at = offset;
        }
        let start = (offset - self.at) as usize;
        Ok(self.octets.get(start..start + count))
    }
}
