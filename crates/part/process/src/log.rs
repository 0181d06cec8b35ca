//! The log of a process, and its level, which follows the settings.

use vere_settings::{LogFormat, Settings};
use vere_telemetry::log::{self, LevelHandle, LogError, LogHandle, LogLevel, LogOptions};

/// Starts the log as the settings want it; `role` stands on each line. What waits is written when the handle is
/// dropped, at the end of the process.
///
/// # Errors
/// When the environment asks for what is not understood, or there is a log already.
pub fn start(settings: &Settings, role: &str) -> Result<LogHandle, LogError> {
    log::init(&LogOptions {
        level: level(settings.log_level_of(role)),
        format: match settings.log.format {
            LogFormat::Text => log::LogFormat::Text,
            LogFormat::Json => log::LogFormat::Json,
        },
        role: Some(role.to_owned()),
    })
}

const fn level(level: vere_settings::LogLevel) -> LogLevel {
    match level {
        vere_settings::LogLevel::Error => LogLevel::Error,
        vere_settings::LogLevel::Warn => LogLevel::Warn,
        vere_settings::LogLevel::Info => LogLevel::Info,
        vere_settings::LogLevel::Debug => LogLevel::Debug,
        vere_settings::LogLevel::Trace => LogLevel::Trace,
    }
}

/// The level of the process's log, as the settings have it for the role.
#[derive(Debug, Clone)]
pub struct Level {
    handle: LevelHandle,
    role: String,
}

impl Level {
    /// The level of the log of `role`.
    pub fn of(log: &LogHandle, role: &str) -> Self {
        Self {
            handle: log.level(),
            role: role.to_owned(),
        }
    }

    /// The level of these settings.
    pub fn wanted(&self, settings: &Settings) -> vere_settings::LogLevel {
        settings.log_level_of(&self.role)
    }

    /// Sets it as settings want it that have come into force.
    pub fn set(&self, wanted: vere_settings::LogLevel) {
        self.handle.set(level(wanted));
    }
}
