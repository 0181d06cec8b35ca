//! A server of SFTP with keys, port and folder of its own.

use std::ffi::OsString;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::unistd::{Uid, User};
use tempfile::TempDir;

use crate::peer::{PeerError, await_ready, folder, free_address, spawn};
use crate::process::{Daemon, guard};

/// The name of the server in messages.
pub(super) const SSHD: &str = "sshd";

const PROGRAM: &str = "/usr/sbin/sshd";
const START_MAX: Duration = Duration::from_secs(20);
const STOP_MAX: Duration = Duration::from_secs(5);

/// The directory without which a privileged server does not start.
const SEPARATION: &str = "/run/sshd";

/// Starts the server if the directory does not exist: within a private view of the file system, in which the
/// directory is created, so that the machine stays as found.
const APART: &str = r#"mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$0" "$@""#;

/// A running server.
#[derive(Debug)]
pub(super) struct Sshd {
    pub(super) address: SocketAddr,
    pub(super) user: String,
    daemon: Daemon,
    // Removed after the daemon.
    folder: TempDir,
}

impl Sshd {
    pub(super) fn start(base: &Path) -> Result<Self, PeerError> {
        for program in [PROGRAM, "/usr/bin/ssh-keygen"] {
            if !Path::new(program).exists() {
                let missing = "not installed (apt-get install openssh-server)";
                return Err(PeerError::unavailable(SSHD, missing));
            }
        }
        let user = User::from_uid(Uid::effective()).ok().flatten();
        let unknown = || PeerError::unavailable(SSHD, "the user of the benchmark has no name");
        let user = user.ok_or_else(unknown)?.name;
        let folder = folder(base, "vere-bench-sftp-")?;
        let address = free_address()?;
        for key in ["host", "key"] {
            make_key(&folder.path().join(key))?;
        }
        let file = folder.path().join("sshd.conf");
        fs::write(&file, configuration(folder.path(), address))?;
        let mut command: Vec<OsString> = Vec::new();
        if Uid::effective().is_root() && !Path::new(SEPARATION).exists() {
            command.extend(["unshare", "--mount", "/bin/sh", "-c", APART].map(OsString::from));
        }
        command.extend([PROGRAM, "-D", "-e", "-f"].map(OsString::from));
        command.push(file.into());
        let daemon = spawn(&command, folder.path())?;
        let listens = || TcpStream::connect(address).is_ok();
        await_ready(SSHD, &daemon, START_MAX, listens)?;
        Ok(Self {
            address,
            user,
            daemon,
            folder,
        })
    }

    /// The key of the client.
    pub(super) fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    /// A new folder on the server.
    pub(super) fn export(&self, name: &str) -> Result<PathBuf, PeerError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", name.replace(' ', "-"));
        let path = self.folder.path().join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.daemon.stop(STOP_MAX);
    }
}

fn make_key(path: &Path) -> Result<(), PeerError> {
    let mut command = Command::new("/usr/bin/ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path);
    guard::said_by(&mut command)?;
    Ok(())
}

fn configuration(folder: &Path, address: SocketAddr) -> String {
    let (own, port) = (folder.display(), address.port());
    format!(
        "Port {port}\n\
         ListenAddress 127.0.0.1\n\
         HostKey {own}/host\n\
         AuthorizedKeysFile {own}/key.pub\n\
         PidFile none\n\
         UsePAM no\n\
         StrictModes no\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         PermitRootLogin yes\n\
         MaxSessions 64\n\
         MaxStartups 64\n\
         Subsystem sftp internal-sftp\n"
    )
}
