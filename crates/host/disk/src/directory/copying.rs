//! Copies of a directory's database, for backups.

use std::path::Path;

use vere_ports::directory::StoreError;

use super::sqlite::{SqliteStore, database};
use super::system;

/// Copies a database that others may use meanwhile into an empty file: all of the copy is of one moment. The library
/// reads the database in a transaction and writes the copy whole (`VACUUM INTO`).
///
/// # Errors
///
/// [`StoreError`], when the database cannot be read or the copy not written.
pub fn copy_database(path: &Path, to: &Path) -> Result<(), StoreError> {
    let store = SqliteStore::open(path)?;
    let connection = store.connection();
    let copied = connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]);
    copied.map_err(database(to))?;
    let file = std::fs::File::open(to).map_err(system("open", to))?;
    file.sync_all().map_err(system("sync", to))
}
