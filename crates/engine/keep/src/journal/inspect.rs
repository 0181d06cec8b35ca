//! The inspection of a journal without a mount, such as a journal set aside: every record is read, and the folder stays unchanged.

use vere_ports::storage::{Storage, StorageFile as _};

use super::Journal;
use super::error::JournalError;
use super::head::{HEAD, read_head, segments_of};
use super::outcomes::Outcomes;
use super::reading::{has_record, read_records};
use crate::record::Part;

impl<S: Storage> Journal<S> {
    /// Hands the records of a folder to `see`, with their positions, and leaves the folder as it is. A torn end is no fault, unless
    /// a whole record stands behind: a start would leave the record out.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn inspect(
        storage: &S,
        key: &[u8; 32],
        mut see: impl FnMut(u64, Vec<Part>),
    ) -> Result<(), JournalError> {
        let names = segments_of(storage)?;
        let mut outcomes = Outcomes::default();
        let mut see = |position, parts| outcomes.take(position, parts, &mut see);
        let mut before: Option<(String, u64, u64)> = None;
        let count = names.len();
        for (number, (first, name)) in names.into_iter().enumerate() {
            let is_last = number.saturating_add(1) == count;
            let file = storage.open(&name)?;
            let length = file.len()?;
            let Some(random) = read_head(&file, length, first, &name)? else {
                // The power went before the head was whole.
                return match is_last && length <= HEAD {
                    true => Ok(()),
                    false => Err(JournalError::Damaged { file: name, at: 0 }),
                };
            };
            if let Some((file, at, end)) = before
                && end != first
            {
                return Err(JournalError::Damaged { file, at });
            }
            let of = (&random, first, length);
            let end = read_records(key, (&file, name.as_str()), of, &mut see)?;
            let at = HEAD.saturating_add(end.saturating_sub(first));
            if is_last && has_record(key, &file, of, at)? {
                return Err(JournalError::Damaged { file: name, at });
            }
            before = Some((name, at, end));
        }
        Ok(())
    }
}
