//! A part of a file in memory, which moves with the reader.

use std::io;

use super::ReadAt;

/// Octets that are read at once.
const WINDOW_OCTETS: usize = 128 << 10;

/// A file with the octets around the last place.
pub(super) struct Window<'a, F: ?Sized> {
    file: &'a F,
    length: u64,
    buffer: Vec<u8>,
    start: u64,
}

impl<'a, F: ReadAt + ?Sized> Window<'a, F> {
    /// The first `length` octets of a file.
    pub(super) const fn new(file: &'a F, length: u64) -> Self {
        Self {
            file,
            length,
            buffer: Vec::new(),
            start: 0,
        }
    }

    /// The octets at a place; `None` if the file ends before. The caller has checked `len` against a bound.
    pub(super) fn slice(&mut self, at: u64, len: usize) -> io::Result<Option<&[u8]>> {
        let there = self.length.saturating_sub(at);
        if (len as u64) > there {
            return Ok(None);
        }
        if self.place(at, len).is_none() {
            let most = usize::try_from(there).unwrap_or(usize::MAX);
            self.buffer.clear();
            self.buffer.resize(len.max(WINDOW_OCTETS.min(most)), 0);
            self.start = at;
            if !self.file.fill_at(&mut self.buffer, at)? {
                // The writer has cut the file meanwhile.
                self.buffer.clear();
                return Ok(None);
            }
        }
        Ok(self.place(at, len).and_then(|range| self.buffer.get(range)))
    }

    fn place(&self, at: u64, len: usize) -> Option<std::ops::Range<usize>> {
        let from = usize::try_from(at.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(len)?;
        (to <= self.buffer.len()).then_some(from..to)
    }
}
