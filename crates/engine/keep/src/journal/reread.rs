//! Reading a journal in use once more, for octets outside memory.

use vere_ports::storage::{Storage, StorageFile as _};

use super::head::read_head;
use super::{HEAD, Journal, JournalError, Read};
use crate::record::Part;

impl<S: Storage> Journal<S> {
    /// Hands every record on the disk to `see`, with the position. Records in wait for room are left out.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn reread(&self, mut see: impl FnMut(u64, Vec<Part>)) -> Result<(), JournalError> {
        for segment in &self.segments {
            let length = segment.file.len()?;
            let head = read_head(&segment.file, length, segment.first, &segment.name)?;
            let Some(random) = head else {
                continue;
            };
            let mut position = segment.first;
            loop {
                let at = HEAD.saturating_add(position.saturating_sub(segment.first));
                match self.read_record(&segment.file, &random, at, length, position)? {
                    Read::Record(parts, octets) => {
                        see(position, parts);
                        position = position.saturating_add(octets);
                    }
                    Read::Unsealed => {
                        let file = segment.name.clone();
                        return Err(JournalError::Key { file });
                    }
                    Read::End => break,
                }
            }
        }
        Ok(())
    }
}
