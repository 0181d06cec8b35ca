//! Finds and reads the configuration file.

pub(crate) mod named;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vere_settings::Settings;

use crate::failure::Failure;

/// Where a file is looked for when neither `-c` nor `VERE_CONFIG` names one.
const PLACES: [&str; 2] = ["run/vere.toml", "/etc/vere/vere.toml"];

/// The variable that names the file.
const VARIABLE: &str = "VERE_CONFIG";

/// The configuration file: as given, else `VERE_CONFIG`, else `run/vere.toml` below the working directory,
/// else `/etc/vere/vere.toml`.
///
/// # Errors
/// When there is none.
pub(crate) fn find(given: Option<&Path>) -> Result<PathBuf, Failure> {
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
        .ok_or_else(|| {
            Failure::new(
                "no configuration: give one with -c FILE or VERE_CONFIG, or make one with \
             `vere quickstart you@your.domain` (looked for run/vere.toml and /etc/vere/vere.toml)",
            )
        })
}

/// Reads and checks a configuration file.
///
/// # Errors
/// When it cannot be read; or everything that is wrong in it, with lines.
pub(crate) fn read(path: &Path) -> Result<Arc<Settings>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let named = std::env::var_os(VARIABLE).is_some_and(|named| named == path.as_os_str());
        let from = if named { " (from VERE_CONFIG)" } else { "" };
        Failure::new(format!("cannot read {}{from}: {error}", path.display()))
    })?;
    let path = std::path::absolute(path)?;
    Ok(Arc::new(Settings::parse(&text, &path.to_string_lossy())?))
}
