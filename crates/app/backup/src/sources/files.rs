//! Files beside the mail store: the directory, keys, certificates, settings, the register, learned data.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use vere_process::failure::Failure;
use vere_settings::{DirectoryStore, Settings};

use super::walk::{self, Found};
use crate::manifest::{PIECE_OCTETS, Plain, Root};
use crate::scratch::Scratch;
use crate::storing::Storing;

/// The copy of the database, in the scratch directory.
const COPY: &str = "directory";
/// Maximum number of reads of a changing file.
const ATTEMPTS: usize = 3;
/// Time after a read during which a change of the file may not show in the file's times, in nanoseconds.
const CLOCK_STEP: i128 = 2_000_000_000;

/// The files of one backup.
#[derive(Debug)]
pub(crate) struct Files {
    found: Found,
    /// A copy of the directory's database, in place of the database files.
    database: Option<(Root, String, Scratch)>,
}

impl Files {
    /// Finds all files, and copies the directory's database.
    ///
    /// # Errors
    /// When a directory or the database cannot be read.
    pub(crate) fn find(settings: &Settings, config: &Path) -> Result<Self, Failure> {
        let mut found = walk::find(settings, config)?;
        let mut database = None;
        if let DirectoryStore::Sqlite(path) = &settings.directory.store {
            let is_of_it = |other: &PathBuf| {
                let ends = ["", "-wal", "-shm", "-journal"];
                ends.iter().any(|end| {
                    let mut name = path.clone().into_os_string();
                    name.push(end);
                    *other == name
                })
            };
            found.retain(|_, other| !is_of_it(other));
            if path.exists() {
                let copy = Scratch::make(None)?;
                vere_disk::directory::copy_database(path, &copy.path().join(COPY))?;
                let below = path.strip_prefix(&settings.data);
                let (root, name) =
                    below.map_or((Root::Outside, path.as_path()), |name| (Root::Data, name));
                database = Some((root, name.display().to_string(), copy));
            }
        }
        Ok(Self { found, database })
    }

    /// The octets of all files.
    pub(crate) fn octets(&self) -> u64 {
        let octets = |path: &PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len());
        self.found.values().map(octets).sum()
    }

    /// Stores all files.
    ///
    /// # Errors
    /// When a file cannot be read or stored.
    pub(crate) fn store(
        &self,
        storing: &mut Storing<'_>,
        (before, before_made): (&[Plain], u64),
    ) -> Result<Vec<Plain>, Failure> {
        let known: HashMap<_, _> = before
            .iter()
            .map(|file| ((file.root, file.path.as_str()), file))
            .collect();
        let mut files = Vec::new();
        for ((root, name), path) in &self.found {
            let known = known.get(&(*root, name.as_str())).copied();
            files.extend(store_file(
                (*root, name),
                path,
                (known, before_made),
                storing,
            )?);
        }
        if let Some((root, name, copy)) = &self.database {
            files.extend(store_file(
                (*root, name),
                &copy.path().join(COPY),
                (None, 0),
                storing,
            )?);
        }
        Ok(files)
    }
}

/// Stores a file; `None` if the file was removed meanwhile.
fn store_file(
    (root, name): (Root, &str),
    path: &Path,
    (known, known_made): (Option<&Plain>, u64),
    storing: &mut Storing<'_>,
) -> Result<Option<Plain>, Failure> {
    let wrong = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(wrong)?,
    };
    let metadata = file.metadata().map_err(wrong)?;
    let mut plain = Plain {
        root,
        path: name.to_owned(),
        mode: metadata.permissions().mode() & 0o7777,
        octets: metadata.len(),
        mark: super::mark(&metadata),
        pieces: Vec::new(),
    };
    let read_at = i128::from(known_made) * 1_000_000;
    let is_same = |known: &&Plain| {
        let same = (known.mark, known.octets) == (plain.mark, plain.octets);
        same && plain.mark.changed.saturating_add(CLOCK_STEP) < read_at
    };
    match known
        .filter(is_same)
        .filter(|known| storing.has_all(&known.pieces))
    {
        Some(known) => {
            storing.reuse(known.octets);
            plain.pieces.clone_from(&known.pieces);
        }
        None => read_settled(file, metadata, path, &mut plain, storing)?,
    }
    Ok(Some(plain))
}

/// Reads a file until a read without a concurrent change; of a file in constant change, the last read is kept.
fn read_settled(
    mut file: File,
    mut metadata: Metadata,
    path: &Path,
    plain: &mut Plain,
    storing: &mut Storing<'_>,
) -> Result<(), Failure> {
    let wrong = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
    for _ in 0..ATTEMPTS {
        plain.pieces.clear();
        plain.octets = 0;
        // Octets appended meanwhile are left for the next backup.
        let mut rest = (&mut file).take(metadata.len());
        loop {
            let piece = storing.pace().read(&mut rest, PIECE_OCTETS);
            let piece = piece.map_err(wrong)?;
            if piece.is_empty() {
                break;
            }
            plain.octets += piece.len() as u64;
            plain.pieces.push(storing.piece(&piece)?);
        }
        plain.mark = super::mark(&metadata);
        let after = file.metadata().map_err(wrong)?;
        if super::mark(&after) == plain.mark {
            break;
        }
        file = match File::open(path) {
            Ok(file) => file,
            // The name went meanwhile, as when a message is moved: the octets just read are whole as of before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(wrong(error)),
        };
        metadata = file.metadata().map_err(wrong)?;
    }
    Ok(())
}
