//! A mark for the next start: a sync of the journal has failed.
//!
//! The system counts octets of a failed sync as written, though the disk may lack them. After a kill, a start reads them, and
//! would go on behind records that a power cut takes away. So the start writes the last two segments anew: the sync may have been
//! one of a segment whose successor began meanwhile. A power cut in between takes octets and mark away alike.

use std::io;

use vere_ports::storage::{Storage, StorageFile};

const MARK: &str = "journal-failed";
/// Segments perhaps concerned by a failed sync.
const SEGMENTS: usize = 2;
/// Octets written at once.
const STEP: u64 = 1 << 20;

/// Leaves the mark. A disk that takes no mark loses no more than the sync has lost.
pub(super) fn note<S: Storage>(storage: &S) {
    let _exists = storage.create(MARK);
}

/// Writes the last segments anew if the mark is there.
pub(super) fn mend<'a, S: Storage>(
    storage: &S,
    last: impl Iterator<Item = &'a str>,
) -> io::Result<()> {
    if !storage.list()?.iter().any(|name| name == MARK) {
        return Ok(());
    }
    for name in last.take(SEGMENTS) {
        rewrite(&storage.open(name)?)?;
    }
    storage.remove(MARK)
}

fn rewrite<F: StorageFile>(file: &F) -> io::Result<()> {
    let length = file.len()?;
    let mut at = 0;
    while at < length {
        let octets = STEP.min(length.saturating_sub(at));
        let mut buffer = vec![0; usize::try_from(octets).unwrap_or(0)];
        file.read_at(&mut buffer, at)?;
        file.write_at([&buffer, &[]], at)?;
        at = at.saturating_add(octets);
    }
    file.sync()
}
