//! What the supervisor knows about a role before it runs.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};

use vere_process::entry::SUPERVISOR_PID;

/// Environment variable with the names of the inherited listeners, separated by colons: the first
/// is descriptor 3, the next 4, and so on; `LISTEN_FDS` has their number.
pub(super) const LISTEN_FDNAMES: &str = "VERE_LISTEN_FDNAMES";

/// First inherited descriptor, as in `sd_listen_fds(3)`.
const LISTEN_FDS_START: i32 = 3;

/// What the service manager above us said to us and must not reach our children.
const FOREIGN_VARIABLES: [&str; 3] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDNAMES"];

/// How the supervisor learns that a role works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// The role sends `READY=1` and then `WATCHDOG=1` in time.
    Notified,
    /// The role knows nothing of the protocol: it counts as ready once started.
    Spawned,
}

/// A listening socket that the supervisor keeps open while roles come and go.
#[derive(Debug, Clone)]
pub struct Listener {
    /// What the role calls it: the settings section (`smtp`, `submission`, ...).
    pub name: String,
    /// The bound socket, of the internet or in the file system.
    pub socket: Arc<OwnedFd>,
}

/// Builds the command of a role; called at every start.
pub type CommandBuilder = Box<dyn Fn() -> Command + Send>;

/// One role: a program, and what it inherits.
pub struct Role {
    /// Name in logs and errors, for example `spool-a`.
    pub name: String,
    /// Program and arguments.
    pub command: CommandBuilder,
    /// Listening sockets handed to every new process of the role.
    pub listeners: Vec<Listener>,
    /// How it says that it works.
    pub readiness: Readiness,
    /// Whether SIGHUP makes it read its settings again.
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
    /// Starts a process of this role, in a process group of its own so that Ctrl-C in a terminal
    /// reaches the supervisor only, which then stops the roles in order.
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
        command.process_group(0);
        command.spawn()
    }

    /// The names of the listeners in the order of their descriptors.
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
