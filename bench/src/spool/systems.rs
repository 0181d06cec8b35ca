//! The measured servers, and the lanes to the servers.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::drive::{Dialect, Lane};
use super::fixed::Fixed;
use super::floor;
use super::floor_wire::FloorWire;
use super::plan::Setting;
use super::vere_wire::{SECRET, Session};
use crate::error::BenchError;
use crate::peer::{self, PeerError, await_ready, spawn};
use crate::process::Daemon;
use crate::store::usage;

/// Longest time until a server accepts connections.
const START_MAX: Duration = Duration::from_secs(60);

/// Name of a system in results.
pub(super) const FLOOR: &str = "floor";
pub(super) const VERE: &str = "vere";
/// Two of our nodes, each change sent to both nodes and done when both have acknowledged the change.
pub(super) const VERE_TWO: &str = "vere x 2";
/// Two nodes of which only the first keeps a log: enough on a single machine.
pub(super) const VERE_TWO_ONE_LOGS: &str = "vere x 2, one logs";
pub(super) const MEMCACHED_TEXT: &str = "memcached text";
pub(super) const MEMCACHED_QUIET: &str = "memcached quiet";
pub(super) const REDIS_SET: &str = "redis set/del";
pub(super) const REDIS_LIST: &str = "redis list";
pub(super) const WRITER: &str = "group-commit writer";

/// A server in a separate process, ended when dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    daemon: Daemon,
    command: Vec<OsString>,
    // Removed after the daemon, which still writes to the directory.
    folder: TempDir,
}

/// The floor, ended when dropped.
#[derive(Debug)]
pub(super) struct Floor {
    pub(super) address: SocketAddr,
    _server: Option<Server>,
}

impl Floor {
    /// Starts the floor in a separate process, like every system of the comparison: the switch between processes is
    /// a cost as well. In tests, whose program could not be started again, the floor is a permanent thread.
    pub(super) fn start(setting: &Setting<'_>) -> Result<Self, BenchError> {
        if let Some(own) = setting.own {
            let server = Server::floor(own, setting.base)?;
            return Ok(Self {
                address: server.address,
                _server: Some(server),
            });
        }
        let failed = BenchError::io;
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed("start the floor"))?;
        let address = listener.local_addr().map_err(failed("start the floor"))?;
        std::thread::spawn(move || floor::serve(listener));
        Ok(Self {
            address,
            _server: None,
        })
    }
}

/// When a node acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeMode {
    /// The messages in memory.
    Memory,
    /// The messages in the synced log.
    Synced,
}

impl Server {
    /// Our node, as `vere serve` starts the node, with `memory_max` octets of memory.
    pub(super) fn vere(
        vere: &Path,
        base: &Path,
        mode: NodeMode,
        memory_max: u64,
    ) -> Result<Self, PeerError> {
        Self::vere_by(vere, base, mode, memory_max, |command| command)
    }

    /// Our node, with a further command around the command of the node.
    pub(super) fn vere_by(
        vere: &Path,
        base: &Path,
        mode: NodeMode,
        memory_max: u64,
        around: impl FnOnce(Vec<OsString>) -> Vec<OsString>,
    ) -> Result<Self, PeerError> {
        let folder = peer::folder(base, "vere-bench-node-")?;
        let address = peer::free_address()?;
        let file = folder.path().join("vere.toml");
        let key = folder.path().join("spool.key");
        let durability = match mode {
            NodeMode::Memory => "replicated",
            NodeMode::Synced => "synced",
        };
        let text = format!(
            "version = 1\nhostname = \"vere.bench.test\"\ndata = \"{folder}/data\"\n\
             [spool]\ndurability = \"{durability}\"\nreplicas_min = 1\nsecret = \"{key}\"\n\
             memory_max = \"{mib} MiB\"\n\
             [[spool.node]]\nname = \"a\"\nlisten = \"{address}\"\n",
            folder = folder.path().display(),
            key = key.display(),
            mib = memory_max >> 20,
        );
        let hex: String = SECRET.iter().map(|octet| format!("{octet:02x}")).collect();
        fs::write(&file, text).and_then(|()| fs::write(&key, hex))?;
        let mut command = vec![vere.into(), "role".into(), "-c".into(), file.into()];
        command.extend(["spool", "--node", "a"].map(OsString::from));
        Self::start(VERE, around(command), address, folder)
    }

    /// The floor, by the command of the benchmark itself.
    fn floor(own: &[OsString], base: &Path) -> Result<Self, PeerError> {
        let folder = peer::folder(base, "vere-bench-floor-")?;
        let address = peer::free_address()?;
        let mut command = own.to_vec();
        command.extend(["--serve-floor".into(), address.to_string().into()]);
        Self::start(FLOOR, command, address, folder)
    }

