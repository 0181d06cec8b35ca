//! A mark for the next start: a sync of the journal has failed.
//!
//! The system counts octets of a failed sync as written, though the disk may lack them. After a kill, a start reads them, and
//! would go on behind records that a power cut takes away. So the start writes the last segment anew. A power cut in between
//! takes octets and mark away alike.

use std::io;

use vere_ports::storage::{Storage, StorageFile};

const MARK: &str = "journal-failed";
/// Octets written at once.
const STEP: u64 = 1 << 20;

/// Leaves the mark. A disk that takes no mark loses no more than the sync has lost.
pub(super) fn note<S: Storage>(storage: &S) {
    let _exists = storage.create(MARK);
}

/// Writes the last segment anew if the mark is there.
pub(super) fn mend<S: Storage>(storage: &S, last: Option<&str>) -> io::Result<()> {
    if !storage.list()?.iter().any(|name| name == MARK) {
        return Ok(());
    }
    if let Some(last) = last {
        let file = storage.open(last)?;
        let length = file.len()?;
        let mut at = 0;
        while at < length {
            let octets = STEP.min(length.saturating_sub(at));
            let mut buffer = vec![0; usize::try_from(octets).unwrap_or(0)];
            file.read_at(&mut buffer, at)?;
            file.write_at([&buffer, &[]], at)?;
            at = at.saturating_add(octets);
        }
        file.sync()?;
    }
    storage.remove(MARK)
}
