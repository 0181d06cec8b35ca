//! What the commands need of the program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_settings::Settings;

/// Runs the server of block lists; the file and the level are those of settings to be read again.
pub type ServeLists = fn(&Arc<Settings>, Option<(PathBuf, Level)>) -> Result<(), Failure>;

/// The settings that a command may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config<'a>(Option<&'a Path>);

impl<'a> Config<'a> {
    /// The settings of a file, or of the usual file.
    pub(crate) const fn new(file: Option<&'a Path>) -> Self {
        Self(file)
    }

    /// The file's path and what it says.
    ///
    /// # Errors
    /// When there is no file, or the file has an error.
    pub(crate) fn load(&self) -> Result<(PathBuf, Arc<Settings>), Failure> {
        let path = vere_process::config::find(self.0)?;
        let settings = vere_process::config::read(&path)?;
        Ok((path, settings))
    }

    /// The file that the command line names.
    pub(crate) const fn file(&self) -> Option<&Path> {
        self.0
    }
}
