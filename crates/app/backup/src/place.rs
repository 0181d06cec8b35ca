//! The place of a backup: named octet strings, written whole or not at all.

pub(crate) mod directory;
pub(crate) mod s3;

use std::any::Any;
use std::fmt::Debug;
use std::io;

use vere_process::failure::Failure;

use crate::pace::Pace;

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name within the place, with `/` between folders.
    pub(crate) path: String,
    /// The length of the entry.
    pub(crate) octets: u64,
}

/// How a place is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Entries are only read: several commands may read at a time.
    Reading,
    /// Entries of an existing place are removed: by a single command at a time.
    Changing,
    /// Entries are added, also the first ones: by a single command at a time.
    Writing,
}

/// A place for backups.
pub(crate) trait Place: Debug {
    /// The place as the operator named it.
    fn name(&self) -> String;

    /// Takes the place until the result is dropped, or the process ends.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] while a different command uses the place; further errors of the system.
    fn lock(&self, usage: Use) -> io::Result<Box<dyn Any>>;

    /// Reads an entry of at most `max` octets.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`]; [`io::ErrorKind::InvalidData`] for a longer entry.
    fn read(&self, path: &str, max: u64) -> io::Result<Vec<u8>>;

    /// Writes an entry. A crash leaves the whole new content or the earlier content. A new name is safe after
    /// [`Place::settle`].
    ///
    /// # Errors
    /// Errors of the system.
    fn write(&self, path: &str, octets: &[u8]) -> io::Result<()>;

    /// Writes an entry as [`Place::write`] does, at the pace of a backup where the place is a disk of this machine.
    ///
    /// # Errors
    /// Errors of the system.
    fn write_paced(&self, path: &str, octets: &[u8], _pace: &Pace) -> io::Result<()> {
        self.write(path, octets)
    }

    /// Writes a list or the description of the place, which no command writes twice.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where the place itself can notice another writer; errors of the system.
    fn create(&self, path: &str, octets: &[u8]) -> io::Result<()> {
        self.write(path, octets)
    }

    /// Removes an entry, if present.
    ///
    /// # Errors
    /// Errors of the system.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// All entries below a folder, in no particular order. Leftovers of interrupted writes are no entries.
    ///
    /// # Errors
    /// Errors of the system.
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>>;

    /// Removes leftovers of interrupted writes below a folder.
    ///
    /// # Errors
    /// Errors of the system.
    fn clear_leftovers(&self, folder: &str) -> io::Result<()>;

    /// Makes all written and removed names safe, and all names that this command has listed: an earlier command
    /// may have been killed before the names were safe.
    ///
    /// # Errors
    /// Errors of the system.
    fn settle(&self) -> io::Result<()>;
}

/// Adds the name of the entry to an error.
pub(crate) fn wrong<'a>(
    place: &'a dyn Place,
    path: &'a str,
) -> impl FnOnce(io::Error) -> Failure + 'a {
    move |error| Failure::new(format!("{}/{path}: {error}", place.name()))
}
