//! Postfix from a configuration, a queue and a data folder of its own.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Peer, PeerError, folder, free_address};
use crate::machine::filesystem_of;
use crate::process::Daemon;

/// How Postfix is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostfixSetup {
    /// Only what it needs to run as a relay here; every limit and delay as its makers ship it.
    AsShipped,
    /// For throughput on one machine: no input delay, more processes, no reverse look-ups, no
    /// client limits, connections kept open, and full concurrency to the next hop from the start.
    Tuned,
    /// [`AsShipped`](Self::AsShipped) with its queue in memory: no message survives a power cut.
    AsShippedInMemory,
    /// [`Tuned`](Self::Tuned) with its queue in memory.
    TunedInMemory,
}

impl PostfixSetup {
    /// Every way.
    pub const ALL: [Self; 4] = [
        Self::Tuned,
        Self::AsShipped,
        Self::TunedInMemory,
        Self::AsShippedInMemory,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::AsShipped => "postfix as shipped",
            Self::Tuned => "postfix tuned",
            Self::AsShippedInMemory => "postfix as shipped, tmpfs",
            Self::TunedInMemory => "postfix tuned, tmpfs",
        }
    }

    const fn is_tuned(self) -> bool {
        matches!(self, Self::Tuned | Self::TunedInMemory)
    }

    const fn in_memory(self) -> bool {
        matches!(self, Self::AsShippedInMemory | Self::TunedInMemory)
    }
}

/// The services a relay needs, with the limits of the shipped `master.cf`; none in a chroot, which
/// would need copies of system files.
const MASTER_CF: &str = "\
pickup    unix  n       -       n       60      1       pickup
cleanup   unix  n       -       n       -       0       cleanup
qmgr      unix  n       -       n       300     1       qmgr
tlsmgr    unix  -       -       n       1000?   1       tlsmgr
rewrite   unix  -       -       n       -       -       trivial-rewrite
bounce    unix  -       -       n       -       0       bounce
defer     unix  -       -       n       -       0       bounce
trace     unix  -       -       n       -       0       bounce
verify    unix  -       -       n       -       1       verify
flush     unix  n       -       n       1000?   0       flush
proxymap  unix  -       -       n       -       -       proxymap
smtp      unix  -       -       n       -       -       smtp
relay     unix  -       -       n       -       -       smtp
error     unix  -       -       n       -       -       error
retry     unix  -       -       n       -       -       error
discard   unix  -       -       n       -       -       discard
anvil     unix  -       -       n       -       1       anvil
scache    unix  -       -       n       -       1       scache
postlog   unix-dgram n  -       n       -       1       postlogd
";

const TUNED: &str = "\
in_flow_delay = 0
default_process_limit = 250
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
smtpd_client_message_rate_limit = 0
smtpd_peername_lookup = no
default_destination_concurrency_limit = 50
initial_destination_concurrency = 50
smtp_destination_concurrency_limit = 50
smtp_connection_cache_on_demand = yes
smtp_connection_cache_destinations = static:all
smtp_tls_security_level = none
smtpd_tls_security_level = none
";

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

pub(super) fn start(
    setup: PostfixSetup,
    next_hop: SocketAddr,
    base: &Path,
) -> Result<Peer, PeerError> {
    let name = setup.name();
    let unavailable = |reason: &str| PeerError::Unavailable {
        name,
        reason: reason.to_owned(),
    };
    let program = program().ok_or_else(|| {
        unavailable("not installed (apt-get install -y --no-install-recommends postfix)")
    })?;
    if !nix::unistd::geteuid().is_root() {
        return Err(unavailable("it starts only as root"));
    }
    if setup.in_memory() && filesystem_of(MEMORY.as_ref()) != "tmpfs" {
        return Err(unavailable("/dev/shm is no tmpfs"));
    }
    let base = if setup.in_memory() {
        MEMORY.as_ref()
    } else {
        base
    };
    let folder = folder(base, "vere-bench-postfix-").map_err(PeerError::Folder)?;
    let address = free_address().map_err(PeerError::Folder)?;
    write_files(folder.path(), setup, address, next_hop).map_err(PeerError::Folder)?;
    let command: Vec<OsString> = vec![
        program.clone().into(),
        "-c".into(),
        folder.path().join("conf").into(),
        "start-fg".into(),
    ];
    let daemon = Daemon::spawn(&command, &folder.path().join("output"))
        .map_err(|source| PeerError::Spawn { program, source })?;
    Peer {
        name,
        address,
        daemon,
        folder,
    }
    .ready()
}

/// Ends the Postfix of `folder` the way it wants: its own script signals its own master.
pub(super) fn stop(folder: &Path) {
    let Some(program) = program() else { return };
    // If this fails the caller kills what is left.
    let _ = Command::new(program)
        .arg("-c")
        .arg(folder.join("conf"))
        .arg("stop")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

fn program() -> Option<PathBuf> {
    [
        "/usr/sbin/postfix",
        "/usr/local/sbin/postfix",
        "/sbin/postfix",
    ]
    .iter()
    .map(PathBuf::from)
    .find(|path| path.exists())
}

fn write_files(
    folder: &Path,
    setup: PostfixSetup,
    address: SocketAddr,
    next_hop: SocketAddr,
) -> io::Result<()> {
    for name in ["conf", "queue", "data"] {
        fs::create_dir(folder.join(name))?;
    }
    let user = nix::unistd::User::from_name("postfix")?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no user called postfix"))?;
    std::os::unix::fs::chown(
        folder.join("data"),
        Some(user.uid.as_raw()),
        Some(user.gid.as_raw()),
    )?;
    let (path, port) = (folder.display(), address.port());
    let mut main = format!(
        "compatibility_level = 3.6\n\
         queue_directory = {path}/queue\n\
         data_directory = {path}/data\n\
         maillog_file = {path}/log\n\
         maillog_file_prefixes = {path}\n\
         myhostname = postfix.bench.test\n\
         mydestination =\n\
         mynetworks = 127.0.0.0/8\n\
         inet_interfaces = 127.0.0.1\n\
         inet_protocols = ipv4\n\
         alias_maps =\n\
         alias_database =\n\
         relayhost = [{}]:{}\n",
        next_hop.ip(),
        next_hop.port(),
    );
    if setup.is_tuned() {
        main.push_str(TUNED);
    }
    fs::write(folder.join("conf/main.cf"), main)?;
    let master = format!("127.0.0.1:{port} inet n - n - - smtpd\n{MASTER_CF}");
    fs::write(folder.join("conf/master.cf"), master)
}
