//! Dovecot, as an IMAP server with its own mailboxes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{Child, PATIENCE, free_address, skip, wait_for};

/// The user and group `nobody` and `nogroup` of Debian.
const NOBODY: u32 = 65_534;

/// A server with a common password of all users, `secret`.
pub(crate) struct Dovecot {
    pub(crate) imap: SocketAddr,
    folder: tempfile::TempDir,
    /// Ends with the test.
    _server: Child,
}

impl Dovecot {
    /// Starts the server with mail in a Maildir; `None` where Dovecot is not installed or cannot change its user.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts the server with further settings.
    pub(crate) fn start_with(settings: &str) -> Option<Self> {
        let program = Path::new("/usr/sbin/dovecot");
        if !program.exists() || !Path::new("/usr/lib/dovecot/imap").exists() {
            skip("Dovecot", "not installed (scripts/install-test-tools.sh)");
            return None;
        }
        if !nix::unistd::geteuid().is_root() {
            skip("Dovecot", "it starts as root only");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), mode).expect("its mode");
        let mail = folder.path().join("mail");
        fs::create_dir(&mail).expect("a folder");
        std::os::unix::fs::chown(&mail, Some(NOBODY), Some(NOBODY)).expect("its owner");
        let imap = free_address();
        let own = folder.path().display();
        let text = format!(
            "base_dir = {own}/run\n\
             state_dir = {own}/state\n\
             log_path = {own}/log\n\
             protocols = imap\n\
             listen = 127.0.0.1\n\
             ssl = no\n\
             disable_plaintext_auth = no\n\
             mail_location = maildir:{own}/mail/%u\n\
             first_valid_uid = 1\n\
             first_valid_gid = 1\n\
             passdb {{\n  driver = static\n  args = password=secret\n}}\n\
             userdb {{\n  driver = static\n  args = uid={NOBODY} gid={NOBODY} home={own}/mail/home/%u\n}}\n\
             service imap-login {{\n  inet_listener imap {{\n    address = 127.0.0.1\n    port = {}\n  }}\n  \
             inet_listener imaps {{\n    port = 0\n  }}\n}}\n{settings}",
            imap.port(),
        );
        let file = folder.path().join("dovecot.conf");
        fs::write(&file, text).expect("its settings");
        let mut command = Command::new(program);
        command.args(["-F", "-c"]).arg(&file).stderr(Stdio::null());
        let server = Child::spawn(&mut command);
        wait_for("Dovecot", || {
            let stream = TcpStream::connect(imap).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            let mut greeting = String::new();
            BufReader::new(stream).read_line(&mut greeting).ok()?;
            greeting.starts_with("* OK").then_some(())
        });
        Some(Self {
            imap,
            folder,
            _server: server,
        })
    }

    /// The Maildir of a user.
    pub(crate) fn maildir(&self, user: &str) -> PathBuf {
        self.folder.path().join("mail").join(user)
    }
}
