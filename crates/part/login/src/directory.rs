//! The directory of accounts that the settings name, as commands open it.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use vere_directory::Directory;
use vere_ports::directory::StoreError;
use vere_process::present::{PresenceError, is_there};
use vere_settings::Settings;

/// Why a command cannot use the directory of accounts.
#[derive(Debug)]
pub enum DirectoryError {
    /// The operator cannot read the directory's file.
    Unreadable(PresenceError),
    /// There is no directory: no domain was added yet.
    Absent {
        /// The file that the settings name.
        path: PathBuf,
    },
    /// The directory cannot be made, or its file is damaged.
    Store(StoreError),
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Absent { path } => write!(
                f,
                "there are no domains yet ({} does not exist), begin with: vere domain add DOMAIN",
                path.display()
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for DirectoryError {
    /// The display is that of the direct cause; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable(error) => error.source(),
            Self::Absent { .. } => None,
            Self::Store(error) => error.source(),
        }
    }
}

impl From<PresenceError> for DirectoryError {
    fn from(error: PresenceError) -> Self {
        Self::Unreadable(error)
    }
}

impl From<StoreError> for DirectoryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Opens the directory of the settings; makes a directory where none is.
///
/// # Errors
/// When the directory cannot be made or read.
pub fn create(settings: &Settings) -> Result<Directory, StoreError> {
    let store = vere_disk::directory::create(&settings.directory.store)?;
    Ok(Directory::new(
        store,
        settings.directory.subaddress_separator,
    ))
}

/// Opens the directory of the settings, which must exist.
///
/// # Errors
/// When there is no directory, or the directory cannot be read.
pub fn open(settings: &Settings) -> Result<Directory, DirectoryError> {
    use vere_settings::DirectoryStore::{File, Sqlite};
    let (File(path) | Sqlite(path)) = &settings.directory.store;
    if !is_there(path, settings)? {
        return Err(DirectoryError::Absent { path: path.clone() });
    }
    let store = vere_disk::directory::open(&settings.directory.store)?;
    Ok(Directory::new(
        store,
        settings.directory.subaddress_separator,
    ))
}

/// Opens the directory of the settings; `None` where none is.
///
/// # Errors
/// When the directory cannot be read.
pub fn open_if_there(settings: &Settings) -> Result<Option<Directory>, DirectoryError> {
    use vere_settings::DirectoryStore::{File, Sqlite};
    let (File(path) | Sqlite(path)) = &settings.directory.store;
    match is_there(path, settings)? {
        true => open(settings).map(Some),
        false => Ok(None),
    }
}
