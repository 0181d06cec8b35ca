//! `vere fs` as a file system under test. All command lines of the product stand in [`Commands`].

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::accounts::{ACCOUNTS, PASSWORD, user};
use super::distance::{Distance, Traffic};
use super::fuse::Fuse;
use super::system::{System, files};
use crate::error::BenchError;
use crate::peer::{OURS, PeerError, folder};
use crate::process::guard;

/// The name of the volume.
const VOLUME: &str = "bench";

/// The command lines of the product.
struct Commands<'a> {
    vere: &'a Path,
    /// The folder with configuration, state, cache and secrets.
    own: &'a Path,
}

impl Commands<'_> {
    /// The beginning of each command: directories of its own in place of the user's.
    fn begin(&self) -> Vec<OsString> {
        let set = |name: &str, folder: &str| {
            let mut text = OsString::from(format!("{name}="));
            text.push(self.own.join(folder));
            text
        };
        vec![
            "/usr/bin/env".into(),
            set("HOME", "home"),
            set("XDG_CONFIG_HOME", "config"),
            set("XDG_STATE_HOME", "state"),
            set("XDG_CACHE_HOME", "cache"),
            set("XDG_RUNTIME_DIR", "runtime"),
            self.vere.into(),
            "fs".into(),
        ]
    }

    /// Creates the volume on all accounts; a key file, since a passphrase costs 100 ms a mount.
    fn init(&self, imap: SocketAddr, is_described: bool) -> Vec<OsString> {
        let mut command = self.begin();
        command.extend(["init", VOLUME].map(OsString::from));
        command.extend(["--key-file".into(), self.own.join("key").into()]);
        if is_described {
            return command;
        }
        for account in 0..ACCOUNTS {
            let user = user(account).replace('@', "%40");
            command.push(format!("imap://{user}@{imap}/").into());
        }
        command.extend(["--password-file".into(), self.own.join("password").into()]);
        command.push("--clear".into());
        command
    }

    /// Writes the file of a volume with mails in base64.
    fn describe(&self, imap: SocketAddr) -> std::io::Result<()> {
        let folder = self.own.join("config/vere/fs");
        fs::create_dir_all(&folder)?;
        let password = self.own.join("password");
        let mut text = "version = 1\n".to_owned();
        for account in 0..ACCOUNTS {
            let user = user(account).replace('@', "%40");
            text.push_str(&format!(
                "[[account]]\nnumber = {}\nurl = \"imap://{user}@{imap}/\"\npassword_file = {password:?}\ntls = \"off\"\ngroup = {}\nencoding = \"base64\"\n",
                account + 1,
                account + 1,
            ));
        }
        let file = folder.join(format!("{VOLUME}.toml"));
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))
    }

    fn mount(&self, point: &Path) -> Vec<OsString> {
        let mut command = self.begin();
        command.extend(["mount", VOLUME].map(OsString::from));
        command.push(point.into());
        command.extend(["--key-file".into(), self.own.join("key").into()]);
        command.push("--foreground".into());
        command
    }

    /// Waits until the accounts have everything.
    fn sync(&self) -> Vec<OsString> {
        let mut command = self.begin();
        command.extend(["sync", VOLUME].map(OsString::from));
        command
    }

    fn unmount(&self, point: &Path) -> Vec<OsString> {
        let mut command = self.begin();
        command.extend(["umount".into(), point.into()]);
        command
    }

    /// Whether the program knows the command.
    fn is_known(&self) -> bool {
        let mut command = self.begin();
        command.extend(["mount", "--help"].map(OsString::from));
        run(&command).is_ok()
    }
}

/// Runs a command line to its end.
fn run(line: &[OsString]) -> std::io::Result<()> {
    let mut command = Command::new(line.first().cloned().unwrap_or_default());
    command.args(line.iter().skip(1));
    guard::said_by(&mut command).map(drop)
}

/// A mounted volume on the accounts of a Dovecot.
#[derive(Debug)]
pub(super) struct Vere {
    vere: PathBuf,
    fuse: Fuse,
    distance: Distance,
    // Removed at last.
    folder: TempDir,
}

impl Vere {
    /// Creates a volume behind a distance to `imap`.
    pub(super) fn new(
        vere: &Path,
        imap: SocketAddr,
        round_trip: Duration,
        (base, base64): (&Path, bool),
    ) -> Result<Self, BenchError> {
        let folder = folder(base, "vere-bench-volume-").map_err(PeerError::from)?;
        let own = folder.path();
        let commands = Commands { vere, own };
        if !commands.is_known() {
            return Err(PeerError::unavailable(OURS, "vere fs mount is not there").into());
        }
        for name in ["home", "config", "state", "cache", "runtime"] {
            fs::create_dir(own.join(name)).map_err(BenchError::io("make a folder"))?;
        }
        for (name, content) in [
            ("key", [b'k'; 32].as_slice()),
            ("password", PASSWORD.as_bytes()),
        ] {
            let path = own.join(name);
            let private = fs::Permissions::from_mode(0o600);
            let written = fs::write(&path, content);
            let written = written.and_then(|()| fs::set_permissions(&path, private));
            written.map_err(BenchError::io("write a secret"))?;
        }
        let distance = Distance::to(imap, round_trip).map_err(BenchError::io("start the relay"))?;
        if base64 {
            commands
                .describe(distance.address())
                .map_err(BenchError::io("write the file of a volume"))?;
        }
        let init = commands.init(distance.address(), base64);
        run(&init).map_err(BenchError::of("vere fs init"))?;
        let point = own.join("mnt");
        let fuse = Fuse::new(commands.mount(&point), own.join("output"), point)?;
        Ok(Self {
            vere: vere.to_owned(),
            fuse,
            distance,
            folder,
        })
    }

    fn commands(&self) -> Commands<'_> {
        Commands {
            vere: &self.vere,
            own: self.folder.path(),
        }
    }
}

impl System for Vere {
    fn name(&self) -> &'static str {
        OURS
    }

    fn root(&self) -> &Path {
        self.fuse.point()
    }

    fn is_mounted(&self) -> bool {
        self.fuse.is_mounted()
    }

    fn mount(&mut self) -> Result<Duration, BenchError> {
        self.fuse.mount()
    }

    fn unmount(&mut self) -> Result<(), BenchError> {
        if self.is_mounted() {
            run(&self.commands().sync()).map_err(BenchError::of("vere fs sync"))?;
            let unmount = self.commands().unmount(self.fuse.point());
            run(&unmount).map_err(BenchError::of("vere fs umount"))?;
        }
        self.fuse.unmount()
    }

    /// Removes cached chunks and pages; the writer keeps its number and its memory of the head.
    fn forget(&mut self) -> Result<(), BenchError> {
        let own = self.folder.path();
        let forgotten = (|| {
            let cached = files(&own.join("cache"))?;
            let kept = files(&own.join("state"))?;
            let is_page = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default();
                name.as_encoded_bytes().starts_with(b"pages")
            };
            let pages = kept.into_iter().filter(is_page);
            cached
                .into_iter()
                .chain(pages)
                .try_for_each(fs::remove_file)
        })();
        forgotten.map_err(BenchError::io("remove a cache"))
    }

    fn traffic(&self) -> Traffic {
        self.distance.traffic()
    }

    fn processes(&self) -> Vec<u32> {
        self.fuse.processes()
    }
}
