//! Finds and reads the configuration file.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vere_settings::{ConfigErrors, Settings};

/// Where a file is looked for when neither `-c` nor `VERE_CONFIG` names one.
const PLACES: [&str; 2] = ["run/vere.toml", "/etc/vere/vere.toml"];

/// The variable that names the file.
const VARIABLE: &str = "VERE_CONFIG";

/// Why there is no configuration.
#[derive(Debug)]
pub enum ConfigFileError {
    /// The command names no file, and the default places have no file.
    NotFound,
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Whether `VERE_CONFIG` names it.
        from_variable: bool,
        /// What the system said.
        source: io::Error,
    },
    /// The working directory is not known, from which a relative path is taken.
    NoWorkingDirectory(io::Error),
    /// The file is wrong.
    Wrong(ConfigErrors),
}

impl fmt::Display for ConfigFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str(
                "no configuration: give one with -c FILE or VERE_CONFIG, or make one with \
                 `vere quickstart you@your.domain` (looked for run/vere.toml and /etc/vere/vere.toml)",
            ),
            Self::Unreadable {
                path,
                from_variable,
                source,
            } => {
                let from = if *from_variable {
                    " (from VERE_CONFIG)"
                } else {
                    ""
                };
                write!(f, "cannot read {}{from}: {source}", path.display())
            }
            Self::NoWorkingDirectory(error) => error.fmt(f),
            Self::Wrong(errors) => errors.fmt(f),
        }
    }
}

impl Error for ConfigFileError {
    /// The display holds the text of the direct cause already; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } | Self::NoWorkingDirectory(source) => source.source(),
            Self::NotFound | Self::Wrong(_) => None,
        }
    }
}

/// The configuration file: as given, else `VERE_CONFIG`, else `run/vere.toml` below the working directory,
/// else `/etc/vere/vere.toml`.
///
/// # Errors
/// When there is none.
pub fn find(given: Option<&Path>) -> Result<PathBuf, ConfigFileError> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    PLACES
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
        .ok_or(ConfigFileError::NotFound)
}

/// Reads and checks a configuration file.
///
/// # Errors
/// When it cannot be read; or everything that is wrong in it, with lines.
pub fn read(path: &Path) -> Result<Arc<Settings>, ConfigFileError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigFileError::Unreadable {
        path: path.to_owned(),
        from_variable: std::env::var_os(VARIABLE).is_some_and(|named| named == path.as_os_str()),
        source,
    })?;
    let path = std::path::absolute(path).map_err(ConfigFileError::NoWorkingDirectory)?;
    let settings = Settings::parse(&text, &path.to_string_lossy());
    Ok(Arc::new(settings.map_err(ConfigFileError::Wrong)?))
}
