//! Files of a backup brought back.

use std::cell::RefCell;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use vere_process::failure::Failure;
use vere_process::owner::Owner;
use vere_process::wording::size;

use crate::args::ShownArgs;
use crate::fault::at;
use crate::manifest::{Log, Piece, Plain};
use crate::progress;
use crate::repository::{PieceError, Repository};

/// The directory, below the data directory, of files from outside.
pub(crate) const OUTSIDE: &str = "restored";

/// Writes files of a backup.
#[derive(Debug)]
pub(crate) struct Unpack<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) bar: &'a ProgressBar,
    /// The owner of the directory, who gets the files.
    pub(crate) owner: Owner,
    /// The losses, where the rest is wanted all the same.
    pub(crate) losses: Option<RefCell<Losses>>,
}

/// What becomes of a file with a lost object.
#[derive(Debug, Clone, Copy)]
enum Hole {
    /// Zeros stand for the octets, as `vere store repair` expects of a log.
    Zeros,
    /// The file is left out.
    NoFile,
}

/// The losses of a salvage.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Octets of the mail store's log, which are zero now.
    pub(crate) log_octets: u64,
    /// Absent plain files.
    pub(crate) files: Vec<String>,
}

impl Losses {
    /// The losses of a salvage.
    pub(crate) fn noted(salvage: bool) -> Option<RefCell<Self>> {
        salvage.then(RefCell::default)
    }

    /// Whether everything came back.
    pub(crate) const fn is_empty(&self) -> bool {
        self.log_octets == 0 && self.files.is_empty()
    }

    /// The losses in words; `named` are the losses known to the repair of the mail store.
    pub(crate) fn text(&self, named: &[String]) -> String {
        let mut text = String::new();
        for file in &self.files {
            text += &format!("lost: {file}\n");
        }
        if self.log_octets > 0 {
            text += &format!(
                "lost: {} of the mail store, with mail and changes that nothing else names\n",
                size(self.log_octets)
            );
        }
        for sentence in named {
            text += &format!("lost: {sentence}\n");
        }
        text
    }
}

/// Writes the log of the mail store below a scratch directory, with a bar.
///
/// # Errors
/// When an object is damaged, or a file cannot be written.
pub(crate) fn log_alone(
    repository: &Repository,
    log: &Log,
    scratch: &Path,
    shown: &ShownArgs,
    salvage: bool,
) -> Result<Losses, Failure> {
    let pieces = log.files.iter().flat_map(|file| &file.pieces);
    let bar = progress::bar(shown, "unpack", pieces.map(|piece| piece.0).sum());
    let owner = Owner::of(scratch)?;
    let unpack = Unpack {
        repository,
        bar: &bar,
        owner,
        losses: Losses::noted(salvage),
    };
    unpack.log(log, scratch)?;
    bar.finish_and_clear();
    Ok(unpack.losses.unwrap_or_default().into_inner())
}

impl Unpack<'_> {
    /// Writes the log of the mail store below a data directory.
    ///
    /// # Errors
    /// When an object is damaged, or a file cannot be written.
    pub(crate) fn log(&self, log: &Log, data: &Path) -> Result<(), Failure> {
        let made = self
            .owner
            .act(|| vere_role_store::copies::make_folders(data));
        let folder = made.map_err(at(data))?;
        for file in &log.files {
            let is_name =
                Path::new(&file.name).components().count() == 1 && file.name.ends_with(".log");
            if !is_name {
                return Err(Failure::new(format!("{}: no file of a log", file.name)));
            }
            let path = folder.join(&file.name);
            self.file(&path, 0o600, &file.pieces, Hole::Zeros)?;
        }
        sync(&folder)
    }

    /// Writes a plain file below a data directory, and returns the path; `None` for a file that is lost.
    ///
    /// # Errors
    /// When an object is damaged, or the file cannot be written.
    pub(crate) fn plain(&self, file: &Plain, data: &Path) -> Result<Option<PathBuf>, Failure> {
        let path = file.below(data, OUTSIDE);
        let path = path.ok_or_else(|| Failure::new(format!("{}: no path of a file", file.path)))?;
        if let Some(folder) = path.parent() {
            self.owner.act(|| make_folder(folder))?;
        }
        let is_there = self.file(&path, file.mode, &file.pieces, Hole::NoFile)?;
        if let (false, Some(losses)) = (is_there, &self.losses) {
            losses.borrow_mut().files.push(file.path.clone());
        }
        Ok(is_there.then_some(path))
    }

    /// Writes a file, and returns whether it is there.
    fn file(&self, path: &Path, mode: u32, pieces: &[Piece], hole: Hole) -> Result<bool, Failure> {
        let mut options = OpenOptions::new();
        options.create_new(true).write(true).mode(0o600);
        let mut file = self.owner.act(|| options.open(path)).map_err(at(path))?;
        for piece in pieces {
            let content = match (self.repository.piece(piece), &self.losses, hole) {
                (Err(PieceError::Unanswered(failure)), ..) => return Err(failure),
                (Err(_), Some(_), Hole::NoFile) => {
                    fs::remove_file(path).map_err(at(path))?;
                    return Ok(false);
                }
                (Err(_), Some(losses), Hole::Zeros) if piece.is_valid() => {
                    losses.borrow_mut().log_octets += piece.0;
                    vec![0; piece.0 as usize]
                }
                (Err(error), ..) => {
                    return Err(Failure::new(format!(
                        "{error}; another backup may have the content (--number N), and --salvage brings back the rest"
                    )));
                }
                (Ok(content), ..) => content,
            };
            file.write_all(&content).map_err(at(path))?;
            self.bar.inc(piece.0);
        }
        // No restored file may run with the rights of a different user.
        let permissions = Permissions::from_mode(mode & 0o777);
        file.set_permissions(permissions).map_err(at(path))?;
        file.sync_all().map_err(at(path))?;
        Ok(true)
    }
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(at(folder))
}

/// Makes the names in a folder safe.
///
/// # Errors
/// When the folder cannot be synced.
pub(crate) fn sync(folder: &Path) -> Result<(), Failure> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(at(folder))
}

/// Syncs the names in a directory and in all directories below.
///
/// # Errors
/// When a folder cannot be read or synced.
pub(crate) fn sync_all(folder: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry.map_err(at(folder))?;
        if entry.file_type().map_err(at(folder))?.is_dir() {
            sync_all(&entry.path())?;
        }
    }
    sync(folder)
}
