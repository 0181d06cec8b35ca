//! Days on the disk.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::name::Day;
use crate::stable::sync_folder;

/// The end of the name of a directory that is being removed, such as `2026-11-29.removed`. No reader takes it for a day.
const REMOVED: &str = ".removed";
const NANOS: i64 = 1_000_000_000;

/// What has the name of a day.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    /// Directories of this directory.
    Days(PathBuf),
    /// Files `DAY.log` of this directory.
    Files(PathBuf),
}

impl Kept {
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Days(folder) | Self::Files(folder) => folder,
        }
    }

    fn day_of(&self, name: &str) -> Option<Day> {
        match self {
            Self::Days(_) => name.parse().ok(),
            Self::Files(_) => name.strip_suffix(".log")?.parse().ok(),
        }
    }

    fn path(&self, day: Day) -> PathBuf {
        match self {
            Self::Days(folder) => folder.join(day.to_string()),
            Self::Files(folder) => folder.join(format!("{day}.log")),
        }
    }

    /// All days, with the times of their last changes as the file system has them.
    pub(super) fn days(&self) -> io::Result<BTreeMap<Day, i64>> {
        let mut days = BTreeMap::new();
        for name in names(self.folder())? {
            let Some(day) = self.day_of(&name) else {
                continue;
            };
            match self.changed(day) {
                // An operator may remove days as well.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                changed => drop(days.insert(day, changed?)),
            }
        }
        Ok(days)
    }

    /// The time of the last change of a day by the file system, in nanoseconds; a time beyond the range wraps. A wrong clock
    /// made it too: another number says that the day has changed, and nothing else.
    pub(super) fn changed(&self, day: Day) -> io::Result<i64> {
        let of = |data: Metadata| {
            data.mtime()
                .wrapping_mul(NANOS)
                .wrapping_add(data.mtime_nsec())
        };
        fs::metadata(self.path(day)).map(of)
    }

    /// Takes a day away from all readers, in one step: a file is gone; the files of a directory go by [`Self::clear`].
    pub(super) fn set_aside(&self, day: Day) -> io::Result<()> {
        let path = self.path(day);
        match self {
            Self::Days(folder) => fs::rename(path, folder.join(format!("{day}{REMOVED}"))),
            Self::Files(_) => fs::remove_file(path),
        }
    }

    /// Removes the directories that were set aside, also those of a process that was killed before their end. `failed` gets
    /// the names of directories that stay.
    pub(super) fn clear(
        &self,
        stop: &dyn Fn() -> bool,
        failed: impl Fn(&str, &io::Error),
    ) -> io::Result<()> {
        let Self::Days(folder) = self else {
            return Ok(());
        };
        let mut aside = names(folder)?;
        aside.retain(|name| {
            let day = name.strip_suffix(REMOVED);
            day.is_some_and(|day| day.parse::<Day>().is_ok())
        });
        if aside.is_empty() {
            return Ok(());
        }
        // A cut of power must not bring back the name of a day that has lost files.
        sync_folder(folder)?;
        for name in aside {
            if let Err(error) = remove(&folder.join(&name), stop) {
                failed(&name, &error);
            }
        }
        Ok(())
    }
}

/// Removes a directory, or a part of it when told to stop.
fn remove(path: &Path, stop: &dyn Fn() -> bool) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        if stop() {
            return Ok(());
        }
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir(path)
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort_unstable();
    Ok(names)
}
