//! Readers: without the help of a writer, beside a writer, within bounded memory.
//!
//! An index is a copy of the fields of a segment and never needed: what an index lacks is read from the segment.

mod content;
mod find;
mod folder;
mod found;
mod issue;
mod query;
mod row;
mod scan;
mod segment;
mod verify;
mod window;

use std::fs::File;
use std::io;

pub(crate) use content::is_content_sound;
pub use content::{copy_content, describe};
pub use find::{Page, SearchSummary, find};
pub(crate) use folder::{days, segments};
pub use found::Found;
pub use issue::{Issue, Issues};
pub use query::Query;
pub(crate) use row::Row;
pub(crate) use segment::Segment;
pub use verify::{Verified, check_segment, verify};

/// Octets that are read at places.
pub trait ReadAt {
    /// Reads up to the length of the buffer; 0 at the end.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Fills the buffer; false if the octets end before.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    fn fill_at(&self, buffer: &mut [u8], at: u64) -> io::Result<bool> {
        let (mut rest, mut at) = (buffer, at);
        while !rest.is_empty() {
            match self.read_at(rest, at) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    rest = rest.get_mut(read..).unwrap_or_default();
                    at = at.saturating_add(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, at)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let there = self.get(from..).unwrap_or_default();
        let read = there.len().min(buffer.len());
        for (place, octet) in buffer.iter_mut().zip(there) {
            *place = *octet;
        }
        Ok(read)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        (**self).read_at(buffer, at)
    }
}
