//! The files of a new system.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{User, geteuid};
use vere_health::machine::Memory;
use vere_ports::directory::{AccountName, DomainName};
use vere_settings::Settings;
use vere_supervisor::roles::memory_bounds;

use crate::config::memory::DROP_IN;
use vere_process::failure::Failure;

use super::bounds::{self, Bounds};
use super::certificate::{Pair, State};
use super::user::{self, Found};

/// Where the services listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) smtp: u16,
    pub(super) submission: u16,
    pub(super) submissions: u16,
    pub(super) imaps: u16,
    pub(super) lmtp: u16,
    /// The endpoint of the gateway's metrics; the next two ports are those of mail store and front.
    pub(super) metrics: u16,
}

impl Ports {
    /// The standard ports, which only root may open.
    pub(super) const STANDARD: Self = Self {
        smtp: 25,
        submission: 587,
        submissions: 465,
        imaps: 993,
        lmtp: 24,
        metrics: 9625,
    };
    /// Ports that every user may open.
    pub(super) const HIGH: Self = Self {
        smtp: 2525,
        submission: 2587,
        submissions: 2465,
        imaps: 2993,
        lmtp: 2424,
        metrics: 2625,
    };

    /// The ports of the metrics of gateway, mail store and front.
    pub(super) const fn all_metrics(&self) -> [u16; 3] {
        [self.metrics, self.metrics + 1, self.metrics + 2]
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            smtp,
            submission,
            submissions,
            imaps,
            lmtp: _,
            metrics: _,
        } = self;
        write!(
            f,
            "{smtp} (SMTP), {submission} (submission), {submissions} (submission over TLS), \
             {imaps} (IMAP over TLS)"
        )
    }
}

/// The configuration directory of the packaged unit, and the directory of the machine's own units.
const ETC: &str = "/etc/vere";
const UNITS: &str = "/etc/systemd/system";

/// The files to write, and their places.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) dir: PathBuf,
    pub(super) data: PathBuf,
    hostname: String,
    account: String,
    pub(super) ports: Ports,
    /// Whether Let's Encrypt issues the certificate.
    pub(super) acme: bool,
    /// Whether the web server for mail programs and other systems listens.
    pub(super) web: bool,
    pub(super) root: bool,
    pub(super) certificate: State,
    /// For the operator: the earlier files, which are kept.
    pub(super) notes_on_kept: Vec<String>,
    found: Found,
    /// Bounds for the memory of the machine.
    bounds: Bounds,
    note_on_memory: Option<String>,
}

impl Plan {
    pub(super) fn new(
        dir: Option<&Path>,
        account: &AccountName,
        hostname: &DomainName,
    ) -> Result<Self, Failure> {
        let root = geteuid().is_root();
        let etc = Path::new(ETC);
        let dir = dir.unwrap_or(if root { etc } else { Path::new("vere-data") });
        let dir = std::path::absolute(dir)?;
        if dir
            .to_str()
            .is_none_or(|text| text.chars().any(char::is_control))
        {
            return Err(Failure::new(
                "the folder's name holds characters that a file cannot name",
            ));
        }
        let data = if dir == etc {
            PathBuf::from("/var/lib/vere")
        } else {
            dir.join("data")
        };
        let ports = if root { Ports::STANDARD } else { Ports::HIGH };
        let (hostname, account) = (hostname.to_string(), account.to_string());
        Ok(Self {
            dir,
            data,
            hostname,
            account,
            ports,
            acme: false,
            web: false,
            root,
            certificate: State::Missing,
            notes_on_kept: Vec::new(),
            found: Found::default(),
            bounds: Bounds::DEFAULT,
            note_on_memory: None,
        })
    }

    /// Looks for the user of a system of root, who may have to be created.
    pub(super) fn find_user(&mut self) {
        if self.root {
            self.found = user::find(&self.dir);
        }
    }

    pub(super) fn config(&self) -> PathBuf {
        self.dir.join("vere.toml")
    }

    /// Chooses bounds for the memory of the machine.
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub(super) fn fit(&mut self, memory: &Memory) -> Result<(), Failure> {
        let path = self.config();
        let sum = |bounds| {
            let settings = Settings::parse(&self.text_with(bounds), &path.to_string_lossy())?;
            Ok::<_, Failure>(memory_bounds(&settings).max().as_u64())
        };
        let bounds = Bounds::fitting(memory, sum)?;
        let note = bounds::note(memory, sum(bounds)?);
        (self.bounds, self.note_on_memory) = (bounds, note);
        Ok(())
    }

