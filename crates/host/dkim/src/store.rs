//! The folder of all keys.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

use vere_units::Timestamp;

use crate::key::{KeyAlgorithm, KeyError, StoredKey, check_name};
use crate::waiting::{self, Waiting};

/// Octets of a key's file; the largest has some 4,500.
const FILE_MAX: u64 = 64 * 1024;
/// How many labels of a domain may be removed to find a domain with keys.
const PARENTS_MAX: usize = 3;
/// The most keys in the directory: two for each of a hoster's domains, besides new and retiring keys.
const KEYS_MAX: usize = 400_000;

/// The keys in a directory.
#[derive(Debug, Clone)]
pub struct KeyStore {
    folder: PathBuf,
}

impl KeyStore {
    /// The keys in this directory, which may be missing.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// All keys, by domain and then by the start of signing; unreadable keys are returned separately,
    /// so that a single damaged file does not silence every domain.
    ///
    /// # Errors
    /// The directory cannot be read, or has too many files.
    pub fn keys(&self) -> Result<(Vec<StoredKey>, Vec<KeyError>), KeyError> {
        let mut keys = Vec::new();
        let mut wrong = Vec::new();
        for domain in names(&self.folder)? {
            if check_name(&domain).is_err() || !self.folder.join(&domain).is_dir() {
                continue;
            }
            let files = names(&self.folder.join(&domain))?;
            for file in &files {
                let Some(selector) = file.strip_suffix(".toml") else {
                    continue;
                };
                if keys.len() >= KEYS_MAX {
                    let many = io::Error::other(format!("more than {KEYS_MAX} keys"));
                    return Err(KeyError::File(self.folder.clone(), many));
                }
                let mut key = match self.read(&domain, selector) {
                    Ok(key) => key,
                    Err(error) => {
                        wrong.push(error);
                        continue;
                    }
                };
                let beside = format!("{selector}.{}", waiting::EXTENSION);
                if files.binary_search(&beside).is_ok() {
                    let (waits, error) = self.waits(&key);
                    key.waits = Some(waits);
                    wrong.extend(error);
                }
                keys.push(key);
            }
        }
        keys.sort_by(|a, b| {
            (&a.domain, a.active_from, &a.selector).cmp(&(&b.domain, b.active_from, &b.selector))
        });
        Ok((keys, wrong))
    }

    fn path(&self, domain: &str, selector: &str) -> PathBuf {
        self.folder.join(domain).join(format!("{selector}.toml"))
    }

    fn waiting_path(&self, key: &StoredKey) -> PathBuf {
        self.path(&key.domain, &key.selector)
            .with_extension(waiting::EXTENSION)
    }

    /// What the file beside a key says. With a damaged file the key waits, too: a key that signs has no such file.
    fn waits(&self, key: &StoredKey) -> (Waiting, Option<KeyError>) {
        let path = self.waiting_path(key);
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
        let waits = match read {
            Ok(_) => Waiting::from_text(&text).map_err(|why| KeyError::Waiting(path, why)),
            Err(error) => Err(KeyError::File(path, error)),
        };
        match waits {
            Ok(waits) => (waits, None),
            Err(error) => {
                let since = key.created;
                (Waiting { since, keep: None }, Some(error))
            }
        }
    }

    fn read(&self, domain: &str, selector: &str) -> Result<StoredKey, KeyError> {
        check_name(selector)?;
        let path = self.path(domain, selector);
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
        read.map_err(|error| KeyError::File(path.clone(), error))?;
        StoredKey::from_text(&path, domain, selector, &text)
    }

    /// Writes a new key. A crash in between leaves no key that signs before its record is seen.
    ///
    /// # Errors
    /// [`KeyError::Exists`] when the domain has a key with this selector; errors of the operating
    /// system.
    pub fn add(&self, key: &StoredKey) -> Result<(), KeyError> {
        let path = self.path(&key.domain, &key.selector);
        if path.exists() {
            return Err(KeyError::Exists(path));
        }
        if let Some(waits) = key.waits {
            check_name(&key.domain)?;
            check_name(&key.selector)?;
            let path = self.waiting_path(key);
            let failed = |error| KeyError::File(path.clone(), error);
            let folder = self.folder.join(&key.domain);
            make_folder(&folder).map_err(failed)?;
            write_file(&folder, &path, &waits.to_text()).map_err(failed)?;
        }
        self.write(key)
    }

