//! Names on stable storage.

use std::fs::File;
use std::io;
use std::path::Path;

/// Brings the names in a directory to stable storage.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
