//! The servers of block lists side by side.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::questions::{Question, ZONE};
use super::{ask, list};
use crate::error::BenchError;
use crate::output::Header;
use crate::peer::{self, PeerError};
use crate::process::{CpuAccount, Daemon, Process};
use crate::store::usage;

pub(super) const OURS: &str = "vere";
pub(super) const RBLDNSD: &str = "rbldnsd";
pub(super) const BARE: &str = "bare responder";

/// Where Debian has rbldnsd.
const RBLDNSD_PROGRAM: &str = "/usr/sbin/rbldnsd";

/// Longest time from the start of a server to its first answer.
const START_MAX: Duration = Duration::from_secs(120);

/// Time between SIGTERM and SIGKILL.
const STOP_MAX: Duration = Duration::from_secs(10);

/// A server has no answer while loading; clients ask again after this time.
const PROBE: Duration = Duration::from_millis(20);

/// A server to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Ours,
    Rbldnsd,
    /// The least work of any server.
    Bare,
}

/// Whether a server limits the rate of answers to a network of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// The rates as shipped.
    On,
    Off,
}

/// The surroundings of the servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) vere: &'a Path,
    pub(super) base: &'a Path,
}

impl System {
    /// Both, the peer first.
    pub(super) const ALL: [Self; 2] = [Self::Rbldnsd, Self::Ours];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ours => OURS,
            Self::Rbldnsd => RBLDNSD,
            Self::Bare => BARE,
        }
    }

    /// The command that serves a file with addresses.
    fn command(
        self,
        site: &Site<'_>,
        address: SocketAddr,
        file: &Path,
        limit: Limit,
        folder: &Path,
    ) -> std::io::Result<Vec<OsString>> {
        let zone = format!("{ZONE}:ip4set:{}", file.display());
        let words: Vec<String> = match self {
            Self::Ours => {
                let mut words = vec![site.vere.display().to_string()];
                words.extend(["dnsbl".to_owned(), "serve".to_owned()]);
                words.extend(match limit {
                    // As shipped, the loopback has no limit.
                    Limit::Off => [format!("--listen={address}"), format!("--zone={zone}")],
                    Limit::On => {
                        let settings = limited(address, file, folder);
                        let path = folder.join("vere.toml");
                        std::fs::write(&path, settings)?;
                        ["-c".to_owned(), path.display().to_string()]
                    }
                });
                words
            }
            Self::Rbldnsd => {
                let mut words = vec![RBLDNSD_PROGRAM.to_owned(), "-n".to_owned()];
                if nix::unistd::geteuid().is_root() {
                    words.extend(["-u".to_owned(), "nobody".to_owned()]);
                }
                // Files are read again on SIGHUP alone.
                let (ip, port) = (address.ip(), address.port());
                words.extend(["-c".to_owned(), "0".to_owned()]);
                words.extend(["-b".to_owned(), format!("{ip}/{port}"), zone]);
                words
            }
            Self::Bare => {
                // The responder is a process of the running program.
                let program = std::env::current_exe()?.display().to_string();
                vec![program, "dns-responder".to_owned(), address.to_string()]
            }
        };
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

/// The settings of a server whose limits hold for the loopback as well.
fn limited(address: SocketAddr, file: &Path, folder: &Path) -> String {
    format!(
        "version = 1\nhostname = \"vere.bench.test\"\ndata = \"{}/data\"\n\
         [dnsbl]\nlisten = [\"{address}\"]\nrate_exempt = []\n\
         [[dnsbl.zone]]\nname = \"{ZONE}\"\ndata = [\"ip4set:{}\"]\n",
        folder.display(),
        file.display()
    )
}

/// A running server, which ends when dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) system: System,
    pub(super) address: SocketAddr,
    /// The time from the start to the first right answer.
    pub(super) load: Duration,
    daemon: Daemon,
    // Removed after the daemon, which still writes to the directory.
    _folder: TempDir,
}

impl Server {
    /// Starts a server and waits for its answer to a question.
    pub(super) fn start(
        system: System,
        site: &Site<'_>,
        file: &Path,
        limit: Limit,
        probe: &Question,
    ) -> Result<Self, PeerError> {
        let name = system.name();
        if system == System::Rbldnsd && !Path::new(RBLDNSD_PROGRAM).is_file() {
            return Err(PeerError::unavailable(name, "not installed"));
        }
        let folder = peer::folder(site.base, "vere-bench-dnsbl-")?;
        let address = peer::free_address()?;
        let began = Instant::now();
        let command = system.command(site, address, file, limit, folder.path())?;
        let daemon = peer::spawn(&command, folder.path())?;
        peer::await_ready(name, &daemon, START_MAX, || answers(address, probe))?;
        Ok(Self {
            system,
            address,
            load: began.elapsed(),
            daemon,
            _folder: folder,
        })
    }

    /// Starts a server; a server that does not start is skipped, with its reason in the results.
    pub(super) fn started(
        system: System,
        site: &Site<'_>,
        file: &Path,
        limit: Limit,
        probe: &Question,
        header: &mut Header,
    ) -> Option<Self> {
        let started = Self::start(system, site, file, limit, probe);
        peer::or_skipped(system.name(), started, header)
    }

    pub(super) fn account(&self) -> CpuAccount {
        self.daemon.account()
    }

    /// Resident memory of all processes, in MB.
    pub(super) fn resident_mb(&self) -> std::io::Result<f64> {
        let processes = Process::tree(self.daemon.id())?;
        Ok(usage::resident(&processes) as f64 * 1_024.0 / 1e6)
    }

    /// Lets the server read its files again.
    pub(super) fn reload(&self) -> std::io::Result<()> {
        // The program that was started; its children take care of themselves.
        let id = self.daemon.id();
        let process = Process {
            id,
            command: String::new(),
        };
        match process.signal(Signal::SIGHUP) {
            true => Ok(()),
            false => Err(std::io::Error::other("the server has ended")),
        }
    }

    /// Whether the server gives the expected answer.
    pub(super) fn answers(&self, probe: &Question) -> bool {
        answers(self.address, probe)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.daemon.stop(STOP_MAX);
    }
}

fn answers(address: SocketAddr, probe: &Question) -> bool {
    let said = ask::once(address, probe, PROBE);
    said.is_some() && said == probe.expected
}

/// A file with addresses, in a directory that servers of other users can read. The directory is gone with the value.
#[derive(Debug)]
pub(super) struct ListFile {
    pub(super) path: PathBuf,
    _folder: TempDir,
}

impl ListFile {
    /// Writes the addresses into a new file.
    pub(super) fn of(listed: &[Ipv4Addr], site: &Site<'_>) -> Result<Self, BenchError> {
        let folder = peer::folder(site.base, "vere-bench-list-")
            .map_err(BenchError::io("make a directory"))?;
        let path = folder.path().join("list");
        list::write(&path, listed).map_err(BenchError::io("write the list"))?;
        Ok(Self {
            path,
            _folder: folder,
        })
    }
}
