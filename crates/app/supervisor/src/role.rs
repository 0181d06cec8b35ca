//! Facts about a role before the start.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};

use vere_process::entry::SUPERVISOR_PID;
use vere_process::log::LOG_CHANNEL;

/// Environment variable with the names of the inherited listeners, separated by colons: the first
/// is descriptor 3, the next 4, and so on; `LISTEN_FDS` has the number of listeners.
pub(super) const LISTEN_FDNAMES: &str = "VERE_LISTEN_FDNAMES";

/// First inherited descriptor, as in `sd_listen_fds(3)`.
const LISTEN_FDS_START: i32 = 3;

/// Variables from the service manager to the supervisor, withheld from the roles.
const FOREIGN_VARIABLES: [&str; 3] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDNAMES"];

/// How the supervisor learns of a role's readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// The role sends `READY=1` and then `WATCHDOG=1` in time.
    Notified,
    /// A role without the protocol counts as ready once started.
    Spawned,
}

/// A listening socket, kept open by the supervisor while roles come and go.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The name of the socket for the role: the settings section (`smtp`, `submission`, ...).
    pub name: String,
    /// The bound socket, of the internet or in the file system.
    pub socket: Arc<OwnedFd>,
}

/// Builds the command of a role; called at every start.
pub type CommandBuilder = Box<dyn Fn() -> Command + Send>;

/// A role: a program, and the inherited sockets.
pub struct Role {
    /// Name in logs and errors, for example `spool-a`.
    pub name: String,
    /// Program and arguments.
    pub command: CommandBuilder,
    /// Listening sockets handed to every new process of the role.
    pub listeners: Vec<Listener>,
    /// The socket of the log, which becomes the standard input; `None` keeps that of the supervisor.
    pub log: Option<Arc<OwnedFd>>,
    /// The way of the role to report readiness.
    pub readiness: Readiness,
    /// Whether SIGHUP makes the role read the settings again.
    pub reloads: bool,
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Role")
            .field("name", &self.name)
            .field("listeners", &self.listeners)
            .field("readiness", &self.readiness)
            .finish_non_exhaustive()
    }
}

impl Role {
    /// Starts a process of the role, in a separate process group: Ctrl-C in a terminal must reach the
    /// supervisor only. The supervisor then stops the roles in order.
    pub(super) fn spawn(&self, notify: &Path, watchdog: Duration) -> io::Result<Child> {
        use std::os::unix::process::CommandExt;

        let mut command = (self.command)();
        for variable in FOREIGN_VARIABLES {
            command.env_remove(variable);
        }
        command
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC");
        if self.readiness == Readiness::Notified {
            command.env("NOTIFY_SOCKET", notify);
            command.env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        }
        command.env(SUPERVISOR_PID, std::process::id().to_string());
        command.env(LISTEN_FDNAMES, self.listener_names());
        command.env("LISTEN_FDS", self.listeners.len().to_string());
        command
            .fd_mappings(self.descriptors()?)
            .map_err(io::Error::other)?;
        command.env_remove(LOG_CHANNEL);
        if let Some(log) = &self.log {
            command.stdin(log.try_clone()?);
            command.env(LOG_CHANNEL, std::process::id().to_string());
        }
        command.process_group(0);
        command.spawn()
    }

    /// The names of the listeners in the order of the descriptors.
    fn listener_names(&self) -> String {
        let names: Vec<&str> = self.listeners.iter().map(|l| l.name.as_str()).collect();
        names.join(":")
    }

    fn descriptors(&self) -> io::Result<Vec<FdMapping>> {
        (LISTEN_FDS_START..)
            .zip(&self.listeners)
            .map(|(child_fd, listener)| {
                let parent_fd = listener.socket.try_clone()?;
                Ok(FdMapping {
                    parent_fd,
                    child_fd,
                })
            })
            .collect()
    }
}
