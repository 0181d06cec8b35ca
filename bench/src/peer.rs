//! Mail systems started for a measurement: ours, and its peers.
//!
//! Each system runs from a separate directory with its own ports, relays all mail to one next hop, and leaves
//! nothing behind: an installed system of the same kind is neither read nor touched.

pub(crate) mod mx;
mod postfix;
pub(crate) mod rspamd;
mod settings;
mod vere;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) use postfix::Destination;
pub use postfix::{NOBODY, PostfixSetup, write_postfix};
pub(crate) use settings::{Settings, free_address};
use vere::Nodes;
pub(crate) use vere::Ways;

use crate::output::Header;
use crate::process::{CpuAccount, Daemon, Process, guard};

/// The name of the product among the systems.
pub(crate) const OURS: &str = "vere";

/// Longest time from the start of a system to its greeting.
const START_MAX: Duration = Duration::from_secs(30);

/// Time between SIGTERM and SIGKILL for a system.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Why a system could not be started.
#[derive(Debug)]
pub enum PeerError {
    /// The system is not installed, or the user may not start the system: the benchmark skips the system and reports
    /// so.
    Unavailable {
        /// The system.
        name: &'static str,
        /// The missing part.
        reason: String,
    },
    /// The product's program does not lie here.
    NoProgram(PathBuf),
    /// The directory of the system cannot be created.
    Folder(io::Error),
    /// The program cannot be started.
    Spawn {
        /// The program.
        program: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The system ended, or did not greet in time.
    NotReady {
        /// The system.
        name: &'static str,
        /// The end of the system's log.
        last_words: String,
    },
}

impl PeerError {
    pub(crate) fn unavailable(name: &'static str, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Unavailable { name, reason }
    }
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

impl From<io::Error> for PeerError {
    fn from(source: io::Error) -> Self {
        Self::Folder(source)
    }
}

/// The product's program: the program of an option, else `vere` beside `vere-bench`.
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

/// The started system, if available; an unavailable system is skipped.
pub(crate) fn there<T>(
    started: Result<T, PeerError>,
    header: &mut Header,
) -> Result<Option<T>, PeerError> {
    match started {
        Ok(system) => Ok(Some(system)),
        Err(error @ (PeerError::Unavailable { .. } | PeerError::NotReady { .. })) => {
            header.skip(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The started system; a system that did not start for any reason is skipped with the reason.
pub(crate) fn or_skipped<T>(
    name: &str,
    started: Result<T, PeerError>,
    header: &mut Header,
) -> Option<T> {
    match started {
        Ok(system) => Some(system),
        Err(error @ PeerError::Unavailable { .. }) => {
            header.skip(error.to_string());
            None
        }
        Err(error) => {
            header.skip(format!("{name} skipped: {error}"));
            None
        }
    }
}

/// A running mail system, which relays to its next hop and ends when dropped.
#[derive(Debug)]
pub struct Peer {
    name: &'static str,
    address: SocketAddr,
    daemon: Daemon,
    // Removed after the daemon, which still writes to the directory.
    folder: TempDir,
}

impl Peer {
    /// Starts Postfix in a folder below `base`.
    ///
    /// # Errors
    ///
    /// [`PeerError::Unavailable`] without Postfix 3.4 or later or without root, else the failure of the start.
    pub fn postfix(
        setup: PostfixSetup,
        next_hop: SocketAddr,
        base: &Path,
    ) -> Result<Self, PeerError> {
        let destination = Destination::NextHop(next_hop);
        postfix::start(setup.name(), setup, &destination, base)
    }

    /// Starts a tuned Postfix of a given name, which delivers mail itself or by a delivery agent.
    pub(crate) fn postfix_for(
        name: &'static str,
        destination: &Destination,
        base: &Path,
    ) -> Result<Self, PeerError> {
        postfix::start(name, PostfixSetup::Tuned, destination, base)
    }

    /// Starts a mail exchanger by Postfix: accepted mail goes to the next hop.
    pub(crate) fn postfix_exchanger(
        name: &'static str,
        setup: PostfixSetup,
        next_hop: SocketAddr,
        lines: &str,
        base: &Path,
    ) -> Result<Self, PeerError> {
        let destination = Destination::Exchanged {
            addresses: mx::recipients(),
            next_hop,
        };
        let more = postfix::More {
            lines,
            ..postfix::More::default()
        };
        postfix::start_with(name, setup, &destination, more, base)
    }

    /// Starts a mail exchanger by Postfix, which asks a name server about clients and reads their addresses from PROXY headers: accepted
    /// mail goes to the next hop.
    pub(crate) fn postfix_asking(
        name: &'static str,
        setup: PostfixSetup,
        next_hop: SocketAddr,
        lines: &str,
        name_server: Ipv4Addr,
        base: &Path,
    ) -> Result<Self, PeerError> {
        let destination = Destination::Exchanged {
            addresses: mx::recipients(),
            next_hop,
        };
        let more = postfix::More {
            lines,
            name_server: Some(name_server),
            header: "PROXY TCP4 198.51.100.1 127.0.0.1 40000 25\r\n",
        };
        postfix::start_with(name, setup, &destination, more, base)
    }

    /// Starts a mail exchanger by Veredarius, with further lines in its settings: accepted mail goes to the next hop.
    pub(crate) fn vere_exchanger(
        name: &'static str,
        vere: &Path,
        next_hop: SocketAddr,
        lines: &str,
        base: &Path,
    ) -> Result<Self, PeerError> {
        vere::start_exchanger(name, vere, next_hop, lines, base)
    }

    /// Starts the bare responder: the least work of any mail exchanger, in one process or with processes for connections
    /// with a known recipient.
    pub(crate) fn responder(
        name: &'static str,
        takers: usize,
        base: &Path,
    ) -> Result<Self, PeerError> {
        let folder = folder(base, "vere-bench-responder-")?;
        let address = free_address()?;
        // The responder is a process of the running program.
        let program = std::env::current_exe()?;
        let command = [
            program.into(),
            "responder".into(),
            address.to_string().into(),
            format!("--takers={takers}").into(),
        ];
        let daemon = spawn(&command, folder.path())?;
        Self {
            name,
            address,
            daemon,
            folder,
        }
        .ready()
    }

    /// Starts Veredarius from the program `vere` in a directory below `base`.
    ///
    /// # Errors
    ///
    /// The failure of the start; a `vere` without `serve` is [`PeerError::NotReady`].
    pub fn vere(vere: &Path, next_hop: SocketAddr, base: &Path) -> Result<Self, PeerError> {
        vere::start(vere, &Ways::To(next_hop), Nodes::Two, base)
    }

    /// Starts Veredarius with other routes.
    pub(crate) fn vere_with(vere: &Path, ways: &Ways, base: &Path) -> Result<Self, PeerError> {
        vere::start(vere, ways, Nodes::Two, base)
    }

    /// [`Peer::vere`] with a spare spool node beyond the replicas, which replaces a node slower than the other for
    /// two seconds.
    pub(crate) fn vere_with_spare(
        vere: &Path,
        next_hop: SocketAddr,
        base: &Path,
    ) -> Result<Self, PeerError> {
        vere::start(vere, &Ways::To(next_hop), Nodes::Three, base)
    }

    /// Runs `vere ARGUMENTS` about the system, which must be Veredarius, and returns the output.
    ///
    /// # Errors
    ///
    /// The command cannot be run, or failed: then with the error text of the command.
    pub fn ask(&self, vere: &Path, arguments: &[&str]) -> io::Result<Vec<u8>> {
        vere::ask(vere, self.folder(), arguments)
    }

    /// The name of the system in reports.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The address of the SMTP listener.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CPU account of all processes of the system.
    pub fn account(&self) -> CpuAccount {
        self.daemon.account()
    }

    /// The process id of the started program.
    pub fn id(&self) -> u32 {
        self.daemon.id()
    }

    /// The living processes of the system, the started program included.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        Process::tree(self.daemon.id())
    }

    /// The directory of the system: configuration, data and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until the system greets.
    fn ready(self) -> Result<Self, PeerError> {
        self.ready_behind("")
    }

    /// Waits until the system greets a client behind the header of a load balancer.
    fn ready_behind(self, header: &str) -> Result<Self, PeerError> {
        let greets = || greets(self.address, header);
        await_ready(self.name, &self.daemon, START_MAX, greets)?;
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

/// Starts a program, the first of `command`, with its output in the directory `folder`.
pub(crate) fn spawn(command: &[OsString], folder: &Path) -> Result<Daemon, PeerError> {
    Daemon::spawn(command, &folder.join("output")).map_err(|source| PeerError::Spawn {
        program: command.first().map(PathBuf::from).unwrap_or_default(),
        source,
    })
}

/// Waits until a started system is ready.
pub(crate) fn await_ready(
    name: &'static str,
    daemon: &Daemon,
    patience: Duration,
    ready: impl Fn() -> bool,
) -> Result<(), PeerError> {
    let until = Instant::now() + patience;
    while !ready() {
        if Instant::now() >= until || !daemon.is_running() {
            let last_words = daemon.last_words();
            return Err(PeerError::NotReady { name, last_words });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Whether an SMTP server at `address` greets with 220 within five seconds: some servers let unknown clients wait.
fn greets(address: SocketAddr, header: &str) -> bool {
    let patience = Duration::from_secs(5);
    let Ok(mut stream) = TcpStream::connect_timeout(&address, patience) else {
        return false;
    };
    let mut code = [0; 3];
    stream.set_read_timeout(Some(patience)).is_ok()
        && stream.write_all(header.as_bytes()).is_ok()
        && stream.read_exact(&mut code).is_ok()
        && code == *b"220"
}

/// A new directory below `base`, open to daemons with users of their own.
pub(crate) fn folder(base: &Path, prefix: &str) -> io::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(base)?;
    guard::keep(guard::Left::Folder(folder.path().to_owned()));
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

#[cfg(test)]
mod tests;
