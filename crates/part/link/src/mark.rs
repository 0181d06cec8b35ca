//! Proof that earlier owners of a group are dead: a file that each owner on this machine keeps locked for
//! as long as it lives.
//!
//! A delivery lease may be taken early only from an owner that is known to be dead. The kernel lets go of
//! a lock (`flock(2)`) when the process that took it has ended, however it ended. So whoever gets the
//! lock knows that all owners named in the file are dead, if they ran under the same kernel: the file
//! names the boot as well, since it may be a copy from another machine. Where the register is a folder
//! of this machine (`local`) all owners there ever were ran here, and any boot before this is over.
//!
//! ```text
//! <data>/owner/GROUP.lock
//! boot id as in /proc/sys/kernel/random/boot_id
//! life of an owner, decimal, the latest one last; LIVES_MAX of them at most
//! ...
//! ```

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// Owners remembered: those that died before they could take the lease.
const LIVES_MAX: usize = 32;
/// The file is not longer than this.
const FILE_MAX: u64 = 4096;
/// Every file is written to this length, in place: a full disk has its block already.
const FILE_LENGTH: usize = 1024;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The mark of a living owner; the file is locked until this is dropped.
#[derive(Debug)]
pub struct OwnerMark {
    locked: Option<Flock<File>>,
    /// Owners that are known to be dead.
    pub dead: Vec<u64>,
}

impl OwnerMark {
    /// Marks that the owner of this life lives. Without the lock, which another live process has, it
    /// marks and knows nothing.
    ///
    /// # Errors
    /// When the folder or the file cannot be used.
    pub fn take(folder: &Path, group: &str, life: u64, local: bool) -> io::Result<Self> {
        let boot = std::fs::read_to_string(BOOT_ID)?;
        Self::take_in(folder, group, life, local, boot.trim())
    }

    fn take_in(folder: &Path, group: &str, life: u64, local: bool, boot: &str) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(format!("{group}.lock")))?;
        let mut lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
                return Ok(Self {
                    locked: None,
                    dead: Vec::new(),
                });
            }
            Err((_, error)) => return Err(error.into()),
        };
        let mut text = String::new();
        let file: &mut File = &mut lock;
        // What cannot be read proves nothing.
        let _ = file.take(FILE_MAX).read_to_string(&mut text);
        let (before, lives) = text.split_once('\n').unwrap_or_default();
        let mut dead = Vec::new();
        if before == boot || local {
            dead.extend(
                lives
                    .lines()
                    .filter_map(|line| line.trim().parse::<u64>().ok()),
            );
        }
        let known = dead.iter().skip((dead.len() + 1).saturating_sub(LIVES_MAX));
        let lines = known.chain([&life]).map(|life| format!("{life:>20}\n"));
        let mut text = format!("{boot}\n{}", lines.collect::<String>());
        while text.len() < FILE_LENGTH {
            text.push('\n');
        }
        // Not synced: a file that is cut short proves less, and what a power cut takes is over anyway.
        lock.rewind()?;
        let length = text.len() as u64;
        let written = lock
            .write_all(text.as_bytes())
            .and_then(|()| lock.set_len(length));
        match written {
            // The lock says that this owner lives; the next one waits until its lease is over.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                tracing::warn!(group, "disk full: the mark of this owner is not written");
            }
            other => other?,
        }
        Ok(Self {
            locked: Some(lock),
            dead,
        })
    }

    /// Whether another live process of this machine is marked.
    pub const fn is_elsewhere(&self) -> bool {
        self.locked.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(folder: &Path, life: u64, local: bool, boot: &str) -> OwnerMark {
        OwnerMark::take_in(folder, "gateway", life, local, boot).unwrap()
    }

    #[test]
    fn who_gets_the_lock_knows_who_is_dead() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("owner");
        let first = take(&folder, 1, false, "boot");
        assert_eq!(first.dead, [0; 0]);
        // The first process still runs: the second learns of no dead owner and writes nothing.
        let second = take(&folder, 2, true, "boot");
        assert!(second.is_elsewhere() && second.dead.is_empty());
        drop((first, second));
        assert_eq!(take(&folder, 3, false, "boot").dead, [1]);
        assert_eq!(take(&folder, 4, false, "boot").dead, [1, 3]);
        // After another boot, or on another machine, nothing is sure, unless the register is here.
        assert_eq!(take(&folder, 5, true, "later").dead, [1, 3, 4]);
        assert_eq!(take(&folder, 6, false, "even later").dead, [0; 0]);
        assert_eq!(take(&folder, 7, false, "even later").dead, [6]);
    }

    #[test]
    fn what_is_not_such_a_file_proves_nothing_and_the_list_stays_short() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("gateway.lock"), [0xff; 9000]).unwrap();
        assert_eq!(take(folder.path(), 100, true, "boot").dead, [0; 0]);
        for life in 101..200 {
            take(folder.path(), life, true, "boot");
        }
        let dead = take(folder.path(), 200, true, "boot").dead;
        assert_eq!((dead.len(), dead[0], dead[31]), (32, 168, 199));
    }
}
