//! Files that a command run by root makes in a data directory: the owner of the directory gets the files.
//!
//! The system of the packages runs as user `vere`; a file of root in the data directory keeps such a system from
//! starting. A change of owner after the fact would be lost with a killed command, so the files are made under the
//! user and group of the owner (setfsuid(2)). Root also loses the rights of root over files meanwhile: a link that the
//! owner has planted leads nowhere that the owner could not go.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{Gid, Uid, geteuid, setfsgid, setfsuid};

/// The owner of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    uid: Uid,
    gid: Gid,
}

impl Owner {
    /// The owner of an existing directory.
    ///
    /// # Errors
    /// When the directory cannot be examined.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let found = fs::metadata(folder)?;
        Ok(Self {
            uid: Uid::from_raw(found.uid()),
            gid: Gid::from_raw(found.gid()),
        })
    }

    /// Runs `work` with the rights of the owner over files, if root runs the command; otherwise without a change.
    /// Threads that `work` starts keep the rights of the owner.
    pub fn act<T>(self, work: impl FnOnce() -> T) -> T {
        let _acting = (geteuid().is_root() && !self.uid.is_root()).then(|| Acting::begin(self));
        work()
    }
}

/// The earlier rights come back with the end of this value, also after a panic: those of root, or within the work of
/// another [`Owner::act`] the rights of that owner.
#[derive(Debug)]
struct Acting(Owner);

impl Acting {
    fn begin(owner: Owner) -> Self {
        // The group first: without the rights of root it could not be changed any more.
        let gid = setfsgid(owner.gid);
        let uid = setfsuid(owner.uid);
        Self(Owner { uid, gid })
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        setfsuid(self.0.uid);
        setfsgid(self.0.gid);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::thread;

    use super::*;

    const NOBODY: u32 = 65_534;

    #[test]
    fn files_of_root_belong_to_the_owner_of_the_directory() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::write(folder.path().join("secret"), "of root").unwrap();
        fs::set_permissions(
            folder.path().join("secret"),
            fs::Permissions::from_mode(0o600),
        )
        .unwrap();
        std::os::unix::fs::symlink("../secret", data.join("link")).unwrap();
        let owner = Owner::of(&data).unwrap();
        owner.act(|| {
            fs::write(data.join("one"), "").unwrap();
            let path = data.join("two");
            thread::spawn(|| fs::write(path, "").unwrap())
                .join()
                .unwrap();
            fs::read(data.join("link")).unwrap_err();
            owner.act(|| ());
            fs::write(data.join("four"), "").unwrap();
        });
        fs::write(folder.path().join("three"), "").unwrap();
        let uid = |name: &str| fs::metadata(folder.path().join(name)).unwrap().uid();
        assert_eq!(
            ["data/one", "data/two", "data/four", "three"].map(uid),
            [NOBODY, NOBODY, NOBODY, 0]
        );
        fs::read(data.join("link")).unwrap();
    }
}
