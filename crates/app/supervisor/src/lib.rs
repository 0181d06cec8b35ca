//! `vere serve`: runs the roles as child processes and keeps them running.
//!
//! All work that needs rights or must outlive a role is done here, once: ports are bound, the
//! data directories made, root given up, the settings checked. All work on mail runs in the
//! roles. A dead role is started again within a tenth of a second; the listening sockets stay
//! open here meanwhile, so that clients wait in the kernel's queue instead of being refused.
//!
//! | what | how |
//! |---|---|
//! | start | spool nodes first, then the gateway, each after the one before said `READY=1` |
//! | crash | restart after 50 ms, doubling to 10 s while it keeps dying young |
//! | silence | no `WATCHDOG=1` in 30 s: killed, then as a crash |
//! | SIGHUP | settings parsed, files that they name looked at; if right, kept in `accepted.toml` and roles told; if wrong, the old stay |
//! | `vere reload`, `vere status` | as SIGHUP, with an answer; the state of the roles; over `supervisor.sock` |
//! | SIGTERM, SIGINT | gateway stopped, then the nodes; 30 s each, then SIGKILL; exit 0 |
//! | second SIGINT | all killed, exit 130 |
//! | full disk | a file of 4 MiB, `ballast` in the data folder, is removed when a role ends before it is ready and the disk is full, and made again when there is room |
//! | own death | the kernel kills every role (`child_setup`(vere_process::entry::child_setup)) |
//!
//! Roles talk to the supervisor by `sd_notify(3)`, as the supervisor itself does with systemd, so a
//! role can also be run by systemd directly.

mod asked;
mod backoff;
mod ballast;
mod child;
mod error;
mod kept;
mod listeners;
mod lock;
pub mod memory;
pub mod named;
mod notify;
mod plan;
mod privileges;
mod role;
pub mod roles;
mod snapshot;
pub mod spec;
mod timing;
mod watch;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use vere_control::supervision::supervisor_socket;
use vere_settings::Settings;

use vere_process::log::Level;
use vere_process::{settings, upgrade};

pub use error::SupervisorError;
pub use role::{CommandBuilder, Listener, Readiness, Role};

use lock::DataLock;
use snapshot::Snapshot;
use timing::Timing;
use watch::{Event, Plan, Watch};

/// Runs the whole system in the foreground until told to stop.
///
/// Must be called from a thread that lives as long as the process, best the first: roles die with
/// their starting thread.
///
/// # Errors
///
/// When another system has the data directory, root without `user` found a data directory of another user, a port is taken, root cannot be given up, a directory cannot be made, or a role ends three
/// times without ever being ready. Roles already started are stopped before the error is returned.
pub fn run(
    settings: Arc<Settings>,
    config_path: &Path,
    level: Level,
) -> Result<ExitCode, SupervisorError> {
    let extra = Extra {
        level: Some(level),
        ..Extra::default()
    };
    run_with(settings, config_path, extra)
}

/// Services beside the system.
#[derive(Default)]
pub struct Extra {
    /// The log's level, adjusted to the settings.
    pub level: Option<Level>,
    /// Further roles, started first and stopped last.
    pub roles: Vec<Role>,
    /// Called once, when all roles are ready for the first time.
    pub when_ready: Option<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for Extra {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extra")
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

/// As [`run`], with something beside it.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(
    settings: Arc<Settings>,
    config_path: &Path,
    extra: Extra,
) -> Result<ExitCode, SupervisorError> {
    upgrade::look(&settings).map_err(SupervisorError::Unsaid)?;
    privileges::raise_descriptor_limit();
    let config_path = &std::path::absolute(config_path)
        .map_err(SupervisorError::system("find the working directory"))?;
    privileges::refuse_data_of_another(&settings)?;
    privileges::make_data(&settings)?;
    // Before any access to sockets or settings of a system that may be running already.
    let _lock = DataLock::take(&settings.data)?;
    let bound = listeners::open(&settings)?;
    if let (Some(level), Some(log)) = (&extra.level, &bound.log) {
        let log = log
            .try_clone()
            .map_err(SupervisorError::system("copy the socket of the log"))?;
        level.export(log.into());
    }
    let text = settings::read(config_path)?;
    let executable =
        std::env::current_exe().map_err(SupervisorError::system("find the program's own file"))?;
    privileges::prepare(&settings, &executable)?;
    // As the user of the roles: root could read more.
    snapshot::check_at_start(&settings, config_path, &text)?;
    let mut snapshot = Snapshot::new(Arc::clone(&settings), config_path, &text)?;

    let mut roles = extra.roles;
    roles.extend(plan::roles(
        &executable,
        config_path,
        snapshot.path(),
        bound,
    ));
    let plan = Plan {
        roles,
        reload: Box::new(move || {
            let (settings, changed) = snapshot.reload()?;
            if let Some(level) = &extra.level {
                level.set(level.wanted(settings));
            }
            Ok(changed)
        }),
        when_ready: extra.when_ready,
    };
    let watch = Watch::new(plan, &settings.data, Timing::DEFAULT)?;
    watch::report_signals(watch.reports())?;
    let _socket = command_socket(&settings, &watch);
    watch.run()
}

/// Serves `vere status` and `vere reload`, if the socket can be opened: mail matters more than the two commands.
fn command_socket(settings: &Settings, watch: &Watch) -> Option<asked::Socket> {
    let path = supervisor_socket(settings);
    let reports = watch.reports();
    asked::serve(&path, move |asked| reports.send(Event::Asked(asked)).is_ok())
        .inspect_err(|error| {
            tracing::warn!(%error, path = %path.display(), "no socket for `vere status` and `vere reload`");
        })
        .ok()
}
