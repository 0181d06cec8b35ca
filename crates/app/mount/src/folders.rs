//! Where the files of a volume are: the description with the slot beside, and the state folder.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use vere_mailfs::format::VolumeId;
use vere_mailfs::format::slot::Slot;
use vere_process::failure::Failure;
use vere_settings::Volume;

use crate::leads::{self, Known};

/// The longest time for the end of a killed process.
pub(crate) const DEATH_MAX: Duration = Duration::from_secs(2);
/// Time between looks at a lock.
const LOOK: Duration = Duration::from_millis(10);

/// The largest description, in octets.
const FILE_MAX: u64 = 1 << 20;

/// The description of a volume, by name or path.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) file: PathBuf,
}

impl Description {
    /// A name stands for `fs/NAME.toml` of the configuration folder; a text with `/` is a path.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        if name.contains('/') {
            return Ok(Self { file: name.into() });
        }
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(Failure::new(format!(
                "{name:?}: expected a name of letters, digits, `-`, `_` and `.`, or a path with `/`"
            )));
        }
        let folder = xdg("XDG_CONFIG_HOME", ".config")?.join("vere/fs");
        Ok(Self {
            file: folder.join(format!("{name}.toml")),
        })
    }

    /// Reads and checks the file.
    pub(crate) fn read(&self) -> Result<Volume, Failure> {
        let shown = self.file.display().to_string();
        let mut described = Volume::parse(&self.text()?, &shown)?;
        // The file names the lead of the beginning.
        if let Ok(slot) = fs::read(self.slot())
            && let Ok(slot) = Slot::decode(&slot)
        {
            let known = Known::read(&state(slot.head.volume)?)?;
            let known = known.filter(|known| {
                let mut accounts = described.accounts.iter();
                accounts.any(|account| account.number == known.account)
            });
            described.lead = known.map_or(described.lead, |known| known.account);
        }
        Ok(described)
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> Result<String, Failure> {
        let shown = self.file.display().to_string();
        read_text(&self.file).map_err(|error| {
            Failure::new(format!(
                "{shown}: {error}; `vere fs init` writes the file of a new volume"
            ))
        })
    }

    /// The name of the volume.
    pub(crate) fn label(&self) -> String {
        let name = self.file.file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The file with the key slot, beside the description.
    pub(crate) fn slot(&self) -> PathBuf {
        self.file.with_extension("slot")
    }
}

fn read_text(file: &Path) -> std::io::Result<String> {
    let facts = fs::metadata(file)?;
    if facts.len() > FILE_MAX {
        let text = format!("expected at most {FILE_MAX} octets; found more");
        return Err(std::io::Error::other(text));
    }
    // The file names programs to run and files to read.
    let own = nix::unistd::geteuid().as_raw();
    if ![own, 0].contains(&facts.uid()) || facts.mode() & 0o022 != 0 {
        let text = "expected a file of this user that nobody else may write; found another owner or mode (in fstab: user=NAME)";
        return Err(std::io::Error::other(text));
    }
    fs::read_to_string(file)
}

/// The folder of the state of a volume.
pub(crate) fn state(volume: VolumeId) -> Result<PathBuf, Failure> {
    let folder = xdg("XDG_STATE_HOME", ".local/state")?;
    Ok(folder.join("vere/fs").join(volume.to_string()))
}

/// Notes the lead of today: after a crash there is the earlier file or the new one.
pub(crate) fn note_lead(state: &Path, known: &Known) -> Result<(), Failure> {
    replace_private(&leads::file(state), known.text().as_bytes())
}

/// The file with the octets of the day of an account. Not within the state: who removes the state has no new day.
pub(crate) fn budget(tag: &str, account: u16) -> Result<PathBuf, Failure> {
    let folder = xdg("XDG_STATE_HOME", ".local/state")?;
    Ok(folder
        .join("vere/fs/budgets")
        .join(format!("{tag}-{account}")))
}

/// The folder of the journal within the state.
pub(crate) fn journal(state: &Path) -> PathBuf {
    state.join("journal")
}

/// The folder of the cache of a volume.
pub(crate) fn cache(volume: VolumeId) -> Result<PathBuf, Failure> {
    let folder = xdg("XDG_CACHE_HOME", ".cache")?;
    Ok(folder.join("vere/fs").join(volume.to_string()))
}

/// The control socket of a mount.
pub(crate) fn control(state: &Path) -> PathBuf {
    state.join("control.sock")
}

fn xdg(variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
    // A relative path is to be ignored (XDG base directories).
    let given = env::var_os(variable).map(PathBuf::from);
    if let Some(folder) = given.filter(|folder| folder.is_absolute()) {
        return Ok(folder);
    }
    let home = env::home_dir().filter(|home| home.is_absolute());
    home.map(|home| home.join(below_home))
        .ok_or_else(|| Failure::new(format!("expected {variable} or HOME; found neither")))
}

/// Makes a folder for its owner alone.
pub(crate) fn make_private(folder: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Failure::new(format!("{}: {error}", folder.display())))
}

