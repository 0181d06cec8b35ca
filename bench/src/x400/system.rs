//! The measured MTA: `vere serve` with settings of the benchmark, and the processes around it.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::control::{Control, Remote};
use super::names;
use super::plan::{Durability, SOURCES};
use crate::error::BenchError;
use crate::peer::{self, OURS, PeerError, Settings, free_address};
use crate::process::{Daemon, Process, guard};
use crate::store::usage;

/// Longest time from the start of the MTA to its listener, also with a full queue.
const START_MAX: Duration = Duration::from_secs(300);
/// Memory of a node for messages: two nodes and the MTA shall have 2 GiB.
const NODE_MEMORY: &str = "768 MiB";
/// Time between SIGTERM and SIGKILL.
const STOP_MAX: Duration = Duration::from_secs(30);

/// A shape of the MTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) durability: Durability,
    pub(super) archive: bool,
}

impl Shape {
    pub(super) const fn new(durability: Durability) -> Self {
        Self {
            durability,
            archive: false,
        }
    }

    pub(super) const fn archived(self) -> Self {
        Self {
            archive: true,
            ..self
        }
    }

    /// The name of the column in the results.
    pub(super) const fn name(self) -> &'static str {
        match (self.durability, self.archive) {
            (Durability::Synced, false) => "synced",
            (Durability::Synced, true) => "synced, archive",
            (Durability::Replicated, false) => "replicated",
            (Durability::Replicated, true) => "replicated, archive",
        }
    }
}

/// A running MTA with sinks' addresses in its settings. It ends when dropped.
#[derive(Debug)]
pub(super) struct System {
    pub(super) address: SocketAddr,
    /// The addresses of the sinks.
    pub(super) sinks: Vec<SocketAddr>,
    durability: Durability,
    command: Vec<OsString>,
    daemon: Option<Daemon>,
    // Removed after the daemon, which still writes to the directory.
    folder: TempDir,
}

impl System {
    /// Starts an MTA with so many sinks, and waits for its listener.
    pub(super) fn start(
        vere: &Path,
        base: &Path,
        shape: Shape,
        sinks: usize,
    ) -> Result<Self, PeerError> {
        let folder = peer::folder(base, "vere-bench-x400-")?;
        let address = free_address()?;
        let sinks: Vec<SocketAddr> = (0..sinks)
            .map(|_| free_address())
            .collect::<Result<_, _>>()?;
        let file = write_settings(folder.path(), address, shape, &sinks)?;
        let command = vec![vere.into(), "serve".into(), "-c".into(), file.into()];
        let mut system = Self {
            address,
            sinks,
            durability: shape.durability,
            command,
            daemon: None,
            folder,
        };
        system.spawn()?;
        Ok(system)
    }

    fn spawn(&mut self) -> Result<(), PeerError> {
        let daemon = peer::spawn(&self.command, self.folder.path())?;
        self.daemon = Some(daemon);
        self.await_listener()
    }

    fn await_listener(&self) -> Result<(), PeerError> {
        let listens = || TcpStream::connect(self.address).is_ok();
        match &self.daemon {
            Some(daemon) => peer::await_ready(OURS, daemon, START_MAX, listens),
            None => Ok(()),
        }
    }

    /// Stops the MTA and starts it again. Returns the moment of the start. Messages that memory alone has would be lost with the nodes:
    /// there the nodes go on, the process of the MTA is ended, and the moment is that of its end.
    pub(super) fn restart(&mut self) -> Result<Instant, PeerError> {
        if self.durability == Durability::Replicated {
            let begun = self.end_mta();
            self.await_listener()?;
            return Ok(begun);
        }
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop(STOP_MAX);
        }
        let begun = Instant::now();
        self.spawn()?;
        Ok(begun)
    }

    /// Ends the process of the MTA alone; the supervisor starts another one.
    fn end_mta(&self) -> Instant {
        let mut ending = self.processes();
        ending.retain(|process| kind(&process.command) == "x400");
        for process in &ending {
            process.signal(Signal::SIGTERM);
        }
        let until = Instant::now() + STOP_MAX;
        // Times of a process that has ended cannot be read.
        while ending.iter().any(|process| process.cpu().is_ok()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        Instant::now()
    }

    /// The living processes of the MTA.
    pub(super) fn processes(&self) -> Vec<Process> {
        let tree = self
            .daemon
            .as_ref()
            .map(|daemon| Process::tree(daemon.id()));
        tree.and_then(Result::ok).unwrap_or_default()
    }

    /// Memory of all processes in MB; shared memory counts in parts.
    pub(super) fn memory_mb(&self) -> f64 {
        usage::memory(&self.processes()) as f64 * 1_024.0 / 1e6
    }

    /// The end of the output, if the MTA has ended.
    pub(super) fn last_words(&self) -> Option<String> {
        let daemon = self.daemon.as_ref()?;
        (!daemon.is_running()).then(|| daemon.last_words())
    }

    /// Starts the sink of a number, from 0 on.
    pub(super) fn sink(&self, number: usize) -> Result<Child, BenchError> {
        let Some(address) = self.sinks.get(number) else {
            return Err(BenchError::protocol("no such sink"));
        };
        let name = names::sink(number + 1);
        let arguments = [format!("--listen={address}"), format!("--name={name}")];
        Child::start("x400-sink", &arguments, self.folder.path())
    }

    /// The directory of logs.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.stop(STOP_MAX);
        }
    }
}

