//! Reading a journal in use once more, for octets outside memory.

use vere_ports::storage::{Storage, StorageFile as _};

use super::head::read_head;
use super::outcomes::Outcomes;
use super::reading::read_records;
use super::{Journal, JournalError};
use crate::record::Part;

impl<S: Storage> Journal<S> {
    /// Hands every record on the disk to `see`, with the position. Records in wait for room are left out.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn reread(&self, mut see: impl FnMut(u64, Vec<Part>)) -> Result<(), JournalError> {
        let mut outcomes = Outcomes::default();
        let mut see = |position, parts| outcomes.take(position, parts, &mut see);
        for segment in &self.segments {
            let length = segment.file.len()?;
            let head = read_head(&segment.file, length, segment.first, &segment.name)?;
            if let Some(random) = head {
                let of = (&segment.file, segment.name.as_str());
                read_records(&self.key, of, (&random, segment.first, length), &mut see)?;
            }
        }
        Ok(())
    }
}
