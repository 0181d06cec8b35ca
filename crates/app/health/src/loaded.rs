//! Settings with the file of the settings.

use std::path::PathBuf;
use std::sync::Arc;

use vere_settings::Settings;

/// Settings, and the file where the caller knows the file: remedies name the file.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) file: Option<PathBuf>,
    pub(crate) settings: Arc<Settings>,
}

impl From<Arc<Settings>> for Loaded {
    fn from(settings: Arc<Settings>) -> Self {
        Self {
            file: None,
            settings,
        }
    }
}

impl From<(PathBuf, Arc<Settings>)> for Loaded {
    fn from((file, settings): (PathBuf, Arc<Settings>)) -> Self {
        Self {
            file: Some(file),
            settings,
        }
    }
}
