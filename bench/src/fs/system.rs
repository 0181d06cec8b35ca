//! A file system under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::distance::Traffic;
use super::plan::Part;
use crate::error::BenchError;
use crate::peer::folder;

/// The name of the local file system.
pub(super) const LOCAL: &str = "ext4";

/// A file system under test, with the distance to its server.
pub(super) trait System {
    /// The name in results.
    fn name(&self) -> &'static str;

    /// The root of the mount.
    fn root(&self) -> &Path;

    fn is_mounted(&self) -> bool;

    /// Mounts, and waits until the root answers; returns the time.
    fn mount(&mut self) -> Result<Duration, BenchError>;

    /// Chooses the options of a row; the system may be unmounted afterwards.
    fn prepare(&mut self, _part: Part) -> Result<(), BenchError> {
        Ok(())
    }

    /// Waits until the server has everything, and unmounts.
    fn unmount(&mut self) -> Result<(), BenchError>;

    /// Removes what an unmounted file system keeps on the local disk for later mounts.
    fn forget(&mut self) -> Result<(), BenchError>;

    /// Waits until the server has a file of so many octets, for systems whose fsync does not wait.
    fn arrive(&mut self, _file: &Path, _octets: u64) -> Result<(), BenchError> {
        Ok(())
    }

    /// Whether fsync returns before the server has the data.
    fn is_late(&self) -> bool {
        false
    }

    /// Octets over the network so far.
    fn traffic(&self) -> Traffic;

    /// The processes of the mount.
    fn processes(&self) -> Vec<u32>;

    /// Removes a folder of the mount with its files; the content is not needed.
    fn clear(&mut self, folder: &Path) -> Result<(), BenchError> {
        fs::remove_dir_all(folder).map_err(BenchError::io("remove files"))
    }

    /// Mounts without anything known.
    fn remount_cold(&mut self) -> Result<Duration, BenchError> {
        self.unmount()?;
        self.forget()?;
        self.mount()
    }
}

/// A folder on the local disk.
#[derive(Debug)]
pub(super) struct Local {
    folder: TempDir,
}

impl Local {
    pub(super) fn below(base: &Path) -> Result<Self, BenchError> {
        let folder = folder(base, "vere-bench-local-").map_err(BenchError::io("make a folder"))?;
        Ok(Self { folder })
    }
}

impl System for Local {
    fn name(&self) -> &'static str {
        LOCAL
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn is_mounted(&self) -> bool {
        true
    }

    fn mount(&mut self) -> Result<Duration, BenchError> {
        Ok(Duration::ZERO)
    }

    fn unmount(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    /// Asks the kernel to drop the pages of all files; other files of the machine keep theirs.
    fn forget(&mut self) -> Result<(), BenchError> {
        for file in files(self.folder.path()).map_err(BenchError::io("list files"))? {
            let file = fs::File::open(file).map_err(BenchError::io("open a file"))?;
            let dropped = file.sync_all().and_then(|()| {
                let advice = rustix::fs::Advice::DontNeed;
                Ok(rustix::fs::fadvise(&file, 0, None, advice)?)
            });
            dropped.map_err(BenchError::io("drop cached pages"))?;
        }
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }
}

/// All files below a folder.
pub(super) fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(files(&entry.path())?);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}
