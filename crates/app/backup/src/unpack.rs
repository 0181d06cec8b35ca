//! Files of a backup brought back.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use indicatif::ProgressBar;
use vere_process::failure::Failure;

use crate::fault::at;
use crate::manifest::{Log, Piece, Plain, Root};
use crate::repository::Repository;

/// The directory, below the data directory, of files from outside.
pub(crate) const OUTSIDE: &str = "restored";

/// Writes files of a backup.
#[derive(Debug)]
pub(crate) struct Unpack<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) bar: &'a ProgressBar,
}

impl Unpack<'_> {
    /// Writes the log of the mail store below a data directory.
    ///
    /// # Errors
    /// When an object is damaged, or a file cannot be written.
    pub(crate) fn log(&self, log: &Log, data: &Path) -> Result<(), Failure> {
        let folder = vere_role_store::copies::make_folders(data).map_err(at(data))?;
        for file in &log.files {
            let is_name =
                Path::new(&file.name).components().count() == 1 && file.name.ends_with(".log");
            if !is_name {
                return Err(Failure::new(format!("{}: no file of a log", file.name)));
            }
            self.file(&folder.join(&file.name), 0o600, &file.pieces)?;
        }
        sync(&folder)
    }

    /// Writes a plain file below a data directory, and returns the path.
    ///
    /// # Errors
    /// When an object is damaged, or the file cannot be written.
    pub(crate) fn plain(&self, file: &Plain, data: &Path) -> Result<PathBuf, Failure> {
        let path = place(file, data)?;
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        self.file(&path, file.mode, &file.pieces)?;
        Ok(path)
    }

    fn file(&self, path: &Path, mode: u32, pieces: &[Piece]) -> Result<(), Failure> {
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(at(path))?;
        for piece in pieces {
            let content = self.repository.piece(piece)?;
            file.write_all(&content).map_err(at(path))?;
            self.bar.inc(piece.0);
        }
        // No restored file may run with the rights of a different user.
        let permissions = Permissions::from_mode(mode & 0o777);
        file.set_permissions(permissions).map_err(at(path))?;
        file.sync_all().map_err(at(path))
    }
}

/// The path for a file. A tampered list cannot lead out of the data directory.
fn place(file: &Plain, data: &Path) -> Result<PathBuf, Failure> {
    let below = Path::new(&file.path);
    let (root, below) = match file.root {
        Root::Data => (data.to_owned(), below),
        Root::Aside => (data.join(OUTSIDE), below),
        Root::Outside => (data.join(OUTSIDE), below.strip_prefix("/").unwrap_or(below)),
    };
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    match below.components().all(is_plain) && below.components().next().is_some() {
        true => Ok(root.join(below)),
        false => Err(Failure::new(format!("{}: no path of a file", file.path))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::small;

    #[test]
    fn paths_of_a_list_stay_below_the_directory() {
        let manifest = small(1, "aa");
        let of = |root, path: &str| {
            let file = Plain {
                root,
                path: path.to_owned(),
                ..manifest.files[0].clone()
            };
            place(&file, Path::new("/data")).ok()
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of(Root::Data, "dkim/a.pem"), path("/data/dkim/a.pem"));
        assert_eq!(
            of(Root::Outside, "/etc/vere.toml"),
            path("/data/restored/etc/vere.toml")
        );
        for wrong in ["", "../a", "a/../../b", "/etc/passwd", "."] {
            assert_eq!(of(Root::Data, wrong), None, "{wrong}");
        }
        for wrong in ["/", "/etc/../../a", "//../a"] {
            assert_eq!(of(Root::Outside, wrong), None, "{wrong}");
        }
    }
}
