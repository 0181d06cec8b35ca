//! The log of a process, and its level, which follows the settings.

use std::io;
use std::os::fd::AsFd as _;

use nix::unistd::getppid;
use vere_net::packets::PacketSocket;
use vere_settings::{LogFormat, Settings};
use vere_telemetry::log::{self, Exports, LevelHandle, LogError, LogHandle, LogLevel, LogOptions};

/// Environment variable with the number of the supervisor, for a process whose standard input is the socket of the log.
pub const LOG_CHANNEL: &str = "VERE_LOG_CHANNEL";

/// Starts the log as the settings want it; `role` stands on each line. What waits is written when the handle is
/// dropped, at the end of the process.
///
/// # Errors
/// When the environment asks for what is not understood, or there is a log already.
pub fn start(settings: &Settings, role: &str) -> Result<LogHandle, LogError> {
    let handle = log::init(&LogOptions {
        level: level(settings.log_level_of(role)),
        format: match settings.log.format {
            LogFormat::Text => log::LogFormat::Text,
            LogFormat::Json => log::LogFormat::Json,
        },
        role: Some(role.to_owned()),
    })?;
    if let Some(channel) = inherited() {
        export(&handle.exports(), channel);
    }
    Ok(handle)
}

/// The socket of the log, in a process that the supervisor has started. Processes that a role starts have the variable too, and something
/// else as their standard input.
fn inherited() -> Option<PacketSocket> {
    let supervisor = std::env::var(LOG_CHANNEL).ok()?;
    if supervisor.parse() != Ok(getppid().as_raw()) {
        return None;
    }
    let socket = io::stdin().as_fd().try_clone_to_owned().ok()?;
    Some(socket.into())
}

fn export(exports: &Exports, channel: PacketSocket) {
    exports.open(move |packet| channel.send(packet, &[]));
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
    exports: Exports,
    role: String,
}

impl Level {
    /// The level of the log of `role`.
    pub fn of(log: &LogHandle, role: &str) -> Self {
        Self {
            handle: log.level(),
            exports: log.exports(),
            role: role.to_owned(),
        }
    }

    /// Sends the log to the process that holds the other end of this socket, too. A second call changes nothing.
    pub fn export(&self, channel: PacketSocket) {
        export(&self.exports, channel);
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
