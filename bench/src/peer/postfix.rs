//! Postfix with its own configuration, queue and data directory.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Peer, PeerError, folder, free_address, spawn};
use crate::machine::filesystem_of;

/// How Postfix is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostfixSetup {
    /// Only the settings of a relay; every limit and delay as shipped.
    AsShipped,
    /// For throughput on one machine: no input delay, more processes, no reverse look-ups, no
    /// client limits, connections kept open, and full concurrency to the next hop from the start.
    Tuned,
    /// [`AsShipped`](Self::AsShipped) with the queue in memory: no message survives a power cut.
    AsShippedInMemory,
    /// [`Tuned`](Self::Tuned) with the queue in memory.
    TunedInMemory,
    /// [`Tuned`](Self::Tuned) with postscreen before smtpd: a client of an unknown address waits for its greeting and
    /// must be silent until then.
    Screened,
}

impl PostfixSetup {
    /// Every way.
    pub const ALL: [Self; 4] = [
        Self::Tuned,
        Self::AsShipped,
        Self::TunedInMemory,
        Self::AsShippedInMemory,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AsShipped => "postfix as shipped",
            Self::Tuned => "postfix tuned",
            Self::AsShippedInMemory => "postfix as shipped, tmpfs",
            Self::TunedInMemory => "postfix tuned, tmpfs",
            Self::Screened => "postfix with postscreen",
        }
    }

    const fn is_tuned(self) -> bool {
        matches!(self, Self::Tuned | Self::TunedInMemory | Self::Screened)
    }

    /// The services of the port, before the services of the relay. With a separate name server, the service with DNS queries runs in a chroot.
    const fn entrance(self, has_name_server: bool) -> &'static str {
        match self {
            Self::Screened => SCREENED_MASTER_CF,
            _ if has_name_server => ASKING_MASTER_CF,
            _ => SMTPD_MASTER_CF,
        }
    }

    const fn in_memory(self) -> bool {
        matches!(self, Self::AsShippedInMemory | Self::TunedInMemory)
    }
}

/// The services of the relay, with the limits of the shipped `master.cf`; these services do not run in a chroot, which would
/// need copies of system files.
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
virtual   unix  -       n       n       -       -       virtual
lmtp      unix  -       -       n       -       -       lmtp
postlog   unix-dgram n  -       n       -       1       postlogd
";

/// The service of the port, behind the address of the port.
const SMTPD_MASTER_CF: &str = " inet n - n - - smtpd\n";

/// The service of the port in a chroot, the queue directory, so that the name servers are those of a file there.
const ASKING_MASTER_CF: &str = " inet n - y - - smtpd\n";

/// The services of a port with postscreen, behind the address of the port. dnsblog runs in a chroot, the queue directory, so that the
/// name servers are those of a file there.
const SCREENED_MASTER_CF: &str = " inet n - n - 1 postscreen
smtpd     pass  -       -       n       -       -       smtpd
dnsblog   unix  -       -       y       -       0       dnsblog
tlsproxy  unix  -       -       n       -       0       tlsproxy
";

/// The greet test as shipped, with its verdict enforced; no address is exempt, and many clients may wait.
const SCREENED: &str = "\
postscreen_access_list =
postscreen_greet_action = enforce
postscreen_pre_queue_limit = 20000
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

/// Where mail goes.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// To a next hop, for every domain.
    NextHop(SocketAddr),
    /// Into a mailbox for each of the addresses, in the directory `mail`.
    Mailboxes {
        addresses: Vec<String>,
        /// Each is a Maildir, else an mbox.
        maildir: bool,
    },
    /// For the addresses, to a next hop; other addresses of their domains are unknown.
    Exchanged {
        addresses: Vec<String>,
        next_hop: SocketAddr,
    },
    /// For the addresses, to an LMTP server.
    Lmtp {
        addresses: Vec<String>,
        server: SocketAddr,
    },
}

impl Destination {
    /// The lines of `main.cf` for the destination, for a Postfix in `folder`.
    pub(super) fn settings(&self, folder: &Path) -> String {
        let path = folder.display();
        let local = |transport: &str| {
            format!(
                "virtual_mailbox_domains = texthash:{path}/conf/domains\n\
                 virtual_mailbox_maps = texthash:{path}/conf/mailboxes\n\
                 virtual_mailbox_base = {path}/mail\n\
                 virtual_mailbox_limit = 0\n\
                 virtual_minimum_uid = 1\n\
                 virtual_uid_maps = static:{NOBODY}\n\
                 virtual_gid_maps = static:{NOBODY}\n\
                 virtual_transport = {transport}\n"
            )
        };
        match self {
            Self::NextHop(next_hop) => {
                format!("relayhost = [{}]:{}\n", next_hop.ip(), next_hop.port())
            }
            Self::Exchanged { next_hop, .. } => format!(
                "relay_domains = texthash:{path}/conf/domains\n\
                 relay_recipient_maps = texthash:{path}/conf/mailboxes\n\
                 relayhost = [{}]:{}\n",
                next_hop.ip(),
                next_hop.port()
            ),
            Self::Mailboxes { .. } => local("virtual"),
            Self::Lmtp { server, .. } => {
                local(&format!("lmtp:inet:{}:{}", server.ip(), server.port()))
            }
        }
    }

