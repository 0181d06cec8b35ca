//! Disk space reserved for starting: starting roles write a little, and a full disk has no space left.
//! A file in the data directory reserves the space, and is removed when the disk is full.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::posix_fallocate;

const NAME: &str = "ballast";

/// Reserved octets; starting roles write some hundred KiB.
const SIZE: u64 = 4 << 20;

/// The reserve is given up below this number of free octets.
const LOW: u64 = 1 << 20;

/// Free octets from which the files are kept again: a multiple of the files' size.
const PLENTY: u64 = 16 * SIZE;

/// The file of the ballast, if present.
#[derive(Debug)]
pub(super) struct Ballast {
    folder: PathBuf,
}

impl Ballast {
    pub(super) fn of(data: &Path) -> Self {
        let folder = data.to_owned();
        Self { folder }
    }

    /// Gives the room up where there is next to none.
    pub(super) fn give_up_if_full(&self) {
        if self.free().is_none_or(|free| free >= LOW) {
            return;
        }
        match fs::remove_file(self.folder.join(NAME)) {
            Ok(()) => tracing::warn!(
                folder = %self.folder.display(),
                "the disk is full: the room kept for starting is given up; make room"
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::error!(%error, "the room kept for starting cannot be given up"),
        }
    }

    /// Keeps the room, where there is plenty.
    pub(super) fn keep(&self) {
        let path = self.folder.join(NAME);
        if path.exists() || self.free().is_none_or(|free| free < PLENTY) {
            return;
        }
        if let Err(error) = allocate(&path) {
            tracing::warn!(%error, "no room can be kept for starting on a full disk");
            let _ = fs::remove_file(&path);
        }
    }

    /// Free octets for unprivileged users; `None` when the file system does not answer.
    fn free(&self) -> Option<u64> {
        vere_disk::free_octets(&self.folder).ok()
    }
}

fn allocate(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let size = i64::try_from(SIZE).unwrap_or(i64::MAX);
    Ok(posix_fallocate(&file, 0, size)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_kept_where_there_is_plenty_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let ballast = Ballast::of(folder.path());
        ballast.give_up_if_full();
        ballast.keep();
        let kept = fs::metadata(folder.path().join(NAME)).unwrap();
        assert_eq!(kept.len(), SIZE);
        ballast.keep();
        ballast.give_up_if_full();
        assert!(folder.path().join(NAME).exists(), "the disk is not full");
        // A folder that is gone keeps nothing and ends nobody.
        let gone = Ballast::of(&folder.path().join("gone"));
        gone.keep();
        gone.give_up_if_full();
    }
}
