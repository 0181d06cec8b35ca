//! Real members of etcd.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Child, Options, free_address, signal, skip, wait_for};

/// An etcd cluster in a temporary folder.
pub(crate) struct Etcd {
    folder: tempfile::TempDir,
    program: PathBuf,
    members: Vec<Member>,
}

struct Member {
    client: SocketAddr,
    peer: SocketAddr,
    process: Option<Child>,
}

impl Etcd {
    /// Starts `members` members, if etcd is installed.
    pub(crate) fn start(members: usize) -> Option<Self> {
        let member = || Member {
            client: free_address(),
            peer: free_address(),
            process: None,
        };
        let mut cluster = Self {
            program: program()?,
            folder: tempfile::tempdir().expect("a temporary directory"),
            members: std::iter::repeat_with(member).take(members).collect(),
        };
        for number in 0..members {
            cluster.restart(number);
        }
        cluster.leader();
        Some(cluster)
    }

    /// Settings of a system with its register in the cluster.
    pub(crate) fn options(&self, options: Options) -> Options {
        let members = self.members.iter();
        let endpoints: Vec<String> = members
            .map(|member| format!("\"http://{}\"", member.client))
            .collect();
        options.set("cluster.register", "\"etcd\"").set(
            "cluster.etcd.endpoints",
            &format!("[{}]", endpoints.join(",")),
        )
    }

    /// Starts a stopped member.
    pub(crate) fn restart(&mut self, number: usize) {
        let members = self.members.iter().enumerate();
        let list: Vec<String> = members
            .map(|(number, member)| format!("m{number}=http://{}", member.peer))
            .collect();
        let log = self.folder.path().join(format!("m{number}.log"));
        let log = File::options().create(true).append(true).open(log);
        let member = &mut self.members[number];
        let (peer, client) = (
            format!("http://{}", member.peer),
            format!("http://{}", member.client),
        );
        let mut command = Command::new(&self.program);
        command
            .args(["--name", &format!("m{number}"), "--logger", "zap"])
            .args(["--log-outputs", "stderr", "--data-dir"])
            .arg(self.folder.path().join(format!("m{number}")))
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--initial-cluster", &list.join(",")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("the log"));
        member.process = Some(Child::spawn(&mut command));
    }

    /// Kills a member.
    pub(crate) fn kill(&mut self, number: usize) {
        // Dropping kills the process.
        let process = self.members[number].process.take();
        drop(process.expect("it runs"));
    }

    /// Kills all members.
    pub(crate) fn kill_all(&mut self) {
        (0..self.members.len()).for_each(|number| self.kill(number));
    }

    /// Starts all members.
    pub(crate) fn restart_all(&mut self) {
        (0..self.members.len()).for_each(|number| self.restart(number));
    }

    /// SIGSTOP, SIGCONT to a member.
    pub(crate) fn signal(&self, number: usize, sent: Signal) {
        let process = self.members[number].process.as_ref().expect("it runs");
        assert!(signal(process.id(), sent), "it runs");
    }

    /// Sends a signal to all members.
    pub(crate) fn signal_all(&self, sent: Signal) {
        (0..self.members.len()).for_each(|number| self.signal(number, sent));
    }

    /// The leading member, once elected.
    pub(crate) fn leader(&self) -> usize {
        wait_for("a leader of etcd", || {
            self.members.iter().position(|member| {
                let status = status(member.client).unwrap_or_default();
                let field = |name: &str| {
                    let (_, rest) = status.split_once(&format!("\"{name}\":\""))?;
                    rest.split_once('"').map(|(number, _)| number)
                };
                field("leader").is_some_and(|leader| Some(leader) == field("member_id"))
            })
        })
    }
}

/// The status of a member, in JSON behind headers.
fn status(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(
        stream,
        "POST /v3/maintenance/status HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-length: 2\r\n\r\n{{}}"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Finds the program, or prints that the test is skipped.
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
        skip(test.as_deref().unwrap_or("a test"), why);
    }
    found
}