    /// Lets a waiting key sign from `active_from` on, or from now on if `at_once`. Predecessors among `others`, keys of
    /// the same domain and algorithm, get their end first: a crash in between leaves a key that waits, and
    /// the same call completes the change.
    ///
    /// # Errors
    /// The system's.
    pub fn activate(
        &self,
        key: &StoredKey,
        others: &[StoredKey],
        now: Timestamp,
        at_once: bool,
    ) -> Result<(), KeyError> {
        let from = match at_once {
            true => key.active_from.min(now),
            false => key.active_from,
        };
        if let Some(keep) = key.waits.and_then(|waits| waits.keep) {
            let end = from.max(now) + keep;
            // A key that was removed meanwhile, such as a stolen key, stays removed.
            let is_there = |other: &&StoredKey| self.path(&other.domain, &other.selector).exists();
            let before = others.iter().filter(|other| precedes(other, key));
            for other in before.filter(is_there) {
                let mut other = other.clone();
                other.retire_at = Some(end);
                self.write(&other)?;
            }
        }
        if from != key.active_from {
            let mut key = key.clone();
            key.active_from = from;
            self.write(&key)?;
        }
        let path = self.waiting_path(key);
        let removed = match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            removed => removed.and_then(|()| File::open(self.folder.join(&key.domain))?.sync_all()),
        };
        removed.map_err(|error| KeyError::File(path, error))
    }

    /// Writes a key whose times have changed, whole or not at all.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, key: &StoredKey) -> Result<(), KeyError> {
        check_name(&key.domain)?;
        check_name(&key.selector)?;
        let path = self.path(&key.domain, &key.selector);
        let failed = |error| KeyError::File(path.clone(), error);
        let folder = self.folder.join(&key.domain);
        make_folder(&folder).map_err(failed)?;
        write_file(&folder, &path, &key.to_text()).map_err(failed)
    }

    /// Removes a key.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, key: &StoredKey) -> Result<(), KeyError> {
        let path = self.path(&key.domain, &key.selector);
        fs::remove_file(&path).map_err(|error| KeyError::File(path, error))?;
        let beside = self.waiting_path(key);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(KeyError::File(beside, error)),
            _ => Ok(()),
        }
    }

    /// A value that changes with every change of a key, to decide whether to read the keys again.
    #[must_use]
    pub fn stamp(&self) -> Vec<(PathBuf, i64, i64)> {
        let folders = names(&self.folder).unwrap_or_default();
        let paths = std::iter::once(self.folder.clone())
            .chain(folders.iter().map(|name| self.folder.join(name)));
        paths
            .filter_map(|path| {
                let about = fs::metadata(&path).ok()?;
                Some((path, about.mtime(), about.mtime_nsec()))
            })
            .collect()
    }
}

/// Whether a key signs until its successor does, and has no end yet. Records of two generations may be seen in any order: a younger
/// key never ends because an older one is seen later.
fn precedes(other: &StoredKey, key: &StoredKey) -> bool {
    other.domain == key.domain
        && other.algorithm == key.algorithm
        && other.selector != key.selector
        && other.created <= key.created
        && other.waits.is_none()
        && other.retire_at.is_none()
}

/// The domains whose keys may sign the mail of a domain, in the order in which a gateway asks for them: the domain
/// itself, then its parent domains. A top-level domain never has keys.
pub fn signing_domains(domain: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(domain), |domain| parent(domain)).take(PARENTS_MAX + 1)
}

fn parent(domain: &str) -> Option<&str> {
    let (_, parent) = domain.split_once('.')?;
    parent.contains('.').then_some(parent)
}

/// The youngest key of each algorithm that signs for a domain at this time. `keys` may be of any
/// domains.
#[must_use]
pub fn signing<'a>(keys: &'a [StoredKey], domain: &str, now: Timestamp) -> Vec<&'a StoredKey> {
    let of = |algorithm| {
        keys.iter()
            .filter(|key| key.domain == domain && key.algorithm == algorithm)
            .filter(|key| key.is_active(now))
            .max_by_key(|key| key.active_from)
    };
    [KeyAlgorithm::RsaSha256, KeyAlgorithm::Ed25519Sha256]
        .into_iter()
        .filter_map(of)
        .collect()
}

fn names(folder: &Path) -> Result<Vec<String>, KeyError> {
    let failed = |error| KeyError::File(folder.to_owned(), error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    give_to_owner_of_parent(folder)
}

/// Root generates keys for the user of the system: the owner of the parent directory.
fn give_to_owner_of_parent(path: &Path) -> io::Result<()> {
    let (Some(parent), own) = (path.parent(), fs::metadata(path)?) else {
        return Ok(());
    };
    let owner = fs::metadata(parent)?;
    if (owner.uid(), owner.gid()) == (own.uid(), own.gid()) || own.uid() != 0 {
        return Ok(());
    }
    chown(path, Some(owner.uid()), Some(owner.gid()))
}

fn write_file(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let aside = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    give_to_owner_of_parent(&aside)?;
    fs::rename(&aside, path)?;
    File::open(folder)?.sync_all()
}
