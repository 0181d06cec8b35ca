//! The mail stores that are measured: ours, and Dovecot with mdbox and with Maildir.
//!
//! Each runs from a folder of its own with ports of its own and keeps its mail there; an installed
//! system of the same kind is neither read nor touched. All sync what they acknowledge.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::imap::{Imap, ImapError};
use crate::peer::{PeerError, folder, free_address};
use crate::process::{Daemon, Process};

/// How long a system may take until it greets.
const START_MAX: Duration = Duration::from_secs(60);

/// How long a system may take to end after SIGTERM before it is killed.
const STOP_MAX: Duration = Duration::from_secs(20);

/// The password of every account.
const PASSWORD: &str = "secret";

/// That password as the cheapest Argon2id hash: what a password costs is not what is measured here.
const PASSWORD_HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$dmVyZS1iZW5jaC1zdG9yZQ\
                             $6igDkWGtobLOx9MBmbZmAy+EPj8wqfJ+xcQpm5cKnog";

/// The keys that belong to it (RFC 5803), with the fewest rounds; nobody uses them here.
const PASSWORD_KEYS: &str = "SCRAM-SHA-256$4096:dmVyZS1iZW5jaC1zdG9yZQ==$\
                             d2Io1gmsNtD6vlB5hvkDtaFsT/MID/iHlt9wsdUPI5U=:pmB9gcV9LiDt5T01mHMTB24kW1vqCVwPwVYN6cKoSvs=";

/// The user and group `nobody` and `nogroup` of Debian, as whom Dovecot keeps its mail.
const NOBODY: u32 = 65_534;

/// Accounts that deliveries go to.
pub(crate) const RECIPIENTS: usize = 15;

/// Which system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// This product, from this program.
    Vere(PathBuf),
    /// Dovecot, keeping mail in this format.
    Dovecot(&'static str),
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Vere(_) => "vere",
            Self::Dovecot("mdbox") => "dovecot mdbox",
            Self::Dovecot(_) => "dovecot maildir",
        }
    }
}

/// A system that runs.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) name: &'static str,
    pub(crate) imap: SocketAddr,
    pub(crate) lmtp: SocketAddr,
    command: Vec<OsString>,
    daemon: Option<Daemon>,
    /// Where its mail lies, in its folder.
    mail: &'static str,
    folder: TempDir,
}

impl System {
    /// Starts a system in a folder below `base`.
    pub(crate) fn start(kind: &Kind, base: &Path) -> Result<Self, PeerError> {
        let name = kind.name();
        let folder = folder(base, "vere-bench-store-").map_err(PeerError::Folder)?;
        let address = || free_address().map_err(PeerError::Folder);
        let (imap, lmtp) = (address()?, address()?);
        let command = match kind {
            Kind::Vere(program) => prepare_vere(program, folder.path(), imap, lmtp),
            Kind::Dovecot(format) => {
                let program = dovecot().ok_or_else(|| PeerError::Unavailable {
                    name,
                    reason: "not installed (apt-get install dovecot-imapd dovecot-lmtpd)"
                        .to_owned(),
                })?;
                if !nix::unistd::geteuid().is_root() {
                    let reason = "it starts only as root".to_owned();
                    return Err(PeerError::Unavailable { name, reason });
                }
                prepare_dovecot(&program, folder.path(), format, imap, lmtp)
            }
        };
        let mut system = Self {
            name,
            imap,
            lmtp,
            command: command.map_err(PeerError::Folder)?,
            daemon: None,
            mail: match kind {
                // Beside it lie the queues of the gateway.
                Kind::Vere(_) => "mail/store",
                Kind::Dovecot(_) => "mail",
            },
            folder,
        };
        system.begin()?;
        Ok(system)
    }

    /// Stops it and starts it again on the same mail.
    pub(crate) fn restart(&mut self) -> Result<(), PeerError> {
        self.end();
        self.begin()
    }

    fn begin(&mut self) -> Result<(), PeerError> {
        let log = self.folder.path().join("output");
        let daemon = Daemon::spawn(&self.command, &log).map_err(|source| PeerError::Spawn {
            program: self.command.first().map(PathBuf::from).unwrap_or_default(),
            source,
        })?;
        let daemon = self.daemon.insert(daemon);
        let until = Instant::now() + START_MAX;
        while Imap::connect(self.imap).is_err() {
            if Instant::now() >= until || !daemon.is_running() {
                let (name, last_words) = (self.name, daemon.last_words());
                return Err(PeerError::NotReady { name, last_words });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop(STOP_MAX);
        }
    }

    /// A new connection of the account that owns the mailboxes.
    pub(crate) fn login(&self) -> Result<Imap, ImapError> {
        self.login_as("reader@bench.test")
    }

    pub(crate) fn login_as(&self, user: &str) -> Result<Imap, ImapError> {
        let mut imap = Imap::connect(self.imap)?;
        imap.ok(&format!("LOGIN {user} {PASSWORD}"))?;
        Ok(imap)
    }

    /// A connection that takes little memory here.
    pub(crate) fn login_small(&self) -> Result<Imap, ImapError> {
        let mut imap = Imap::connect_small(self.imap)?;
        imap.ok(&format!("LOGIN reader@bench.test {PASSWORD}"))?;
        Ok(imap)
    }

    /// Its processes.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let root = self.daemon.as_ref().map(Daemon::id);
        root.and_then(|root| Process::tree(root).ok())
            .unwrap_or_default()
    }

