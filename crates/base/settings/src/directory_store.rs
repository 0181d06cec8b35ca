//! Where the directory lies.

use std::path::PathBuf;

/// A store of domains, accounts and aliases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryStore {
    /// One TOML file.
    File(PathBuf),
    /// One `SQLite` database.
    Sqlite(PathBuf),
}
