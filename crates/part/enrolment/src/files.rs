//! Files of certificates and keys: whole or not at all, and of the user that the system runs as.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use vere_net::aside::write_private;

use crate::EnrolmentError;

/// The user and group of new files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
}

impl Owner {
    /// The owner of a directory, such as the data directory: its files belong to the same user.
    ///
    /// # Errors
    /// The directory cannot be inspected.
    pub fn of(directory: &Path) -> Result<Self, EnrolmentError> {
        let found = fs::metadata(directory).map_err(EnrolmentError::file("inspect", directory))?;
        Ok(Self {
            user: found.uid(),
            group: found.gid(),
        })
    }

    /// Gives a file or directory to the owner. Without a change nothing needs permission.
    ///
    /// # Errors
    /// The process is not root, and the file belongs to another user.
    pub fn give(self, path: &Path) -> Result<(), EnrolmentError> {
        if Self::of(path)? == self {
            return Ok(());
        }
        std::os::unix::fs::lchown(path, Some(self.user), Some(self.group))
            .map_err(EnrolmentError::file("change the owner of", path))
    }
}

/// Writes a file durably: readers find the old file or the new one, with its owner and permissions, whenever the
/// process is killed.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str, mode: u32, owner: Owner) -> Result<(), EnrolmentError> {
    let failed = || EnrolmentError::file("write", path);
    let aside = write_private(path, text.as_bytes()).map_err(failed())?;
    let put = || {
        owner.give(&aside)?;
        fs::set_permissions(&aside, Permissions::from_mode(mode)).map_err(failed())?;
        fs::rename(&aside, path).map_err(failed())?;
        sync_folder(path)
    };
    let done = put();
    if done.is_err() {
        // A key must not lie about; the first error counts.
        let _ = fs::remove_file(&aside);
    }
    done
}

fn sync_folder(path: &Path) -> Result<(), EnrolmentError> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(EnrolmentError::file("sync", folder))
}

/// Creates a private directory of the owner, unless the directory is there.
pub(crate) fn make_folder(path: &Path, owner: Owner) -> Result<(), EnrolmentError> {
    if !path.is_dir() {
        fs::create_dir(path).map_err(EnrolmentError::file("create", path))?;
        let mode = Permissions::from_mode(0o700);
        fs::set_permissions(path, mode).map_err(EnrolmentError::file("protect", path))?;
    }
    owner.give(path)
}

/// Reads a small text file; `None`: no file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, EnrolmentError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EnrolmentError::file("read", path)(error)),
    }
}
