//! The backups of a place: objects named by content, and a list for each backup.
//!
//! ```text
//! vere-backup.json         the kind of the place, and the encryption; written first
//! vere-backup.copy.json    the description once more
//! objects/ab/abcd...       a piece of a file, named by the BLAKE3 hash of the content (keyed in an encrypted place)
//! manifests/00000007       the list of backup 7; written last, when all objects of the backup are safe
//! damaged/abcd...          empty: verify found the object damaged, the next backup stores the content again
//! lock                     held by the writing command
//! ```

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use vere_process::failure::Failure;

use crate::description::{self, Description};
use crate::manifest::{self, Manifest, Piece};
use crate::pace::Pace;
use crate::place::directory::Directory;
use crate::place::s3::{self, Bucket};
use crate::place::{Entry, Place, Use, wrong};
use crate::seal::{Keys, SEAL_OCTETS, Sealed};
use crate::secret::Ask;

const OBJECTS: &str = "objects";
const MANIFESTS: &str = "manifests";
const DAMAGED: &str = "damaged";

/// The error of a disk that cannot read a sector.
const EIO: i32 = 5;

/// Why the content of an object is not to be had.
#[derive(Debug)]
pub(crate) enum PieceError {
    /// The object has other content, or the disk cannot read the object.
    Damaged(String),
    /// The object is absent, or cannot be read.
    Unread(Failure),
    /// The server of the place gave no usable answer, in all attempts.
    Unanswered(Failure),
}

