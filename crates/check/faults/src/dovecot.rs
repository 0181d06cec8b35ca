//! Dovecot, as an IMAP server with its own mailboxes.

#![allow(
    clippy::missing_panics_doc,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::free_address;

/// The user and group `nobody` and `nogroup` of Debian.
const NOBODY: u32 = 65_534;

/// How long the start may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a common password of all users, `secret`.
#[derive(Debug)]
pub struct Dovecot {
    /// The address for IMAP in clear text.
    pub imap: SocketAddr,
    folder: tempfile::TempDir,
    server: Child,
}

impl Dovecot {
    /// Starts the server with mail in a Maildir; `None`, with a line on the standard error, where Dovecot is not
    /// installed or cannot change its user.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts the server with further settings.
    #[must_use]
    pub fn start_with(settings: &str) -> Option<Self> {
        let program = Path::new("/usr/sbin/dovecot");
        if !program.exists() || !Path::new("/usr/lib/dovecot/imap").exists() {
            return skip("not installed (scripts/install-test-tools.sh)");
        }
        if !nix::unistd::geteuid().is_root() {
            return skip("it starts as root only");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), mode).expect("its mode");
        let mail = folder.path().join("mail");
        fs::create_dir(&mail).expect("a folder");
        std::os::unix::fs::chown(&mail, Some(NOBODY), Some(NOBODY)).expect("its owner");
        let imap = free_address();
        let file = folder.path().join("dovecot.conf");
        let text = configuration(folder.path(), imap, settings);
        fs::write(&file, text).expect("its settings");
        let mut command = Command::new(program);
        command.args(["-F", "-c"]).arg(&file);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = command.spawn().expect("Dovecot starts");
        let own = Self {
            imap,
            folder,
            server,
        };
        own.wait();
        Some(own)
    }

    fn wait(&self) {
        let begin = Instant::now();
        while !greets(self.imap) {
            assert!(
                begin.elapsed() < PATIENCE,
                "Dovecot did not start in {PATIENCE:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the server; the mails stay.
    pub fn end(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// The Maildir of a user.
    #[must_use]
    pub fn maildir(&self, user: &str) -> PathBuf {
        self.folder.path().join("mail").join(user)
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        self.end();
    }
}

fn configuration(folder: &Path, imap: SocketAddr, settings: &str) -> String {
    let own = folder.display();
    format!(
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
    )
}

fn greets(address: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect(address) else {
        return false;
    };
    let mut greeting = String::new();
    let read = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| BufReader::new(stream).read_line(&mut greeting));
    read.is_ok() && greeting.starts_with("* OK")
}

fn skip(why: &str) -> Option<Dovecot> {
    let test = std::thread::current().name().map(str::to_owned);
    let test = test.as_deref().unwrap_or("a test");
    // Past the capture of passing tests.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: Dovecot: {why}");
    None
}
