//! The option `-c`, which most commands have.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use vere_settings::Settings;

use vere_process::config as file;
use vere_process::failure::Failure;

/// Which configuration file a command uses.
#[derive(Debug, Args)]
pub(crate) struct ConfigArg {
    /// The configuration file; without it `VERE_CONFIG`, `run/vere.toml`, `/etc/vere/vere.toml`.
    #[arg(short, long = "config", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl ConfigArg {
    /// The file's path and what it says.
    pub(super) fn load(&self) -> Result<(PathBuf, Arc<Settings>), Failure> {
        let path = file::find(self.config.as_deref())?;
        let settings = file::read(&path)?;
        Ok((path, settings))
    }

    /// The file's path.
    pub(super) fn find(&self) -> Result<PathBuf, Failure> {
        Ok(file::find(self.config.as_deref())?)
    }

    /// The file that the command line names.
    pub(super) fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}
