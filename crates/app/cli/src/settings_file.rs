//! The settings file, changed by commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use vere_enrolment::write;
use vere_process::failure::Failure;
use vere_settings::Settings;

/// The settings file as text, and its place behind links.
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl SettingsFile {
    /// Reads the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
        let path = fs::canonicalize(path).map_err(failed)?;
        let text = fs::read_to_string(&path).map_err(failed)?;
        Ok(Self { path, text })
    }

    /// The settings of a changed text, which is checked so.
    ///
    /// # Errors
    /// When the text has an error.
    pub(crate) fn parse(&self, text: &str) -> Result<Settings, Failure> {
        Ok(Settings::parse(text, &self.path.to_string_lossy())?)
    }

    /// Replaces the file whole, with its owner and permissions.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        let found = fs::metadata(&self.path)?;
        let mode = found.permissions().mode() & 0o777;
        let owner = vere_enrolment::Owner::of(&self.path)?;
        Ok(write(&self.path, text, mode, owner)?)
    }
}
