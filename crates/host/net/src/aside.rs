//! Private files, written beside their final place.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Writes and syncs a file beside `path`, readable by the owner only, and returns the path of the file: the caller
/// renames or links the file into place, so that readers never find a partial file, or a file with wider
/// permissions. Several processes may do so at once.
///
/// # Errors
/// The file cannot be created or written.
pub fn write_private(path: &Path, octets: &[u8]) -> io::Result<PathBuf> {
    let aside = path.with_extension(format!("new-{}", std::process::id()));
    write_private_at(&aside, octets)?;
    Ok(aside)
}

/// Writes and syncs a private file at exactly this path, used by a single process.
///
/// # Errors
/// The file cannot be created or written.
pub(crate) fn write_private_at(aside: &Path, octets: &[u8]) -> io::Result<()> {
    // A file left by a crash may have other permissions.
    match std::fs::remove_file(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(aside)?;
    let written = file.write_all(octets).and_then(|()| file.sync_all());
    if written.is_err() {
        // A part of a key is not to lie about; the first error is what counts.
        let _ = std::fs::remove_file(aside);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_a_crash_left_behind_gives_nobody_rights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        let aside = write_private(&path, b"long and old").unwrap();
        assert!(!path.exists());
        fs::set_permissions(&aside, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(write_private(&path, b"new").unwrap(), aside);
        assert_eq!(fs::read(&aside).unwrap(), b"new");
        let mode = fs::metadata(&aside).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