impl fmt::Display for PieceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(path) => write!(f, "{path}: the object is damaged"),
            Self::Unread(failure) | Self::Unanswered(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for PieceError {}

/// The backups of a place.
#[derive(Debug)]
pub(crate) struct Repository {
    place: Box<dyn Place>,
    keys: Option<Keys>,
    _lock: Box<dyn Any>,
}

impl Repository {
    /// Opens a place. An empty place is made a place for backups if `usage` is writing; `ask` gives the secret of an
    /// encrypted place.
    ///
    /// # Errors
    /// When there are no backups, the place is in use by a different command, or the secret is wrong.
    pub(crate) fn open(text: &str, usage: Use, ask: Ask<'_>) -> Result<Self, Failure> {
        let place = open_place(text)?;
        let nothing = || {
            let [name, _] = description::NAMES;
            Failure::new(format!("{text}: expected backups; found no {name}"))
        };
        // A mistyped name is no place yet: not even the lock is made there.
        if usage != Use::Writing && Description::read(&*place)?.is_none() {
            return Err(nothing());
        }
        let lock = lock(&*place, usage)?;
        let keys = match Description::read(&*place)? {
            Some(description) => {
                let keys = description.open(text, ask)?;
                if usage == Use::Writing {
                    description.keep(&*place)?;
                }
                keys
            }
            None if usage == Use::Writing => make(&*place, ask)?,
            None => return Err(nothing()),
        };
        Ok(Self {
            place,
            keys,
            _lock: lock,
        })
    }

    /// Whether a place has backups. Nothing is made or locked.
    ///
    /// # Errors
    /// When the place cannot be read.
    pub(crate) fn is_there(text: &str) -> Result<bool, Failure> {
        Ok(Description::read(&*open_place(text)?)?.is_some())
    }

    /// Whether the place is encrypted.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// The numbers of all backups, in order.
    ///
    /// # Errors
    /// When the place cannot be read.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>, Failure> {
        let entries = self.place.list(MANIFESTS);
        let entries = entries.map_err(wrong(&*self.place, MANIFESTS))?;
        let number = |entry: &Entry| {
            let number = entry.path.rsplit('/').next()?.parse().ok()?;
            (entry.path == manifest_path(number)).then_some(number)
        };
        let mut numbers: Vec<u64> = entries.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The list of a backup.
    ///
    /// # Errors
    /// When the list is absent, damaged, or of another version.
    pub(crate) fn manifest(&self, number: u64) -> Result<Manifest, Failure> {
        let path = manifest_path(number);
        let read = self.place.read(&path, manifest::OCTETS_MAX);
        let octets = read.map_err(wrong(&*self.place, &path))?;
        let octets = match &self.keys {
            None => octets,
            Some(keys) => keys
                .unseal(Sealed::Manifest, &path, &octets)
                .ok_or_else(|| self.damaged_list(&path, "it cannot be decrypted"))?,
        };
        let manifest = Manifest::decode(&octets);
        manifest.map_err(|error| self.damaged_list(&path, &error.to_string()))
    }

    fn damaged_list(&self, path: &str, why: &str) -> Failure {
        let place = self.place.name();
        Failure::new(format!(
            "{place}/{path}: the list of the backup is damaged: {why}"
        ))
    }

    /// The backup with the given number, or the newest backup.
    ///
    /// # Errors
    /// When there is no such backup, or the list cannot be read.
    pub(crate) fn chosen(&self, number: Option<u64>) -> Result<Manifest, Failure> {
        let numbers = self.numbers()?;
        match number.or_else(|| numbers.last().copied()) {
            Some(number) if numbers.contains(&number) => {
                let manifest = self.manifest(number);
                let others: Vec<String> = numbers
                    .iter()
                    .filter(|other| **other != number)
                    .map(u64::to_string)
                    .collect();
                manifest.map_err(|error| match others.is_empty() {
                    true => error,
                    false => Failure::new(format!(
                        "{error}; choose another backup with --number: {}",
                        others.join(", ")
                    )),
                })
            }
            Some(number) => Err(Failure::new(format!("there is no backup {number}"))),
            None => Err(Failure::new(format!(
                "{}: no backup is there",
                self.place.name()
            ))),
        }
    }

    /// Writes the list of a backup after all objects were written: with the list, the backup exists.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn finish(&self, manifest: &Manifest) -> Result<(), Failure> {
        let path = manifest_path(manifest.number);
        let octets = manifest.encode()?;
        let octets = match &self.keys {
            None => octets,
            Some(keys) => keys.seal(Sealed::Manifest, &path, &octets)?,
        };
        self.settle()?;
        let written = self.place.create(&path, &octets);
        written.map_err(wrong(&*self.place, &path))?;
        self.settle()
    }

    /// The names of all objects found damaged and not stored again since.
    ///
    /// # Errors
    /// When the place cannot be read.
    pub(crate) fn damaged(&self) -> Result<HashSet<String>, Failure> {
        let entries = self.place.list(DAMAGED);
        let entries = entries.map_err(wrong(&*self.place, DAMAGED))?.into_iter();
        let name = |entry: Entry| Some(entry.path.rsplit('/').next()?.to_owned());
        Ok(entries.filter_map(name).collect())
    }

    /// Notes that an object is damaged: the next backup stores the content again.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn note_damaged(&self, name: &str) -> Result<(), Failure> {
        let path = format!("{DAMAGED}/{name}");
        let written = self.place.write(&path, b"");
        written.map_err(wrong(&*self.place, &path))
    }

    /// Notes that an object is whole again, or gone.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn note_mended(&self, name: &str) -> Result<(), Failure> {
        let path = format!("{DAMAGED}/{name}");
        self.place.remove(&path).map_err(wrong(&*self.place, &path))
    }

    /// Removes the list of a backup.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn forget(&self, number: u64) -> Result<(), Failure> {
        let path = manifest_path(number);
        self.place.remove(&path).map_err(wrong(&*self.place, &path))
    }

    /// Makes everything written and removed safe.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        self.place.settle().map_err(wrong(&*self.place, ""))
    }

    /// Removes unfinished files of killed commands.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn clear_leftovers(&self) -> Result<(), Failure> {
        for folder in [OBJECTS, MANIFESTS, DAMAGED] {
            let cleared = self.place.clear_leftovers(folder);
            cleared.map_err(wrong(&*self.place, folder))?;
        }
        Ok(())
    }

    /// The names of all objects, each with the number of octets of the content.
    ///
    /// # Errors
    /// When the place cannot be read.
    pub(crate) fn objects(&self) -> Result<HashMap<String, u64>, Failure> {
        let entries = self.place.list(OBJECTS);
        let entries = entries.map_err(wrong(&*self.place, OBJECTS))?;
        let seal = self.seal_octets();
        let object = |entry: Entry| {
            let name = entry.path.rsplit('/').next()?;
            Some((name.to_owned(), entry.octets.saturating_sub(seal)))
        };
        Ok(entries.into_iter().filter_map(object).collect())
    }

    /// The name of the object with the given content.
    pub(crate) fn name(&self, content: &[u8]) -> String {
        let hash = match &self.keys {
            None => blake3::hash(content),
            Some(keys) => keys.name(content),
        };
        hash.to_hex().to_string()
    }

    /// Writes an object, at a pace.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn put(&self, name: &str, content: &[u8], pace: &Pace) -> Result<(), Failure> {
        let path = object_path(name);
        let written = match &self.keys {
            None => self.place.write_paced(&path, content, pace),
            Some(keys) => {
                let sealed = keys.seal(Sealed::Object, name, content)?;
                self.place.write_paced(&path, &sealed, pace)
            }
        };
        written.map_err(wrong(&*self.place, &path))
    }

    /// Reads the content of a piece, and compares the content with the name.
    ///
    /// # Errors
    /// When the object is absent or damaged, or the place cannot be read.
    pub(crate) fn piece(&self, piece: &Piece) -> Result<Vec<u8>, PieceError> {
        let Piece(octets, name) = piece;
        let path = object_path(name);
        let damaged = || PieceError::Damaged(format!("{}/{path}", self.place.name()));
        if !piece.is_valid() {
            return Err(damaged());
        }
        let read = self.place.read(&path, octets + self.seal_octets());
        let read = read.map_err(|error| match error.kind() {
            ErrorKind::InvalidData => damaged(),
            _ if error.raw_os_error() == Some(EIO) => damaged(),
            ErrorKind::NotConnected => PieceError::Unanswered(wrong(&*self.place, &path)(error)),
            _ => PieceError::Unread(wrong(&*self.place, &path)(error)),
        })?;
        let content = match &self.keys {
            None => read,
            Some(keys) => keys
                .unseal(Sealed::Object, name, &read)
                .ok_or_else(damaged)?,
        };
        match content.len() as u64 == *octets && self.name(&content) == *name {
            true => Ok(content),
            false => Err(damaged()),
        }
    }

    /// Removes an object.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = object_path(name);
        self.place.remove(&path).map_err(wrong(&*self.place, &path))
    }

    fn seal_octets(&self) -> u64 {
        self.keys.as_ref().map_or(0, |_| SEAL_OCTETS as u64)
    }
}

