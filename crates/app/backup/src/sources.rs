//! The files read for a backup.

pub(crate) mod files;
pub(crate) mod log;
pub(crate) mod walk;

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::UNIX_EPOCH;

use crate::manifest::Mark;

const NANOS: i128 = 1_000_000_000;

/// The identity of a file.
pub(crate) fn mark(metadata: &Metadata) -> Mark {
    let born = metadata.created().ok();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    Mark {
        inode: metadata.ino(),
        born: born.and_then(|born| i128::try_from(born.as_nanos()).ok()),
        modified: i128::from(metadata.mtime()) * NANOS + i128::from(metadata.mtime_nsec()),
        changed: i128::from(metadata.ctime()) * NANOS + i128::from(metadata.ctime_nsec()),
    }
}
