//! Requests to the supervisor of a running system, over `supervisor.sock`, and its answers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_settings::Settings;

use crate::error::{AskError, Peer};
use crate::{is_nobody, talk, understood};

/// What a command can ask of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum SupervisorRequest {
    /// The state of the system: a [`SystemState`].
    Status,
    /// Puts the edited settings in force, as SIGHUP does: a [`Accepted`].
    Reload,
}

/// Settings accepted by a reload. Roles apply the settings afterwards: [`RoleState::settings`] has the progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Number of the settings: 1 at the start, and 1 more for each accepted reload.
    pub settings: u64,
    /// Keys whose values changed.
    pub changed: Vec<String>,
}

/// The state of a running system. Ages are in whole seconds, so that jumps of the clock do not matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemState {
    /// Version of the running program.
    pub version: String,
    /// Process of the supervisor.
    pub pid: u32,
    /// The phase of the supervisor.
    pub phase: SystemPhase,
    /// Age of the supervisor.
    pub uptime_seconds: u64,
    /// Number of the accepted settings, as in [`Accepted::settings`].
    pub settings: u64,
    /// The last reload, if it was refused.
    pub refused: Option<RefusedReload>,
    /// The roles in the order of their start.
    pub roles: Vec<RoleState>,
}

/// The phase of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemPhase {
    /// Roles start one after the other.
    Starting,
    /// All roles were ready once.
    Running,
    /// Roles stop one after the other.
    Stopping,
}

/// A refused reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedReload {
    /// Age of the refusal.
    pub seconds_ago: u64,
    /// The errors of the file, one per line.
    pub reason: String,
}

/// The state of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleState {
    /// The name, such as `spool-a`.
    pub name: String,
    /// The state of its process.
    pub state: ProcessState,
    /// The process, if there is one.
    pub pid: Option<u32>,
    /// Age of the process.
    pub uptime_seconds: Option<u64>,
    /// Unexpected ends of its processes since the start of the system.
    pub restarts: u64,
    /// The last unexpected end.
    pub last_end: Option<RoleEnd>,
    /// Number of the settings that the process has applied.
    pub settings: u64,
    /// The work of a starting process, or the reason why the process keeps earlier settings.
    pub complaint: Option<String>,
}

/// An unexpected end of a role's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleEnd {
    /// Age of the end.
    pub seconds_ago: u64,
    /// Exit code or signal.
    pub status: String,
}

/// The state of a role's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// No process.
    Down,
    /// The process recovers state and opens sockets.
    Starting,
    /// The process does its work.
    Ready,
    /// The process was asked to end.
    Stopping,
}

/// Path of the supervisor's socket: beside the gateway's.
#[must_use]
pub fn supervisor_socket(settings: &Settings) -> PathBuf {
    settings.control.socket.with_file_name("supervisor.sock")
}

/// Asks the supervisor behind `socket`; `None` when nobody listens there.
///
/// # Errors
/// When the answer takes longer than `patience`, has another form, or is a refusal.
pub fn ask_supervisor<T: serde::de::DeserializeOwned>(
    socket: &Path,
    request: SupervisorRequest,
    patience: Duration,
) -> Result<Option<T>, AskError> {
    match talk(socket, &request, patience) {
        Err(error) if is_nobody(&error) => Ok(None),
        talked => {
            let value = understood(socket, Peer::Supervisor, talked)?;
            serde_json::from_value(value)
                .map(Some)
                .map_err(AskError::Form)
        }
    }
}
