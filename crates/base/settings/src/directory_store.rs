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

impl DirectoryStore {
    /// Reads `file:PATH` or `sqlite:PATH`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err("is neither file:PATH nor sqlite:PATH".to_owned()),
        }
    }
}
