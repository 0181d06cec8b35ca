//! Stores of domains, accounts and aliases: a TOML file or a SQLite database.
//!
//! [`FileStore`] suits thousands of accounts and an editor; [`SqliteStore`] millions. Several
//! processes use a store at once (the running system and the commands), each process sees the
//! changes of the others once they are reported as done, and both stores pass the same tests.

mod copying;
mod file;
mod format;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use vere_ports::directory::{DirectoryStore, StoreError};
use vere_settings::DirectoryStore as Place;

pub use copying::copy_database;
pub use file::FileStore;
pub use sqlite::SqliteStore;

/// Opens the configured store, which must exist.
///
/// # Errors
///
/// [`StoreError`], when the store is missing, damaged, or of another version.
pub fn open(place: &Place) -> Result<Arc<dyn DirectoryStore>, StoreError> {
    Ok(match place {
        Place::File(path) => Arc::new(FileStore::open(path)?),
        Place::Sqlite(path) => Arc::new(SqliteStore::open(path)?),
    })
}

/// Opens the configured store, or creates an empty store with its parent directories.
///
/// # Errors
///
/// [`StoreError`], when the store cannot be created, or is damaged or of another version.
pub fn create(place: &Place) -> Result<Arc<dyn DirectoryStore>, StoreError> {
    Ok(match place {
        Place::File(path) => Arc::new(FileStore::create(path)?),
        Place::Sqlite(path) => Arc::new(SqliteStore::create(path)?),
    })
}

/// Makes a store error from an error of the operating system.
fn system(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |error| StoreError::System(what, path, error.to_string())
}

/// The directory that contains `path`.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a directory with its parents, accessible to the owner only.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(system("make folder", path))
}

/// Gives a new file the owner of its directory.
///
/// An administrator runs commands as root while the system runs as its own user, which must be able
/// to read the files of the commands. Without root privileges the owner is already right.
fn give_to_owner_of_folder(file: &std::fs::File, path: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    if let Ok(owner) = std::fs::metadata(folder(path)) {
        let _ = std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()));
    }
}

#[cfg(test)]
mod tests;
