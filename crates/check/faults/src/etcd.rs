//! Real members of etcd, which are started, killed and stopped.

#![allow(
    clippy::missing_panics_doc,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Finds the program, or says that the test is skipped.
fn program() -> Option<PathBuf> {
    let named = std::env::var_os("VERE_ETCD").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let unpacked = root.join("target/test-tools/etcd/usr/bin/etcd");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("etcd"));
    let mut all = named.into_iter().chain([unpacked]).chain(installed);
    let found = all.find(|file| file.is_file());
    if found.is_none() {
        let test = std::thread::current().name().map(str::to_owned);
        let why = "no etcd is here (scripts/install-test-tools.sh unpacks it)";
        let test = test.as_deref().unwrap_or("a test");
        // Past the capture of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
    }
    found
}

/// An address that no other test has: a loopback address from the process, below the ports that the
/// system gives to outgoing connections.
fn address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(10_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let ip = Ipv4Addr::new(127, 64 | (high & 63), middle, low);
    (ip, NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

/// A cluster in a temporary folder; its members are killed with it.
#[derive(Debug)]
pub struct Cluster {
    folder: tempfile::TempDir,
    program: PathBuf,
    members: Vec<Member>,
    scheme: &'static str,
    more: Vec<String>,
}

#[derive(Debug)]
struct Member {
    client: SocketAddr,
    peer: SocketAddr,
    process: Option<Child>,
}

impl Cluster {
    /// Starts that many members, if etcd is here.
    pub fn start(members: usize) -> Option<Self> {
        Self::start_with(members, "http", |_, _| Vec::new())
    }

    /// The same with further arguments, made in the folder for an address of the members.
    pub fn start_with(
        members: usize,
        scheme: &'static str,
        more: impl FnOnce(&Path, SocketAddr) -> Vec<String>,
    ) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let members: Vec<Member> = std::iter::repeat_with(|| Member {
            client: address(),
            peer: address(),
            process: None,
        })
        .take(members)
        .collect();
        let more = more(folder.path(), members[0].client);
        let mut cluster = Self {
            folder,
            program,
            members,
            scheme,
            more,
        };
        cluster.restart_all();
        Some(cluster)
    }

    /// Starts a member that does not run.
    pub fn restart(&mut self, n: usize) {
        let list = self.members.iter().enumerate();
        let list: Vec<String> = list
            .map(|(n, member)| format!("m{n}=http://{}", member.peer))
            .collect();
        let log = self.folder.path().join(format!("m{n}.log"));
        let mut options = std::fs::OpenOptions::new();
        let log = options.create(true).append(true).open(log).unwrap();
        let data = self.folder.path().join(format!("m{n}"));
        let (scheme, member) = (self.scheme, &mut self.members[n]);
        assert!(member.process.is_none());
        let (peer, client) = (
            format!("http://{}", member.peer),
            format!("{scheme}://{}", member.client),
        );
        let mut command = Command::new(&self.program);
        command
            .args(["--name", &format!("m{n}"), "--logger", "zap"])
            .args(["--log-outputs", "stderr"])
            .arg("--data-dir")
            .arg(data)
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--initial-cluster", &list.join(",")])
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        member.process = Some(command.spawn().unwrap());
    }

    /// Kills a member.
    pub fn kill(&mut self, n: usize) {
        let mut process = self.members[n].process.take().expect("it runs");
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Sends a member SIGSTOP or SIGCONT.
    pub fn signal(&self, n: usize, signal: Signal) {
        let process = self.members[n].process.as_ref().expect("it runs");
        kill(Pid::from_raw(process.id().cast_signed()), signal).unwrap();
    }

    /// Kills all members.
    pub fn kill_all(&mut self) {
        (0..self.members.len()).for_each(|n| self.kill(n));
    }

    /// Starts all members.
    pub fn restart_all(&mut self) {
        (0..self.members.len()).for_each(|n| self.restart(n));
    }

    /// Sends a signal to all members.
    pub fn signal_all(&self, signal: Signal) {
        (0..self.members.len()).for_each(|n| self.signal(n, signal));
    }

    /// Where clients find a member.
    pub fn address(&self, n: usize) -> SocketAddr {
        self.members[n].client
    }

    /// The URLs of all members.
    pub fn endpoints(&self) -> Vec<String> {
        let addresses = self.members.iter().map(|member| member.client);
        addresses
            .map(|client| format!("{}://{client}", self.scheme))
            .collect()
    }

    /// The member that leads, once all members that answer agree on one that answers.
    pub fn leader(&self) -> usize {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            for (n, member) in self.members.iter().enumerate() {
                let status = post(member.client, "/v3/maintenance/status", "{}");
                let field = |name: &str| {
                    let (_, rest) = status.as_deref()?.split_once(&format!("\"{name}\":\""))?;
                    rest.split_once('"').map(|(number, _)| number.to_owned())
                };
                if field("leader").is_some_and(|leader| Some(leader) == field("member_id")) {
                    return n;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no leader in {PATIENCE:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(mut process) = member.process.take() {
                let _ = process.kill();
                let _ = process.wait();
            }
        }
        if std::thread::panicking() {
            for n in 0..self.members.len() {
                let log = self.folder.path().join(format!("m{n}.log"));
                let log = std::fs::read_to_string(log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                eprintln!(
                    "m{n}: {}",
                    lines[lines.len().saturating_sub(8)..].join("\n")
                );
            }
        }
    }
}

/// Asks a member what the register never asks: its state, its users.
pub fn post(address: SocketAddr, path: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