/// Opens the place named on the command line.
///
/// # Errors
/// When the text names no place.
fn open_place(text: &str) -> Result<Box<dyn Place>, Failure> {
    match text.split_once("://") {
        None => Ok(Box::new(Directory::new(Path::new(text)))),
        Some(_) if text.starts_with(s3::SCHEME) => Ok(Box::new(Bucket::open(text)?)),
        Some((scheme, _)) => Err(Failure::new(format!(
            "{text}: expected a directory or s3://BUCKET/PREFIX; found the scheme {scheme}"
        ))),
    }
}

fn lock(place: &dyn Place, usage: Use) -> Result<Box<dyn Any>, Failure> {
    place.lock(usage).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Failure::new(format!(
            "{}: another command on these backups is under way",
            place.name()
        )),
        _ => wrong(place, "lock")(error),
    })
}

/// Makes an empty place a place for backups.
fn make(place: &dyn Place, ask: Ask<'_>) -> Result<Option<Keys>, Failure> {
    // Lists without a description could be encrypted.
    let lists = place.list(MANIFESTS).map_err(wrong(place, MANIFESTS))?;
    if !lists.is_empty() {
        let [name, copy] = description::NAMES;
        return Err(Failure::new(format!(
            "{}: {name} and {copy} are missing beside backups; bring one of them back",
            place.name()
        )));
    }
    Description::make(place, ask)
}

fn manifest_path(number: u64) -> String {
    format!("{MANIFESTS}/{number:08}")
}

fn object_path(name: &str) -> String {
    let folder = name.get(..2).unwrap_or("00");
    format!("{OBJECTS}/{folder}/{name}")
}

#[cfg(test)]
pub(crate) mod tests;
