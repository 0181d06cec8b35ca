//! Mail systems started for a measurement: ours, and those it is compared with.
//!
//! Each runs from a folder of its own with ports of its own, relays everything to one next hop, and
//! leaves nothing behind: an installed system of the same kind is neither read nor touched.

mod postfix;
mod vere;

use std::fmt;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) use postfix::Destination;
pub use postfix::PostfixSetup;
use vere::Nodes;
pub use vere::Ways;

use crate::process::{CpuAccount, Daemon, Process, guard};

/// How long a system may take until it greets.
const START_MAX: Duration = Duration::from_secs(30);

/// How long a system may take to end after SIGTERM before it is killed.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Why a system could not be started.
#[derive(Debug)]
pub enum PeerError {
    /// It is not installed, or this user may not start it: skip it and say so.
    Unavailable {
        /// The system.
        name: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The product's program does not lie here.
    NoProgram(PathBuf),
    /// Its folder cannot be made.
    Folder(io::Error),
    /// The program cannot be started.
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It ended, or did not greet in time.
    NotReady {
        /// The system.
        name: &'static str,
        /// The end of its log.
        last_words: String,
    },
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { name, reason } => write!(f, "{name} skipped: {reason}"),
            Self::NoProgram(path) => {
                let path = path.display();
                write!(
                    f,
                    "expected the program {path}; found none (--vere PATH names another)"
                )
            }
            Self::Folder(source) => write!(f, "cannot make a folder: {source}"),
            Self::Spawn { program, source } => {
                write!(f, "cannot start {}: {source}", program.display())
            }
            Self::NotReady { name, last_words } if last_words.is_empty() => {
                write!(f, "{name} does not greet and printed nothing")
            }
            Self::NotReady { name, last_words } => {
                write!(f, "{name} does not greet; its last words:\n{last_words}")
            }
        }
    }
}

impl std::error::Error for PeerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder(source) | Self::Spawn { source, .. } => Some(source),
            Self::Unavailable { .. } | Self::NoProgram(_) | Self::NotReady { .. } => None,
        }
    }
}

/// The product's program: that of an option, else `vere` beside this program.
///
/// # Errors
/// [`PeerError::NoProgram`] when there is none.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf, PeerError> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let vere = std::env::current_exe()
        .unwrap_or_default()
        .with_file_name("vere");
    match vere.is_file() {
        true => Ok(vere),
        false => Err(PeerError::NoProgram(vere)),
    }
}

/// A mail system that runs, relays to its next hop, and ends when dropped.
#[derive(Debug)]
pub struct Peer {
    name: &'static str,
    address: SocketAddr,
    daemon: Daemon,
    // Removed after the daemon, which still writes to it.
    folder: TempDir,
}

impl Peer {
    /// Starts Postfix in a folder below `base`.
    ///
    /// # Errors
    ///
    /// [`PeerError::Unavailable`] without Postfix 3.4 or later or without root, else what went
    /// wrong.
    pub fn postfix(
        setup: PostfixSetup,
        next_hop: SocketAddr,
        base: &Path,
    ) -> Result<Self, PeerError> {
        let destination = Destination::NextHop(next_hop);
        postfix::start(setup.name(), setup, &destination, base)
    }

    /// Starts Postfix, tuned, which delivers mail itself or to a deliverer, and is called so.
    pub(crate) fn postfix_for(
        name: &'static str,
        destination: &Destination,
        base: &Path,
    ) -> Result<Self, PeerError> {
        postfix::start(name, PostfixSetup::Tuned, destination, base)
    }

    /// Starts this product from the program `vere` in a folder below `base`.
    ///
    /// # Errors
    ///
    /// What went wrong; a `vere` without `serve` is [`PeerError::NotReady`].
    pub fn vere(vere: &Path, next_hop: SocketAddr, base: &Path) -> Result<Self, PeerError> {
        vere::start(vere, &Ways::To(next_hop), Nodes::Two, base)
    }

    /// The same with other ways of mail.
    ///
    /// # Errors
    ///
    /// As [`Peer::vere`].
    pub fn vere_with(vere: &Path, ways: &Ways, base: &Path) -> Result<Self, PeerError> {
        vere::start(vere, ways, Nodes::Two, base)
    }

    /// [`Peer::vere`] with one spool node more than there are replicas, where one that is slower than the
    /// other for two seconds is replaced.
    ///
    /// # Errors
    ///
    /// As [`Peer::vere`].
    pub fn vere_with_spare(
        vere: &Path,
        next_hop: SocketAddr,
        base: &Path,
    ) -> Result<Self, PeerError> {
        vere::start(vere, &Ways::To(next_hop), Nodes::Three, base)
    }

    /// Runs `vere ARGUMENTS` about this system, which must be one of ours, and gives what it prints.
    ///
    /// # Errors
    ///
    /// It cannot be run, or it failed: then what it said.
    pub fn ask(&self, vere: &Path, arguments: &[&str]) -> io::Result<Vec<u8>> {
        vere::ask(vere, self.folder(), arguments)
    }

    /// What it is called in reports.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Where it takes mail.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CPU account of all its processes.
    pub fn account(&self) -> CpuAccount {
        self.daemon.account()
    }

    /// The process id of the program that was started.
    pub fn id(&self) -> u32 {
        self.daemon.id()
    }

    /// Its living processes, the one that was started among them.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        Process::tree(self.daemon.id())
    }

    /// Its folder: configuration, data and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until the system greets.
    fn ready(self) -> Result<Self, PeerError> {
        let until = Instant::now() + START_MAX;
        while !greets(self.address) {
            if Instant::now() >= until || !self.daemon.is_running() {
                let (name, last_words) = (self.name, self.daemon.last_words());
                return Err(PeerError::NotReady { name, last_words });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if self.name.starts_with("postfix") {
            postfix::stop(self.folder.path());
            self.daemon.wait(STOP_MAX);
        } else {
            self.daemon.stop(STOP_MAX);
        }
    }
}

/// Whether an SMTP server at `address` greets with 220 within a second.
fn greets(address: SocketAddr) -> bool {
    let second = Duration::from_secs(1);
    let Ok(mut stream) = TcpStream::connect_timeout(&address, second) else {
        return false;
    };
    let mut code = [0; 3];
    stream.set_read_timeout(Some(second)).is_ok()
        && stream.read_exact(&mut code).is_ok()
        && code == *b"220"
}

/// A loopback address with a port that was free a moment ago.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}

/// A new folder below `base` that daemons with users of their own may enter.
pub(crate) fn folder(base: &Path, prefix: &str) -> io::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(base)?;
    guard::keep_folder(folder.path());
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

#[cfg(test)]
mod tests;
