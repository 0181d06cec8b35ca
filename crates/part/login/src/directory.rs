//! The directory of accounts that the settings name, as commands open it.

use vere_directory::Directory;
use vere_process::failure::Failure;
use vere_process::present::is_there;
use vere_settings::Settings;

/// Opens the directory of the settings; makes a directory where none is.
///
/// # Errors
/// When the directory cannot be made or read.
pub fn create(settings: &Settings) -> Result<Directory, Failure> {
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
pub fn open(settings: &Settings) -> Result<Directory, Failure> {
    use vere_settings::DirectoryStore::{File, Sqlite};
    let (File(path) | Sqlite(path)) = &settings.directory.store;
    if !is_there(path, settings)? {
        return Err(Failure::new(format!(
            "there are no domains yet ({} does not exist), begin with: vere domain add DOMAIN",
            path.display()
        )));
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
pub fn open_if_there(settings: &Settings) -> Result<Option<Directory>, Failure> {
    use vere_settings::DirectoryStore::{File, Sqlite};
    let (File(path) | Sqlite(path)) = &settings.directory.store;
    match is_there(path, settings)? {
        true => open(settings).map(Some),
        false => Ok(None),
    }
}
