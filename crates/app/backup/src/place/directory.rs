//! A directory as a place for backups.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{Entry, Place, Use};
use crate::pace::Pace;

/// The file with the lock of the place.
const LOCK: &str = "lock";
/// The end of the name of an unfinished file.
const LEFTOVER: &str = ".new";

/// A directory.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    /// Directories with unsynced names.
    unsafe_yet: RefCell<BTreeSet<PathBuf>>,
}

impl Directory {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            unsafe_yet: RefCell::default(),
        }
    }

    /// Makes a directory with the parents, for the owner alone.
    fn make(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        // The parent of a relative name is empty.
        let parent = folder.parent();
        if let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) {
            self.make(parent)?;
            self.unsafe_yet.borrow_mut().insert(parent.to_owned());
        }
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Calls `each` with the path, relative to the root, of every file below a folder.
    fn walk(
        &self,
        folder: &str,
        each: &mut dyn FnMut(String, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let listed = self.root.join(folder);
        self.unsafe_yet.borrow_mut().insert(listed);
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{folder}/{name}");
            match entry.file_type()? {
                kind if kind.is_dir() => self.walk(&path, each)?,
                kind if kind.is_file() => each(path, &entry.path())?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Place for Directory {
    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn lock(&self, usage: Use) -> io::Result<Box<dyn Any>> {
        if usage == Use::Writing {
            self.make(&self.root)?;
            // A killed command may have made the directory without syncing the name.
            let mut unsafe_yet = self.unsafe_yet.borrow_mut();
            unsafe_yet.extend(self.root.parent().map(Path::to_owned));
            unsafe_yet.insert(self.root.clone());
        }
        let path = self.root.join(LOCK);
        let file = match usage {
            Use::Changing | Use::Writing => OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(path),
            Use::Reading => File::open(path),
        };
        let file = match file {
            // No command writes to a place without the file, or to a read-only place.
            Err(error) if usage == Use::Reading && error.kind() == ErrorKind::NotFound => {
                return Ok(Box::new(()));
            }
            file => file?,
        };
        let locked = match usage {
            Use::Changing | Use::Writing => file.try_lock(),
            Use::Reading => file.try_lock_shared(),
        };
        match locked {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn read(&self, path: &str, max: u64) -> io::Result<Vec<u8>> {
        let mut octets = Vec::new();
        let file = File::open(self.root.join(path))?;
        file.take(max.saturating_add(1)).read_to_end(&mut octets)?;
        match octets.len() as u64 > max {
            true => Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("expected at most {max} bytes"),
            )),
            false => Ok(octets),
        }
    }

    fn write(&self, path: &str, octets: &[u8]) -> io::Result<()> {
        self.write_paced(path, octets, &Pace::new(None, true))
    }

    fn write_paced(&self, path: &str, octets: &[u8], pace: &Pace) -> io::Result<()> {
        let whole = self.root.join(path);
        let folder = whole.parent().unwrap_or(&self.root).to_owned();
        self.make(&folder)?;
        let new = self.root.join(format!("{path}{LEFTOVER}"));
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        for part in octets.chunks(pace.step_octets()) {
            pace.step(|| {
                file.write_all(part)?;
                file.sync_data()
            })?;
        }
        fs::rename(&new, whole)?;
        self.unsafe_yet.borrow_mut().insert(folder);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let whole = self.root.join(path);
        match fs::remove_file(&whole) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            removed => removed?,
        }
        let folder = whole.parent().unwrap_or(&self.root).to_owned();
        self.unsafe_yet.borrow_mut().insert(folder);
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        self.walk(folder, &mut |path, file| {
            if !path.ends_with(LEFTOVER) {
                let octets = fs::metadata(file)?.len();
                entries.push(Entry { path, octets });
            }
            Ok(())
        })?;
        Ok(entries)
    }

    fn clear_leftovers(&self, folder: &str) -> io::Result<()> {
        self.walk(folder, &mut |path, file| match path.ends_with(LEFTOVER) {
            true => fs::remove_file(file),
            false => Ok(()),
        })
    }

    fn settle(&self) -> io::Result<()> {
        for folder in self.unsafe_yet.take() {
            let is_above = !folder.starts_with(&self.root);
            match File::open(&folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // A relative root has an empty parent; other directories above may be closed to this user.
                Err(error) if is_above && error.kind() == ErrorKind::PermissionDenied => {}
                folder => folder?.sync_all()?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_written_listed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = Directory::new(&folder.path().join("a/b"));
        assert_eq!(place.list("objects").unwrap(), []);
        place.write("objects/00/one", b"1").unwrap();
        place.write("objects/00/one", b"12").unwrap();
        place.settle().unwrap();
        // A write that a crash cut off.
        let leftover = folder.path().join("a/b/objects/00/two.new");
        fs::write(&leftover, "").unwrap();
        let path = "objects/00/one".to_owned();
        assert_eq!(place.list("objects").unwrap(), [Entry { path, octets: 2 }]);
        place.clear_leftovers("objects").unwrap();
        assert!(!leftover.exists());
        assert_eq!(place.read("objects/00/one", 2).unwrap(), b"12");
        let long = place.read("objects/00/one", 1).unwrap_err();
        assert_eq!(long.kind(), ErrorKind::InvalidData);
        place.remove("objects/00/one").unwrap();
        place.remove("objects/00/one").unwrap();
        place.settle().unwrap();
        let gone = place.read("objects/00/one", 9).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
    }

    /// A backup was killed before the names of its objects were synced; the next one found the objects present, and
    /// wrote a list that a power cut would have left without them.
    #[test]
    fn names_of_a_killed_command_are_made_safe_by_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("place");
        let killed = Directory::new(&root);
        drop(killed.lock(Use::Writing).unwrap());
        killed.write("objects/00/one", b"1").unwrap();
        let next = Directory::new(&root);
        drop(next.lock(Use::Writing).unwrap());
        assert_eq!(next.list("objects").unwrap().len(), 1);
        let unsafe_yet = next.unsafe_yet.borrow().clone();
        let above = folder.path().to_owned();
        let all = [
            above,
            root.clone(),
            root.join("objects"),
            root.join("objects/00"),
        ];
        assert_eq!(unsafe_yet, all.into());
        next.settle().unwrap();
        assert!(next.unsafe_yet.borrow().is_empty());
    }

    #[test]
    fn one_command_writes_and_several_read() {
        let folder = tempfile::tempdir().unwrap();
        let place = Directory::new(folder.path());
        let busy = |usage| place.lock(usage).unwrap_err().kind() == ErrorKind::WouldBlock;
        drop(place.lock(Use::Reading).unwrap());
        let writing = place.lock(Use::Writing).unwrap();
        assert!(busy(Use::Writing) && busy(Use::Reading));
        drop(writing);
        let one = place.lock(Use::Reading).unwrap();
        let two = place.lock(Use::Reading).unwrap();
        assert!(busy(Use::Writing));
        drop((one, two));
        place.lock(Use::Writing).unwrap();
    }
}