    /// The configuration.
    pub(super) fn text(&self) -> String {
        self.text_with(self.bounds)
    }

    fn text_with(&self, bounds: Bounds) -> String {
        let Self {
            hostname,
            account,
            ports,
            ..
        } = self;
        // A machine without IPv6 cannot open such an address at all.
        let all = if TcpListener::bind("[::]:0").is_ok() {
            "[::]"
        } else {
            "0.0.0.0"
        };
        let data = toml_text(&self.data.to_string_lossy());
        let user = match &self.found.user {
            Some(user) => format!("user = {}\n", toml_text(&user.name)),
            None => String::new(),
        };
        let tls = if self.acme {
            let postmaster = toml_text(&format!("mailto:{account}"));
            let web = if self.web { "\n[web]\n" } else { "" };
            format!("[acme]\ncontact = [{postmaster}]\n{web}")
        } else {
            "[tls]\ncertificate = \"tls/cert.pem\"\nkey = \"tls/key.pem\"\n".to_owned()
        };
        let [gateway, store, front] = ports.all_metrics();
        format!(
            "# Made by: vere quickstart {account}. All settings: vere config reference\n\
             version = 1\nhostname = \"{hostname}\"\ndata = {data}\n{user}\n\
             [smtp]\nlisten = [\"{all}:{}\"]\n\n[front]\n\n[judging]\n\n\
             [submission]\nlisten = [\"{all}:{}\"]\n\n\
             [submissions]\nlisten = [\"{all}:{}\"]\n\n\
             [imaps]\nlisten = [\"{all}:{}\"]\n\n\
             [lmtp]\nlisten = [\"127.0.0.1:{}\"]\n\n{tls}\n[dkim]\n\n\
             [metrics]\nlisten = \"127.0.0.1:{gateway}\"\nstore = \"127.0.0.1:{store}\"\n\
             front = \"127.0.0.1:{front}\"\n{bounds}",
            ports.smtp, ports.submission, ports.submissions, ports.imaps, ports.lmtp
        )
    }

    /// The drop-in that limits the memory of the service: for the configuration of the unit, on a machine with
    /// systemd.
    pub(super) fn drop_in(&self) -> Option<&'static Path> {
        let is_service = self.root && self.dir == Path::new(ETC) && Path::new(UNITS).is_dir();
        is_service.then_some(Path::new(DROP_IN))
    }

    /// Whether the unit of the package starts the system: systemd runs, and has the unit.
    pub(super) fn has_unit(&self) -> bool {
        let is_unit = |folder: &str| Path::new(folder).join("vere.service").exists();
        self.root
            && self.dir == Path::new(ETC)
            && Path::new("/run/systemd/system").is_dir()
            && [UNITS, "/usr/lib/systemd/system", "/lib/systemd/system"]
                .into_iter()
                .any(is_unit)
    }

    /// Creates the directories; the configuration directory may already exist.
    pub(super) fn make_folders(&self) -> Result<(), Failure> {
        make_folder(&self.dir, 0o755)?;
        make_folder(&self.data, 0o700)?;
        if self.acme {
            Ok(())
        } else {
            make_folder(&self.dir.join("tls"), 0o700)
        }
    }

    /// The files of the certificate, where Let's Encrypt does not issue it.
    pub(super) fn pair(&self) -> Pair {
        Pair::below(&self.dir.join("tls"))
    }

    /// Looks for an existing certificate, without a change.
    ///
    /// # Errors
    /// When one of certificate and key is missing.
    pub(super) fn find_certificate(&mut self) -> Result<(), Failure> {
        if !self.acme {
            self.certificate = self.pair().state(&self.hostname)?;
        }
        Ok(())
    }

    /// Creates a self-signed certificate, unless a usable certificate already exists. Between mail systems, which
    /// encrypt without verifying the signer, such a certificate suffices.
    pub(super) fn make_certificate(&mut self) -> Result<(), Failure> {
        if self.acme || matches!(self.certificate, State::Own | State::Foreign(_)) {
            return Ok(());
        }
        self.notes_on_kept.extend(self.pair().make(&self.hostname)?);
        Ok(())
    }

    /// Gives the files of the system to its user.
    pub(super) fn give_to_user(&self) -> Result<(), Failure> {
        let Some(user) = &self.found.user else {
            return Ok(());
        };
        give(&self.data, user)?;
        let keys = self.data.join("dkim");
        give(&keys, user)?;
        // The keys of each domain are in a directory of their own.
        for domain in entries(&keys)? {
            give(&domain, user)?;
        }
        if !self.acme {
            for name in ["tls", "tls/key.pem", "tls/cert.pem"] {
                give(&self.dir.join(name), user)?;
            }
        }
        Ok(())
    }

    /// Writes the configuration; an existing configuration is kept beside the new file.
    pub(super) fn write(&mut self) -> Result<(), Failure> {
        let (path, text) = (self.config(), self.text());
        if path.exists() {
            let kept = keep(&path)?;
            let note = format!("the earlier settings are in {}", kept.display());
            self.notes_on_kept.push(note);
        }
        // Passwords for next hops may be added to the file later.
        match &self.found.user {
            None => write_file(&path, &text, 0o600),
            Some(user) => {
                write_file(&path, &text, 0o640)?;
                std::os::unix::fs::lchown(&path, None, Some(user.gid.as_raw()))
                    .map_err(|error| failed("change the group of", &path, &error))
            }
        }
    }

    /// The note about too little memory.
    pub(super) fn note_on_memory(&self) -> Option<&str> {
        self.note_on_memory.as_deref()
    }

    /// The note about the user of the system.
    pub(super) fn note_on_user(&self) -> Option<&str> {
        self.found.note.as_deref()
    }
}

