//! The settings that a role runs with: those that the supervisor accepted last.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use vere_settings::{ConfigErrors, Settings};

/// Environment variable with the path of the accepted settings, for roles.
pub const ACCEPTED_SETTINGS: &str = "VERE_ACCEPTED_SETTINGS";

/// Largest settings file, in octets; a larger one is not a settings file.
const FILE_LENGTH_MAX: u64 = 64 << 20;

/// Why there are no settings.
#[derive(Debug)]
pub enum SettingsError {
    /// The file could not be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is wrong.
    Wrong(ConfigErrors),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, source } => {
                write!(f, "cannot read {}: {source}", path.display())
            }
            Self::Wrong(errors) => errors.fmt(f),
        }
    }
}

impl Error for SettingsError {
    /// The display holds the text of the direct cause already; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => source.source(),
            Self::Wrong(_) => None,
        }
    }
}

/// Reads the settings for a role: those the supervisor accepted, or, for a role started by hand,
/// those in `config_path`. Errors and relative paths refer to `config_path` in both cases. To be
/// called at the start and at every SIGHUP.
///
/// # Errors
///
/// When the file cannot be read or is wrong.
pub fn role_settings(config_path: &Path) -> Result<Settings, SettingsError> {
    let accepted = std::env::var_os(ACCEPTED_SETTINGS).map(PathBuf::from);
    let text = read(accepted.as_deref().unwrap_or(config_path))?;
    parse(&text, config_path)
}

/// Reads the text of a settings file.
///
/// # Errors
/// When it cannot be read or is larger than a settings file.
pub fn read(path: &Path) -> Result<String, SettingsError> {
    let unreadable = |source| SettingsError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_LENGTH_MAX {
        return Err(unreadable(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 64 MiB",
        )));
    }
    fs::read_to_string(path).map_err(unreadable)
}

/// Makes settings of a text, which an operator knows as the file at `config_path`.
///
/// # Errors
/// Everything that is wrong in it.
pub fn parse(text: &str, config_path: &Path) -> Result<Settings, SettingsError> {
    Settings::parse(text, &config_path.to_string_lossy()).map_err(SettingsError::Wrong)
}
