//! Directories that only their owner may enter.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

/// Mode of folders with mail.
const PRIVATE: u32 = 0o700;

/// Makes a folder that only its owner may enter, and closes an existing folder to other users. The metadata engine
/// makes files inside the folder as well, with modes of its own.
///
/// # Errors
/// When the folder cannot be made, or its mode cannot be changed.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE)
        .create(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & !PRIVATE & 0o777 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(PRIVATE))?;
    }
    Ok(())
}