/// Whether no other program listens at a port.
pub(super) fn is_free(port: u16) -> bool {
    match TcpListener::bind(("::", port)) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::AddrInUse => false,
        // A machine without IPv6.
        Err(_) => TcpListener::bind(("0.0.0.0", port)).is_ok(),
    }
}

/// The first free path to keep a file at: its name and `.old`, `.old.2`, `.old.3` and so on. A file that was kept
/// before may be the only copy of edited settings.
pub(crate) fn old(path: &Path) -> PathBuf {
    let behind = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let mut kept = behind(".old");
    let mut number = 1_u64;
    while is_there(&kept) {
        number += 1;
        kept = behind(&format!(".old.{number}"));
    }
    kept
}

/// Moves a file to a free path in the same directory, and returns the path.
pub(super) fn keep(path: &Path) -> Result<PathBuf, Failure> {
    let kept = old(path);
    fs::rename(path, &kept).map_err(|error| failed("keep", path, &error))?;
    Ok(kept)
}

/// Whether a path is in use, also by a link that leads nowhere.
pub(super) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A basic string of TOML; control characters were refused.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn failed(what: &str, path: &Path, error: &dyn fmt::Display) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

fn make_folder(path: &Path, mode: u32) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(mode).create(path);
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Failure::new(format!(
            "expected a directory or nothing at {}; found a file: choose another directory with --dir",
            path.display()
        )),
        _ => failed("make folder", path, &error),
    })
}

/// Writes a file whole or not at all, and durably: an interrupted start must not leave half a file that the next
/// start would keep.
pub(crate) fn write_file(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let temporary = PathBuf::from(name);
    let written = || {
        let _ = fs::remove_file(&temporary);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    written().map_err(|error| failed("write", path, &error))
}

/// Gives a file, or a directory with its direct entries, to the user.
fn give(path: &Path, user: &User) -> Result<(), Failure> {
    let (uid, gid) = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
    let given = |path: &Path| {
        std::os::unix::fs::lchown(path, uid, gid)
            .map_err(|error| failed("change the owner of", path, &error))
    };
    given(path)?;
    entries(path)?.iter().try_for_each(|entry| given(entry))
}

/// The direct entries of a directory; none of a file.
fn entries(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(path).map_err(|error| failed("read", path, &error))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// Only root can give files away: without root there is nothing to see.
    #[test]
    fn the_user_gets_every_key() {
        let Ok(Some(nobody)) = User::from_name("nobody") else {
            return;
        };
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let account = AccountName::parse("you@example.org").unwrap();
        let hostname = DomainName::parse("mail.example.org").unwrap();
        let mut plan = Plan::new(Some(folder.path()), &account, &hostname).unwrap();
        plan.acme = true;
        plan.found.user = Some(nobody.clone());
        let key = plan.data.join("dkim/example.org/s1.toml");
        fs::create_dir_all(key.parent().unwrap()).unwrap();
        fs::write(&key, "a key").unwrap();
        plan.give_to_user().unwrap();
        for path in key.ancestors().take_while(|path| *path != folder.path()) {
            let owner = fs::metadata(path).unwrap().uid();
            assert_eq!(owner, nobody.uid.as_raw(), "{}", path.display());
        }
    }
}
