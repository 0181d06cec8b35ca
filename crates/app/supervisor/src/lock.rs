//! A single system for each data directory.
//!
//! A second system would overwrite the accepted settings of the first and take the sockets away. So the
//! supervisor locks a file in the directory (`flock(2)`) before any further access. The kernel releases
//! the lock at the end of the process, however caused; roles do not inherit the lock.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use vere_process::data_lock::{FILE_NAME, open};
use vere_process::restoring::INCOMPLETE;

use super::error::SupervisorError;

/// Digits of a process id and the end of the line.
const PID_LENGTH_MAX: u64 = 16;

/// The right to use a data directory, until dropped.
#[derive(Debug)]
pub(super) struct DataLock {
    _file: File,
}

impl DataLock {
    /// Takes an existing directory.
    pub(super) fn take(data: &Path) -> Result<Self, SupervisorError> {
        let wrong = |source| SupervisorError::DataDirectory {
            path: data.join(FILE_NAME),
            source,
        };
        let mut file = open(data).map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(SupervisorError::DataInUse {
                    path: data.to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(wrong(source)),
        }
        if data.join(INCOMPLETE).exists() {
            return Err(SupervisorError::DataIncomplete {
                path: data.to_owned(),
            });
        }
        note(&mut file).map_err(wrong)?;
        Ok(Self { _file: file })
    }
}

/// Writes the process id, for the message of the next start. Always of equal length and in place, so that a
/// full disk has the block already; without the block, the message has no process id.
fn note(file: &mut File) -> io::Result<()> {
    file.rewind()?;
    let written = writeln!(
        file,
        "{:<1$}",
        std::process::id(),
        PID_LENGTH_MAX as usize - 1
    )
    .and_then(|()| file.set_len(PID_LENGTH_MAX));
    match written {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
        other => other,
    }
}

/// The process with the directory, if already written to the file.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_LENGTH_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_holder_who_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let lock = DataLock::take(folder.path()).unwrap();
        let error = DataLock::take(folder.path()).unwrap_err();
        let wanted = format!(
            "data folder {} is in use by process {}",
            folder.path().display(),
            std::process::id()
        );
        assert_eq!(error.to_string(), wanted);
        drop(lock);
        DataLock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_into_which_a_backup_is_being_restored_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(INCOMPLETE), "").unwrap();
        let error = DataLock::take(folder.path()).unwrap_err().to_string();
        assert!(error.contains("vere restore"), "{error}");
        std::fs::remove_file(folder.path().join(INCOMPLETE)).unwrap();
        DataLock::take(folder.path()).unwrap();
    }

    #[test]
    fn what_an_ended_process_left_there_is_no_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "4194304000\n").unwrap();
        let _lock = DataLock::take(folder.path()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.trim(), std::process::id().to_string());
        assert_eq!(text.len() as u64, PID_LENGTH_MAX);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join(FILE_NAME)).unwrap();
        DataLock::take(folder.path()).unwrap_err();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
        std::fs::remove_file(folder.path().join(FILE_NAME)).unwrap();
        std::fs::hard_link(&other, folder.path().join(FILE_NAME)).unwrap();
        DataLock::take(folder.path()).unwrap_err();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    }
}
