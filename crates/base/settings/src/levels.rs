//! The level of each role's log.

use crate::model::Settings;
use crate::watching::LogLevel;

impl Settings {
    /// The least important level of a role's log; `role` is the name of the process.
    #[must_use]
    pub fn log_level_of(&self, role: &str) -> LogLevel {
        match &self.x400 {
            Some(x400) if role == "x400" => x400.log_level,
            _ => self.log.level,
        }
    }
}
