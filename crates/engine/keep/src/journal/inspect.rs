//! The inspection of a journal without a mount, such as a journal set aside: every record is read, and the folder stays unchanged.

use vere_ports::storage::{Storage, StorageFile};

use super::Journal;
use super::error::JournalError;
use super::head::{HEAD, RECORD_HEAD, read_head, segments_of};
use super::outcomes::Outcomes;
use super::reading::{Read, RecordHead, read_record, read_records};
use crate::record::Part;

/// Octets in which a record is looked for at once.
const WINDOW: u64 = 1 << 20;

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

/// Whether a whole record stands anywhere from a place on.
pub(super) fn has_record<F: StorageFile>(
    key: &[u8; 32],
    file: &F,
    (random, first, length): (&[u8; 16], u64, u64),
    from: u64,
) -> Result<bool, JournalError> {
    let mut at = from;
    while at.saturating_add(RECORD_HEAD) <= length {
        let octets = WINDOW.min(length.saturating_sub(at));
        let mut window = vec![0; usize::try_from(octets).unwrap_or(0)];
        file.read_at(&mut window, at)?;
        for (place, head) in (at..).zip(window.windows(RECORD_HEAD as usize)) {
            let position = first.saturating_add(place.saturating_sub(HEAD));
            if head.first_chunk() == Some(&position.to_le_bytes())
                && RecordHead::decode(head).is_some()
                && !matches!(
                    read_record(key, file, random, (place, length), position)?,
                    Read::End
                )
            {
                return Ok(true);
            }
        }
        // The next window begins with heads of which this window has a part.
        let step = octets.saturating_sub(RECORD_HEAD.saturating_sub(1));
        at = at.saturating_add(step.max(1));
    }
    Ok(false)
}