    /// User and system time of all its processes so far.
    pub(crate) fn cpu(&self) -> Duration {
        let account = self.daemon.as_ref().map(Daemon::account);
        account
            .and_then(|account| account.total().ok())
            .unwrap_or_default()
    }

    /// Octets that its mail and all that belongs to it take on the disk.
    pub(crate) fn disk(&self) -> io::Result<u64> {
        disk(&self.folder.path().join(self.mail))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.end();
    }
}

/// Blocks of all files below a folder, in octets.
fn disk(folder: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut octets = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let known = entry.metadata()?;
        octets += match known.is_dir() {
            true => disk(&entry.path())?,
            false => known.blocks() * 512,
        };
    }
    Ok(octets)
}

/// The accounts of every system.
pub(crate) fn accounts() -> impl Iterator<Item = String> {
    let recipients = (1..=RECIPIENTS).map(|number| format!("r{number}@bench.test"));
    std::iter::once("reader@bench.test".to_owned()).chain(recipients)
}

fn prepare_vere(
    program: &Path,
    folder: &Path,
    imap: SocketAddr,
    lmtp: SocketAddr,
) -> io::Result<Vec<OsString>> {
    let data = folder.join("mail");
    fs::create_dir_all(&data)?;
    let mut directory = "version = 1\n[[domain]]\nname = \"bench.test\"\n".to_owned();
    for account in accounts() {
        directory.push_str(&format!(
            "[[account]]\naddress = \"{account}\"\npassword = \"{PASSWORD_HASH}\"\n\
             scram_sha_256 = \"{PASSWORD_KEYS}\"\n"
        ));
    }
    fs::write(folder.join("directory.toml"), directory)?;
    let smtp = free_address()?;
    let text = format!(
        "version = 1\n\
         hostname = \"vere.bench.test\"\n\
         data = \"{}\"\n\
         [directory]\n\
         store = \"file:{}\"\n\
         [smtp]\n\
         listen = [\"{smtp}\"]\n\
         [submission]\n\
         listen = []\n\
         [submissions]\n\
         listen = []\n\
         [imap]\n\
         listen = [\"{imap}\"]\n\
         [lmtp]\n\
         listen = [\"{lmtp}\"]\n\
         [delivery]\n\
         local = \"store\"\n\
         [auth]\n\
         plaintext_networks = [\"127.0.0.0/8\"]\n\
         [limits]\n\
         connections_max = 100000\n\
         connections_per_client_max = 100000\n",
        data.display(),
        folder.join("directory.toml").display(),
    );
    let file = folder.join("vere.toml");
    fs::write(&file, text)?;
    Ok(vec![
        program.into(),
        "serve".into(),
        "-c".into(),
        file.into(),
    ])
}

/// Where Debian puts it.
fn dovecot() -> Option<PathBuf> {
    let installed = Path::new("/usr/lib/dovecot/imap").exists();
    let delivers = Path::new("/usr/lib/dovecot/lmtp").exists();
    let program = PathBuf::from("/usr/sbin/dovecot");
    (installed && delivers && program.exists()).then_some(program)
}

fn prepare_dovecot(
    program: &Path,
    folder: &Path,
    format: &str,
    imap: SocketAddr,
    lmtp: SocketAddr,
) -> io::Result<Vec<OsString>> {
    let mail = folder.join("mail");
    fs::create_dir_all(&mail)?;
    std::os::unix::fs::chown(&mail, Some(NOBODY), Some(NOBODY))?;
    let own = folder.display();
    let text = format!(
        "base_dir = {own}/run\n\
         state_dir = {own}/state\n\
         log_path = {own}/log\n\
         protocols = imap lmtp\n\
         listen = 127.0.0.1\n\
         ssl = no\n\
         disable_plaintext_auth = no\n\
         mail_location = {format}:{own}/mail/%u\n\
         mail_fsync = optimized\n\
         mail_max_userip_connections = 100000\n\
         first_valid_uid = 1\n\
         first_valid_gid = 1\n\
         passdb {{\n  driver = static\n  args = password={PASSWORD}\n}}\n\
         userdb {{\n  driver = static\n  args = uid={NOBODY} gid={NOBODY} home={own}/mail/home/%u\n}}\n\
         service imap-login {{\n  service_count = 0\n  inet_listener imap {{\n    address = 127.0.0.1\n    \
         port = {}\n  }}\n  inet_listener imaps {{\n    port = 0\n  }}\n}}\n\
         service lmtp {{\n  inet_listener lmtp {{\n    address = 127.0.0.1\n    port = {}\n  }}\n}}\n\
         service imap {{\n  process_limit = 12000\n}}\n\
         protocol lmtp {{\n  postmaster_address = postmaster@bench.test\n}}\n",
        imap.port(),
        lmtp.port(),
    );
    let file = folder.join("dovecot.conf");
    fs::write(&file, text)?;
    Ok(vec![program.into(), "-F".into(), "-c".into(), file.into()])
}