/// Writes a new file for its owner alone: after a crash there is no file or a whole one.
pub(crate) fn write_private(file: &Path, octets: &[u8]) -> Result<(), Failure> {
    if file.symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "{}: expected no file; found one",
            file.display()
        )));
    }
    replace_private(file, octets)
}

fn create_private(file: &Path, octets: &[u8]) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::new(format!("{}: {error}", file.display()));
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    let mut out = opened.map_err(wrong)?;
    std::io::Write::write_all(&mut out, octets).map_err(wrong)?;
    out.sync_all().map_err(wrong)
}

/// Writes a file for its owner alone in place of an earlier one: after a crash there is the earlier file or the new one.
pub(crate) fn replace_private(file: &Path, octets: &[u8]) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::new(format!("{}: {error}", file.display()));
    // A link leads to the file itself.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = target.with_file_name(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(wrong(error)),
        _ => {}
    }
    create_private(&new, octets)?;
    fs::rename(&new, &target).map_err(wrong)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    let folder = File::open(folder).and_then(|folder| folder.sync_all());
    folder.map_err(wrong)
}

/// The sole right of a process to the state of a volume, until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock at once, or fails.
    pub(crate) fn take(state: &Path) -> Result<Self, Failure> {
        Self::try_take(state)?.ok_or_else(|| {
            Failure::new(format!(
                "{}: expected a volume that is not mounted; found another process with its state",
                state.join("lock").display()
            ))
        })
    }

    /// Takes the lock, also from a process that was killed a moment ago: the kernel takes the memory of that process
    /// apart before it closes the files.
    pub(crate) fn take_within(state: &Path, longest: Duration) -> Result<Self, Failure> {
        let start = Instant::now();
        while start.elapsed() < longest {
            if let Some(lock) = Self::try_take(state)? {
                return Ok(lock);
            }
            thread::sleep(LOOK);
        }
        Self::take(state)
    }

    fn try_take(state: &Path) -> Result<Option<Self>, Failure> {
        let path = state.join("lock");
        let wrong = |error: std::io::Error| Failure::new(format!("{}: {error}", path.display()));
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let file = opened.map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(wrong(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DEATH_MAX, Description, LOOK, Lock, replace_private, write_private};
    use std::path::Path;

    #[test]
    fn names_and_paths() {
        let path = Description::named("./home.toml").unwrap();
        assert_eq!(path.file, Path::new("./home.toml"));
        assert_eq!(path.slot(), Path::new("./home.slot"));
        for wrong in ["", ".hidden", "a b", "ö"] {
            assert!(Description::named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("home.slot");
        std::fs::write(folder.path().join("home.slot.new"), "left behind").unwrap();
        for content in ["first", "second"] {
            replace_private(&file, content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        }
        assert!(!folder.path().join("home.slot.new").exists());
    }

    /// A file of a run that was cut off is in nobody's way.
    #[test]
    fn a_new_file_is_whole_and_takes_the_place_of_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("home.toml");
        std::fs::write(folder.path().join("home.toml.new"), "cut o").unwrap();
        write_private(&file, b"whole").unwrap();
        let names = std::fs::read_dir(folder.path()).unwrap();
        assert_eq!(names.count(), 1);
        assert!(write_private(&file, b"other").is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "whole");
    }

    #[test]
    fn one_process_has_the_state() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path()).unwrap();
        assert!(Lock::take(folder.path()).is_err());
        drop(first);
        assert!(Lock::take(folder.path()).is_ok());
    }

    #[test]
    fn the_end_of_a_process_is_waited_for_but_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path()).unwrap();
        let failure = Lock::take_within(folder.path(), LOOK * 2).unwrap_err();
        assert!(failure.to_string().contains("found another process"));
        let (ready, begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                ready.send(()).unwrap();
                Lock::take_within(folder.path(), DEATH_MAX).is_ok()
            });
            begun.recv().unwrap();
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}
