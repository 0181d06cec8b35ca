//! An inspection of a journal without a mount.

use vere_keep::journal::{Journal, JournalError};
use vere_keep::record::Part;
use vere_ports::storage::Storage;

/// The content of a journal, in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inspected {
    /// Whole records.
    pub records: u64,
    /// The writer of the folder, if the journal has reserved numbers.
    pub writer: Option<u16>,
}

/// Reads a journal whole, and leaves the folder as it is. The key is the local key of the volume.
///
/// # Errors
/// [`JournalError`].
pub fn inspect<S: Storage>(storage: &S, key: &[u8; 32]) -> Result<Inspected, JournalError> {
    let mut inspected = Inspected::default();
    Journal::inspect(storage, key, |_, parts| {
        inspected.records = inspected.records.saturating_add(1);
        for part in parts {
            if let Part::Reserved { writer, .. } = part {
                inspected.writer = Some(writer);
            }
        }
    })?;
    Ok(inspected)
}

#[cfg(test)]
mod tests {
    use vere_faults::MemoryDisk;

    use super::*;

    #[test]
    fn the_last_writer_of_a_journal_counts() {
        let disk = MemoryDisk::default();
        let of = |disk: &MemoryDisk| inspect(disk, &[7; 32]).unwrap();
        assert_eq!(of(&disk), Inspected::default());
        let mut journal = Journal::open(disk.clone(), &[7; 32], [1; 16], |_, _| {}).unwrap();
        journal.append(&[Part::Drop(vec![1])]).unwrap();
        let mut expected = Inspected {
            records: 1,
            writer: None,
        };
        assert_eq!(of(&disk), expected);
        for writer in [3, 4] {
            let part = Part::Reserved {
                writer,
                sequence: 1,
                block: 1,
            };
            journal.append(&[part]).unwrap();
        }
        expected = Inspected {
            records: 3,
            writer: Some(4),
        };
        assert_eq!(of(&disk), expected);
        let error = inspect(&disk, &[8; 32]).unwrap_err();
        assert!(matches!(error, JournalError::Key { .. }), "{error}");
    }
}
