//! What commands need of the roles.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_settings::Settings;

/// The functions of the roles, which only the program links.
#[derive(Debug)]
pub struct Roles {
    /// The function of each role, by name.
    pub run: &'static [(&'static str, Run)],
    /// Runs the spool node of a name on its own, until a signal stops the node.
    pub node: fn(&Settings, &str) -> Result<(), Failure>,
    /// Runs the server of block lists on its own, until a signal stops the server. The settings are read again from a
    /// file if there is one.
    pub dnsbl: ServeLists,
    /// Drains the queues of dead gateways.
    pub drain: Drain,
    /// Drains the queues of dead MTAs of X.400.
    pub drain_x400: Drain,
}

pub use vere_app_dnsbl::ServeLists;

/// Drains the groups of these gateways, or of all dead gateways, by force if told; writes progress.
pub type Drain = fn(&Arc<Settings>, &[String], bool, &mut dyn Write) -> Result<(), Failure>;

/// How a role runs.
#[derive(Debug)]
pub enum Run {
    /// With the accepted settings and a log, for as long as the supervisor lives.
    Supervised(fn(Start) -> Result<(), Failure>),
    /// Without settings and log, for as long as the socket to the role that started the process is open.
    Alone(fn() -> Result<(), Failure>),
}

/// The environment of a supervised role.
#[derive(Debug)]
pub struct Start {
    /// The accepted settings.
    pub settings: Arc<Settings>,
    /// The file of the settings, for reloads.
    pub config: PathBuf,
    /// The level of the log.
    pub level: Level,
    /// The value of the role's option.
    pub instance: Option<String>,
}