    /// memcached, without its limit of successive requests.
    pub(super) fn memcached(base: &Path) -> Result<Self, PeerError> {
        let folder = peer::folder(base, "vere-bench-memcached-")?;
        let address = peer::free_address()?;
        let mut command = vec![program("memcached")?.into_os_string()];
        let port = address.port().to_string();
        let arguments = ["-l", "127.0.0.1", "-U", "0", "-R", "1000", "-m", "1024"];
        command.extend(arguments.map(OsString::from));
        command.extend(["-u", "nobody", "-p", &port].map(OsString::from));
        Self::start("memcached", command, address, folder)
    }

    /// Redis, with persistence off.
    pub(super) fn redis(base: &Path) -> Result<Self, PeerError> {
        let folder = peer::folder(base, "vere-bench-redis-")?;
        let address = peer::free_address()?;
        let mut command = vec![program("redis-server")?.into_os_string()];
        let port = address.port().to_string();
        let arguments = [
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--port",
        ];
        command.extend(arguments.map(OsString::from));
        command.extend([OsString::from(port), "--dir".into(), folder.path().into()]);
        Self::start("redis", command, address, folder)
    }

    fn start(
        name: &'static str,
        command: Vec<OsString>,
        address: SocketAddr,
        folder: TempDir,
    ) -> Result<Self, PeerError> {
        let daemon = spawn(&command, folder.path())?;
        let listens = || TcpStream::connect(address).is_ok();
        await_ready(name, &daemon, START_MAX, listens)?;
        Ok(Self {
            address,
            daemon,
            command,
            folder,
        })
    }

    /// Octets of resident memory of the server's process.
    pub(super) fn resident(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.daemon.id()))?;
        let kib = usage::number_in(&text, "VmRSS:");
        kib.map(|kib| kib << 10)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// Kills the server with SIGKILL and starts the server again; does not wait for readiness.
    pub(super) fn kill_and_start(&mut self) -> Result<(), PeerError> {
        self.daemon.kill();
        self.daemon = spawn(&self.command, self.folder.path())?;
        Ok(())
    }
}

/// The path of a program, if installed.
fn program(name: &'static str) -> Result<PathBuf, PeerError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| PeerError::unavailable(name, "it is not installed"))
}

/// A way to store and delete: a server (or several replicas) and a dialect.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) addresses: Vec<SocketAddr>,
}

impl Target {
    pub(super) fn new(name: &'static str, address: SocketAddr) -> Self {
        Self::replicas(name, &[address])
    }

    /// Several servers with the same requests.
    pub(super) fn replicas(name: &'static str, addresses: &[SocketAddr]) -> Self {
        Self {
            name,
            addresses: addresses.to_vec(),
        }
    }

    /// Lanes with new connections, ready for requests. `window`: octets in flight on each lane.
    pub(super) fn lanes(
        &self,
        count: usize,
        body: &[u8],
        window: usize,
    ) -> Result<Vec<Lane>, BenchError> {
        (0..count)
            .map(|number| {
                let (dialect, streams) = self.open(number, body, window)?;
                Lane::new(dialect, streams)
            })
            .collect()
    }

    fn open(
        &self,
        number: usize,
        body: &[u8],
        window: usize,
    ) -> Result<(Box<dyn Dialect>, Vec<TcpStream>), BenchError> {
        if [VERE, VERE_TWO, VERE_TWO_ONE_LOGS].contains(&self.name) {
            return self.open_nodes(number, body);
        }
        let dialect: Box<dyn Dialect> = match self.name {
            FLOOR | WRITER => Box::new(FloorWire::new(body, true)),
            MEMCACHED_TEXT => Box::new(Fixed::memcached_text(number, body)),
            MEMCACHED_QUIET => Box::new(Fixed::memcached_quiet(number, body, window)),
            REDIS_SET => Box::new(Fixed::redis_set(number, body)),
            _ => Box::new(Fixed::redis_list(number, body)),
        };
        let connect = |address: &SocketAddr| TcpStream::connect(address);
        let streams = self.addresses.iter().map(connect).collect::<Result<_, _>>();
        Ok((dialect, streams.map_err(BenchError::io("connect"))?))
    }
    /// All nodes hold the same queues, so that a common stream of numbers suits all nodes.
    fn open_nodes(
        &self,
        number: usize,
        body: &[u8],
    ) -> Result<(Box<dyn Dialect>, Vec<TcpStream>), BenchError> {
        // A group has a log from its creation, or never.
        let (group, logs) = match self.name {
            VERE_TWO_ONE_LOGS => (format!("one-logs-{number}"), 1),
            VERE_TWO => (format!("two-{number}"), self.addresses.len()),
            _ => (format!("bench-{number}"), self.addresses.len()),
        };
        let sessions = self.addresses.iter().enumerate();
        let sessions = sessions
            .map(|(index, address)| Session::open_as(*address, &group, index < logs))
            .collect::<Result<Vec<_>, _>>()?;
        let dialect = match &sessions[..] {
            [] => return Err(BenchError::protocol("no node")),
            [first, rest @ ..] if rest.iter().all(|other| other.is_at(first)) => {
                first.dialect(body, true)
            }
            _ => return Err(BenchError::protocol("replicas are not alike")),
        };
        let streams = sessions.into_iter().map(|session| session.stream);
        Ok((Box::new(dialect), streams.collect()))
    }
}