    /// The lines of the tables named in the settings: domains, and mailboxes.
    pub(super) fn tables(&self) -> (String, String) {
        let (addresses, end) = match self {
            Self::NextHop(_) => return (String::new(), String::new()),
            Self::Mailboxes { addresses, maildir } => (addresses, if *maildir { "/" } else { "" }),
            Self::Exchanged { addresses, .. } | Self::Lmtp { addresses, .. } => (addresses, ""),
        };
        let (mut domains, mut mailboxes) = (String::new(), String::new());
        for address in addresses {
            let (local, domain) = address.split_once('@').unwrap_or((address, ""));
            let line = format!("{domain} mail\n");
            if !domains.contains(&line) {
                domains.push_str(&line);
            }
            mailboxes.push_str(&format!("{address} {local}{end}\n"));
        }
        (domains, mailboxes)
    }
}

/// The owner of the mailboxes: the user `nobody` and the group `nogroup` of Debian.
pub const NOBODY: u32 = 65_534;

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

pub(super) fn start(
    name: &'static str,
    setup: PostfixSetup,
    destination: &Destination,
    base: &Path,
) -> Result<Peer, PeerError> {
    start_with(name, setup, destination, More::default(), base)
}

/// Further settings.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct More<'a> {
    /// Lines in `main.cf`; the last line of a name counts.
    pub(super) lines: &'a str,
    /// The name server, at port 53, of dnsblog behind postscreen, else of smtpd.
    pub(super) name_server: Option<Ipv4Addr>,
    /// What a load balancer says before the client that waits for the first greeting.
    pub(super) header: &'a str,
}

/// As [`start`], with further settings.
pub(super) fn start_with(
    name: &'static str,
    setup: PostfixSetup,
    destination: &Destination,
    more: More<'_>,
    base: &Path,
) -> Result<Peer, PeerError> {
    let unavailable = |reason| PeerError::unavailable(name, reason);
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
    let folder = folder(base, "vere-bench-postfix-")?;
    let address = free_address()?;
    write_files(folder.path(), setup, address, destination, more)?;
    let settings = folder.path().join("conf");
    let command = [
        program.into(),
        "-c".into(),
        settings.into(),
        "start-fg".into(),
    ];
    let daemon = spawn(&command, folder.path())?;
    Peer {
        name,
        address,
        daemon,
        folder,
    }
    .ready_behind(more.header)
}

/// Ends the Postfix of `folder` by Postfix's own script, which signals the right master.
pub(super) fn stop(folder: &Path) {
    let Some(program) = program() else { return };
    // After a failure the caller kills the remaining processes.
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
    destination: &Destination,
    more: More<'_>,
) -> io::Result<()> {
    let tuned = if setup.is_tuned() { TUNED } else { "" };
    let screened = match setup {
        PostfixSetup::Screened => SCREENED,
        _ => "",
    };
    let lines = destination.settings(folder) + tuned + screened + more.lines;
    write_postfix(folder, address, "postfix.bench.test", &lines)?;
    if let Some(server) = more.name_server {
        fs::create_dir(folder.join("queue/etc"))?;
        let text = format!("nameserver {server}\n");
        fs::write(folder.join("queue/etc/resolv.conf"), text)?;
    }
    let master = format!(
        "{address}{}{MASTER_CF}",
        setup.entrance(more.name_server.is_some())
    );
    fs::write(folder.join("conf/master.cf"), master)?;
    let (domains, mailboxes) = destination.tables();
    fs::write(folder.join("conf/domains"), domains)?;
    fs::write(folder.join("conf/mailboxes"), mailboxes)
}

/// Writes what a Postfix of its own has in `folder`: `main.cf` with further `lines` and `master.cf` in `conf`, the
/// folders `queue` and `data`, and `mail` for mailboxes of the user `nobody`.
///
/// # Errors
/// A folder or file that cannot be written, or a machine without the user `postfix`.
pub fn write_postfix(
    folder: &Path,
    address: SocketAddr,
    hostname: &str,
    lines: &str,
) -> io::Result<()> {
    for name in ["conf", "queue", "data", "mail"] {
        fs::create_dir(folder.join(name))?;
    }
    chown(folder.join("mail"), Some(NOBODY), Some(NOBODY))?;
    let user = nix::unistd::User::from_name("postfix")?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no user called postfix"))?;
    let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
    chown(folder.join("data"), Some(uid), Some(gid))?;
    let (path, port) = (folder.display(), address.port());
    let main = format!(
        "compatibility_level = 3.6\n\
         queue_directory = {path}/queue\n\
         data_directory = {path}/data\n\
         maillog_file = {path}/log\n\
         maillog_file_prefixes = {path}\n\
         myhostname = {hostname}\n\
         mydestination =\n\
         mynetworks = 127.0.0.0/8\n\
         inet_interfaces = 127.0.0.1\n\
         inet_protocols = ipv4\n\
         alias_maps =\n\
         alias_database =\n\
         {lines}\n"
    );
    fs::write(folder.join("conf/main.cf"), main)?;
    let master = format!("127.0.0.1:{port}{SMTPD_MASTER_CF}{MASTER_CF}");
    fs::write(folder.join("conf/master.cf"), master)
}
