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
        level: level(settings.log.level),
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

/// The level of the process's log.
#[derive(Debug, Clone)]
pub struct Level(LevelHandle);

impl Level {
    /// That of this log.
    pub fn of(log: &LogHandle) -> Self {
        Self(log.level())
    }

    /// Sets it as settings want it that have come into force.
    pub fn set(&self, wanted: vere_settings::LogLevel) {
        self.0.set(level(wanted));
    }
}
