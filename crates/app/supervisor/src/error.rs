//! Why the supervisor could not start or go on.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use vere_net::listen::ListenError;

use crate::named::Fault;
use vere_process::settings::SettingsError;
use vere_process::upgrade::Unsaid;
use vere_process::wording::counted;

/// Why the system could not be started, or a reload was refused.
#[derive(Debug)]
pub enum SupervisorError {
    /// A listening socket could not be opened; the source names the address and, when the port is
    /// taken and the holder can be found, the holding process.
    Listen {
        /// The section of the settings, or `systemd`.
        section: String,
        /// Why.
        source: ListenError,
    },
    /// A socket in the file system could not be opened.
    Socket {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The user named in the settings does not exist on the machine.
    UserUnknown {
        /// The setting `user`.
        user: String,
    },
    /// The kernel or the system's user list refused a step of giving up root.
    Privileges {
        /// The setting `user`.
        user: String,
        /// The step that failed.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The program file cannot be executed by the user of the roles.
    ExecutableUnreachable {
        /// The setting `user`.
        user: String,
        /// The program.
        path: PathBuf,
    },
    /// A data directory could not be created or given to the user.
    DataDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Root would leave unusable files in the data directory of another user.
    DataOfAnother {
        /// The directory.
        path: PathBuf,
        /// The owner's name, or number.
        owner: String,
    },
    /// Another system runs on the data directory.
    DataInUse {
        /// The directory.
        path: PathBuf,
        /// The process with the directory in use, if known.
        holder: Option<u32>,
    },
    /// A backup was not restored to its end into the data directory.
    DataIncomplete {
        /// The directory.
        path: PathBuf,
    },
    /// Maildirs exist, and no setting says whether mail goes there.
    Unsaid(Unsaid),
    /// A role ended several times without ever being ready.
    RoleNeverReady {
        /// Its name.
        role: String,
        /// The number of tries.
        tries: u32,
    },
    /// A reload changed settings that take effect only after a restart.
    NeedsRestart {
        /// The keys of the settings.
        keys: Vec<String>,
    },
    /// The settings file could not be read, or is wrong.
    Settings(SettingsError),
    /// The settings file is right, but files named in the settings cannot be used.
    FilesWrong {
        /// The settings file.
        path: PathBuf,
        /// The faults, each with the line of the key; never empty.
        faults: Vec<(Option<usize>, Fault)>,
    },
    /// A call that only fails on a machine without memory, descriptors or the needed kernel.
    System {
        /// The failed call.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl SupervisorError {
    /// Names the step of a failed system call.
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

impl From<SettingsError> for SupervisorError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

impl fmt::Display for SupervisorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { section, source } => write!(f, "{section}: {source}"),
            Self::Socket { path, source } => {
                write!(f, "cannot listen on {}: {source}", path.display())
            }
            Self::UserUnknown { user } => {
                write!(
                    f,
                    "user = \"{user}\": no such user; create it with `useradd --system {user}`"
                )
            }
            Self::Privileges { user, step, source } => {
                write!(f, "cannot become user {user}: {step}: {source}")
            }
            Self::ExecutableUnreachable { user, path } => write!(
                f,
                "user {user} cannot execute {}: install the program where every user can reach it, \
                 for example in /usr/local/bin",
                path.display()
            ),
            Self::DataDirectory { path, source } => {
                write!(f, "data directory {}: {source}", path.display())
            }
            Self::DataOfAnother { path, owner } => write!(
                f,
                "data directory {}: expected a directory of root, since root starts the system and no `user` is set; found \
                 a directory of {owner}, who could not use the new files: start the system as {owner}, or set `user` in the \
                 settings",
                path.display()
            ),
            Self::DataInUse { path, holder } => {
                write!(f, "data folder {} is in use by ", path.display())?;
                match holder {
                    Some(holder) => write!(f, "process {holder}"),
                    None => f.write_str("another process"),
                }
            }
            Self::DataIncomplete { path } => write!(
                f,
                "data directory {}: a restore into it did not finish; run the same `vere restore` again",
                path.display()
            ),
            Self::Unsaid(unsaid) => unsaid.fmt(f),
            Self::RoleNeverReady { role, tries } => {
                write!(
                    f,
                    "role {role} ended {} before it was ready; its log says why",
                    counted(*tries, "time", "times")
                )
            }
            Self::NeedsRestart { keys } => {
                write!(
                    f,
                    "nothing was changed, since a restart is needed for {}",
                    keys.join(", ")
                )
            }
            Self::Settings(error) => error.fmt(f),
            Self::FilesWrong { path, faults } => {
                for (n, (line, Fault { key, text })) in faults.iter().enumerate() {
                    let end = if n == 0 { "" } else { "\n" };
                    let line = line.map(|line| format!("{line}:")).unwrap_or_default();
                    write!(f, "{end}{}:{line} {key}: {text}", path.display())?;
                }
                Ok(())
            }
            Self::System { what, source } => write!(f, "cannot {what}: {source}"),
        }
    }
}

impl Error for SupervisorError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Privileges { source, .. }
            | Self::Socket { source, .. }
            | Self::DataDirectory { source, .. }
            | Self::System { source, .. } => source.source(),
            Self::Listen { source, .. } => source.source(),
            Self::Settings(error) => error.source(),
            Self::FilesWrong { .. }
            | Self::UserUnknown { .. }
            | Self::Unsaid(_)
            | Self::DataOfAnother { .. }
            | Self::DataInUse { .. }
            | Self::DataIncomplete { .. }
            | Self::ExecutableUnreachable { .. }
            | Self::RoleNeverReady { .. }
            | Self::NeedsRestart { .. } => None,
        }
    }
}
