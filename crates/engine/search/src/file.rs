//! A segment's file: every read is verified by checksums.

use std::ops::Range;

use vere_ports::storage::StorageFile;

use crate::SearchError;
use crate::codec::u32_at;
use crate::format::{BLOCK, HEAD, Head};

/// Octets of the first read, which usually include head and checksums.
const FRONT: u64 = 16 * 1024;

/// A file with checksums for its blocks.
#[derive(Debug)]
pub(crate) struct Checked<F> {
    file: F,
    /// Where the data begins.
    start: u64,
    data: u64,
    sums: Vec<u8>,
}

impl<F: StorageFile> Checked<F> {
    /// Reads head and checksums, in a single read if short.
    pub(crate) fn open(file: F) -> Result<(Self, Head), SearchError> {
        let len = file.len()?;
        if len < HEAD as u64 {
            return Err(SearchError::Damaged);
        }
        let mut front = vec![0; len.min(FRONT) as usize];
        file.read_at(&mut front, 0)?;
        let (head, data) = Head::decode(&front[..HEAD]).ok_or(SearchError::Damaged)?;
        // No length is trusted before comparison with the size of the file.
        let blocks = data.div_ceil(BLOCK as u64);
        let sums_len = blocks.checked_mul(4).and_then(|sums| sums.checked_add(4));
        let start = sums_len.and_then(|sums| sums.checked_add(HEAD as u64));
        let whole = start.and_then(|start| start.checked_add(data));
        let (Some(start), true) = (start, whole == Some(len)) else {
            return Err(SearchError::Damaged);
        };
        let read = front.len();
        front.resize(start as usize, 0);
        if read < front.len() {
            file.read_at(&mut front[read..], read as u64)?;
        }
        let mut sums = front.split_off(HEAD);
        let sum = u32_at(&sums, sums.len() - 4);
        sums.truncate(sums.len() - 4);
        if sum != Some(vere_checksum::crc32(&sums)) {
            return Err(SearchError::Damaged);
        }
        let checked = Self {
            file,
            start,
            data,
            sums,
        };
        Ok((checked, head))
    }

    /// Reads the blocks of a range, and returns the beginning of the first block.
    pub(crate) fn blocks(&self, range: &Range<u64>) -> Result<(u64, Vec<u8>), SearchError> {
        let block = BLOCK as u64;
        let start = range.start / block * block;
        let end = range
            .end
            .div_ceil(block)
            .saturating_mul(block)
            .min(self.data);
        if range.end > end || start > end {
            return Err(SearchError::Damaged);
        }
        let mut octets = vec![0; (end - start) as usize];
        self.file.read_at(&mut octets, self.start + start)?;
        for (number, block) in octets.chunks(BLOCK).enumerate() {
            let at = (start as usize / BLOCK + number) * 4;
            if u32_at(&self.sums, at) != Some(vere_checksum::crc32(block)) {
                return Err(SearchError::Damaged);
            }
        }
        Ok((start, octets))
    }

    /// A range, from the part read last if that part contains the range, or by a new read.
    pub(crate) fn within<'a>(
        &self,
        part: &'a mut (u64, Vec<u8>),
        range: &Range<u64>,
    ) -> Result<&'a [u8], SearchError> {
        let read = part.0..part.0 + part.1.len() as u64;
        if range.is_empty() {
            return Ok(&[]);
        }
        if range.start < read.start || range.end > read.end {
            *part = self.blocks(range)?;
        }
        let from = (range.start - part.0) as usize;
        let octets = part.1.get(from..from + (range.end - range.start) as usize);
        octets.ok_or(SearchError::Damaged)
    }

    /// Reads a range.
    pub(crate) fn read(&self, range: &Range<u64>) -> Result<Vec<u8>, SearchError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let (start, mut octets) = self.blocks(range)?;
        octets.truncate((range.end - start) as usize);
        octets.drain(..(range.start - start) as usize);
        Ok(octets)
    }

    /// Octets of the file.
    pub(crate) fn octets(&self) -> u64 {
        self.start + self.data
    }
}
