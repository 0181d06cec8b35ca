//! Stores of domains, accounts and aliases: one TOML file, or one SQLite database.
//!
//! [`FileStore`] suits thousands of accounts and an editor; [`SqliteStore`] millions. Both are used
//! by several processes at once (the running system and the commands), both see each other's
//! changes as soon as they are told to be made, and both pass the same tests.

mod file;
mod format;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use vere_ports::directory::{DirectoryStore, StoreError};
use vere_settings::DirectoryStore as Place;

pub use file::FileStore;
pub use sqlite::SqliteStore;

/// Opens the store that the configuration names; it must be there.
///
/// # Errors
///
/// [`StoreError`], when it is not there, damaged, or of another version.
pub fn open(place: &Place) -> Result<Arc<dyn DirectoryStore>, StoreError> {
    Ok(match place {
        Place::File(path) => Arc::new(FileStore::open(path)?),
        Place::Sqlite(path) => Arc::new(SqliteStore::open(path)?),
    })
}

/// Opens the store that the configuration names, or makes an empty one with the folders above it.
///
/// # Errors
///
/// [`StoreError`], when it cannot be made, or is damaged or of another version.
pub fn create(place: &Place) -> Result<Arc<dyn DirectoryStore>, StoreError> {
    Ok(match place {
        Place::File(path) => Arc::new(FileStore::create(path)?),
        Place::Sqlite(path) => Arc::new(SqliteStore::create(path)?),
    })
}

/// Makes an error of one of the operating system.
fn system(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |error| StoreError::System(what, path, error.to_string())
}

/// The folder that holds `path`.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a folder with those above it, for its owner only.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(system("make folder", path))
}

/// Makes a new file belong to whom its folder belongs to.
///
/// An administrator runs commands as root while the system runs as its own user, which must be able
/// to read what they make. Not being root, there is nothing to do and nothing to say.
fn give_to_owner_of_folder(file: &std::fs::File, path: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    if let Ok(owner) = std::fs::metadata(folder(path)) {
        let _ = std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()));
    }
}

#[cfg(test)]
mod tests;