/// A source or sink: a process of the running program. It ends when dropped.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) remote: Remote,
    pub(super) daemon: Daemon,
    _log: TempDir,
}

impl Child {
    /// Starts a hidden command of this program, and waits for its connection.
    pub(super) fn start(
        command: &str,
        arguments: &[String],
        base: &Path,
    ) -> Result<Self, BenchError> {
        let failed = || BenchError::of(format!("{command} does not start"));
        let log = peer::folder(base, "child-").map_err(failed())?;
        let control = Control::bind().map_err(failed())?;
        let program = std::env::current_exe().map_err(failed())?;
        let mut words: Vec<OsString> = vec![program.into(), command.into()];
        words.push(format!("--control={}", control.address).into());
        words.extend(arguments.iter().map(OsString::from));
        let daemon = peer::spawn(&words, log.path())?;
        let remote = control.accept().map_err(|error| {
            let words = daemon.last_words();
            BenchError::of(format!("{command}: {words}"))(error)
        })?;
        Ok(Self {
            remote,
            daemon,
            _log: log,
        })
    }

    /// Processor time of the process so far.
    pub(super) fn cpu(&self) -> Duration {
        self.daemon.account().total().unwrap_or_default()
    }
}

/// Writes the settings: one listener, sources that may send, and sinks.
fn write_settings(
    folder: &Path,
    listen: SocketAddr,
    shape: Shape,
    sinks: &[SocketAddr],
) -> io::Result<PathBuf> {
    let Shape {
        durability,
        archive,
    } = shape;
    let (mta, domain) = (names::MTA, names::domain(names::DOMAIN));
    let archive = if archive { "yes" } else { "no" };
    let mut text = format!(
        "[spool]\ndurability = \"{}\"\nmemory_max = \"{NODE_MEMORY}\"\n[delivery]\nlocal = \"maildir\"\n\
         [x400]\nlisten = [\"{listen}\"]\nmta_name = \"{mta}\"\ndomain = \"{domain}\"\n\
         archive = \"{archive}\"\nretry = [\"2s\"]\n",
        durability.word()
    );
    for number in 1..=SOURCES {
        // A source is never called.
        text += &peer_lines(&names::source(number), None);
    }
    for (number, address) in (1..).zip(sinks) {
        let name = names::sink(number);
        let route = names::domain(&names::private(&name));
        text += &peer_lines(&name, Some(*address));
        text += &format!("[[x400.route]]\naddress = \"{route}\"\nto = \"peer:{name}\"\n");
    }
    let settings = Settings::new(&folder.join("data"), &[]).with(&text);
    settings.nodes(&["a", "b"])?.write(folder)
}

fn peer_lines(name: &str, address: Option<SocketAddr>) -> String {
    let (domain, password) = (names::domain(&names::private(name)), names::PASSWORD);
    let addresses: Vec<String> = address.iter().map(ToString::to_string).collect();
    format!(
        "[[x400.peer]]\nname = \"{name}\"\ndomain = \"{domain}\"\naddresses = {addresses:?}\n\
         password = \"{password}\"\nown_password = \"{password}\"\n"
    )
}

/// The kind of a process of ours by its arguments: the name of its role, else the command.
pub(super) fn kind(command: &str) -> String {
    let mut words = command.split(' ').skip(1);
    let first = words.next().unwrap_or("supervisor");
    let name = match first {
        "role" => words.next().unwrap_or(first),
        "serve" => "supervisor",
        other => other,
    };
    name.to_owned()
}

/// Whether the benchmark was asked to end, or the MTA has ended.
pub(super) fn check(system: &System) -> Result<(), BenchError> {
    if guard::is_stopped() {
        return Err(BenchError::Stopped);
    }
    match system.last_words() {
        Some(words) => Err(BenchError::protocol(format!("the MTA has ended: {words}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_all_peers_and_routes() {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:2102".parse().unwrap();
        let sinks = ["127.0.0.1:3001", "127.0.0.1:3002"].map(|sink| sink.parse().unwrap());
        let shape = Shape::new(Durability::Synced).archived();
        let file = write_settings(folder.path(), listen, shape, &sinks).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.matches("[[x400.peer]]").count(), SOURCES + 2, "{text}");
        assert!(text.contains("to = \"peer:sink2\""), "{text}");
        assert!(text.contains("archive = \"yes\"") && text.contains("durability = \"synced\""));
        assert_eq!(shape.name(), "synced, archive");
    }

    #[test]
    fn processes_are_known_by_their_roles() {
        assert_eq!(kind("/usr/bin/vere role spool --node a -c /x"), "spool");
        assert_eq!(kind("/usr/bin/vere serve -c /x"), "supervisor");
        assert_eq!(kind(""), "supervisor");
    }
}
