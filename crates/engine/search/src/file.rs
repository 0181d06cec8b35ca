//! A segment's file: what is read of it is what was written.

use std::ops::Range;

use vere_ports::storage::StorageFile;

use crate::SearchError;
use crate::codec::{u32_at, u64_at};
use crate::write::{BLOCK, FIXED, HEAD, MAGIC, Owner, SECTIONS, VERSION};

/// A file whose blocks have checksums.
#[derive(Debug)]
pub(crate) struct Checked<F> {
    file: F,
    data: u64,
    sums: Vec<u8>,
}

/// What the head says.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) owner: Owner,
    pub(crate) documents: usize,
    /// First and last UID.
    pub(crate) uids: (u32, u32),
    sections: Vec<Range<u64>>,
}

impl Head {
    /// Where a section lies.
    pub(crate) fn section(&self, number: usize) -> Range<u64> {
        self.sections.get(number).cloned().unwrap_or(0..0)
    }

    fn decode(head: &[u8]) -> Option<(Self, u64)> {
        let sum = u32_at(head, HEAD - 4)?;
        if !head.starts_with(MAGIC)
            || u32_at(head, 8)? != VERSION
            || crc32fast::hash(&head[..HEAD - 4]) != sum
        {
            return None;
        }
        let data = u64_at(head, 40)?;
        let mut sections = Vec::with_capacity(SECTIONS);
        for number in 0..SECTIONS {
            let start = u64_at(head, FIXED + number * 16)?;
            let end = start.checked_add(u64_at(head, FIXED + number * 16 + 8)?)?;
            sections.push(Some(start..end).filter(|section| section.end <= data)?);
        }
        let decoded = Self {
            documents: u32_at(head, 12)? as usize,
            owner: Owner {
                log: u64_at(head, 16)?,
                mailbox: u64_at(head, 24)?,
            },
            uids: (u32_at(head, 32)?, u32_at(head, 36)?),
            sections,
        };
        Some((decoded, data))
    }
}

impl<F: StorageFile> Checked<F> {
    /// Reads head and checksums.
    pub(crate) fn open(file: F) -> Result<(Self, Head), SearchError> {
        let mut head = vec![0; HEAD];
        file.read_at(&mut head, 0)?;
        let (head, data) = Head::decode(&head).ok_or(SearchError::Damaged)?;
        // No length is believed before it fits into the file.
        let blocks = data.div_ceil(BLOCK as u64);
        let whole = blocks.checked_mul(4).and_then(|sums| {
            sums.checked_add(4)?
                .checked_add(data)?
                .checked_add(HEAD as u64)
        });
        if whole != Some(file.len()?) {
            return Err(SearchError::Damaged);
        }
        let mut sums = vec![0; blocks as usize * 4 + 4];
        file.read_at(&mut sums, HEAD as u64 + data)?;
        let sum = u32_at(&sums, sums.len() - 4);
        sums.truncate(sums.len() - 4);
        if sum != Some(crc32fast::hash(&sums)) {
            return Err(SearchError::Damaged);
        }
        Ok((Self { file, data, sums }, head))
    }

    /// Reads the blocks that a range lies in, and gives where they begin.
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
        self.file.read_at(&mut octets, HEAD as u64 + start)?;
        for (number, block) in octets.chunks(BLOCK).enumerate() {
            let at = (start as usize / BLOCK + number) * 4;
            if u32_at(&self.sums, at) != Some(crc32fast::hash(block)) {
                return Err(SearchError::Damaged);
            }
        }
        Ok((start, octets))
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
        HEAD as u64 + self.data + self.sums.len() as u64 + 4
    }
}
