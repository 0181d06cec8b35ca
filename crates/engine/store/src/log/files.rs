//! The files of the log that together hold everything before a position, for copies of the log.

use vere_ports::storage::{Storage, StorageFile as _};

use super::format::{SEGMENT_HEAD, segment_name};
use super::{Log, Segment};
use crate::error::StoreError;

/// A file of the log, as far as it belongs to a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The name in the directory of the log.
    pub name: String,
    /// The octets that belong to the copy, from the beginning of the file.
    pub octets: u64,
}

impl<S: Storage> Log<S> {
    /// Returns the files that together hold every synced record, in the order of positions. Later appends change
    /// no octet of them; reclaiming does.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the length of a file cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<LogFile>, StoreError> {
        let synced = self.segments.range(..self.synced);
        synced
            .map(|(first, segment)| {
                Ok(LogFile {
                    name: segment_name(*first),
                    octets: self.synced_octets(*first, segment)?,
                })
            })
            .collect()
    }

    /// Octets of a segment's file up to the last synced record.
    fn synced_octets(&self, first: u64, segment: &Segment<S::File>) -> Result<u64, StoreError> {
        if segment.index.is_some() {
            // The index at the end of the file belongs to the segment.
            let len = segment.file.len();
            return len.map_err(|error| StoreError::Failed(error.to_string()));
        }
        let end = self.segment_end(first).min(self.synced);
        Ok(SEGMENT_HEAD as u64 + end.saturating_sub(first))
    }
}
