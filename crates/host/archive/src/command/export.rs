//! `vere x400 archive export`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use vere_units::Timestamp;

use super::text::count;
use super::{CommandError, exists, note, tar};
use crate::error::ReadError;
use crate::name::EntryId;
use crate::read::{self, Found, Page, Query};

/// What is exported.
#[derive(Debug, Clone)]
pub enum ExportWhat {
    /// One entry.
    Entry(EntryId),
    /// All entries that meet the conditions.
    Query(Box<Query>, Page),
}

/// Where to.
#[derive(Debug, Clone)]
pub enum ExportTo {
    /// One entry, as it came, to standard output.
    Output,
    /// A file each in a directory, which is made if it is missing. Files that exist stay as they are.
    Folder(PathBuf),
    /// A tar stream to standard output, with a file each.
    Tar,
}

/// The options of `export`.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The directory of the archive.
    pub folder: PathBuf,
    /// What is exported.
    pub what: ExportWhat,
    /// Where to.
    pub to: ExportTo,
}

/// What was exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Entries written.
    pub written: u64,
    /// Octets of these entries.
    pub octets: u64,
    /// Entries whose files existed already.
    pub existing: u64,
    /// Entries left out, as their octets are damaged.
    pub damaged: u64,
    /// Entries left out, as a tar stream cannot hold them.
    pub too_large: u64,
}

/// Exports entries, octets as they came. Each entry is compared with its checksum before its first octet is written.
/// Files have the names `DAY-HHMM-OFFSET-TRACE.p1`.
///
/// # Errors
///
/// There is no archive; nothing was found; files cannot be read or written; entries were left out, after all others
/// were written.
pub fn export(
    options: &ExportOptions,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<Exported, CommandError> {
    exists(&options.folder)?;
    let mut exporting = Exporting {
        archive: &options.folder,
        to: &options.to,
        out,
        notes,
        exported: Exported::default(),
    };
    if let ExportTo::Folder(folder) = &options.to {
        fs::create_dir_all(folder).map_err(|source| CommandError::File {
            path: folder.clone(),
            source,
        })?;
    }
    match &options.what {
        ExportWhat::Entry(id) => {
            let mut name = None;
            read::describe(&options.folder, *id, |found| name = Some(Name::of(found)))?;
            let name = name.ok_or(ReadError::Missing(*id))?;
            exporting.one(&name)?;
        }
        ExportWhat::Query(query, page) => exporting.all(query, page)?,
    }
    exporting.finish()
}

/// An entry, and the name of its output file.
#[derive(Debug, Clone)]
struct Name {
    id: EntryId,
    file: String,
    at: Timestamp,
    octets: u64,
}

impl Name {
    fn of(found: &Found<'_>) -> Self {
        Self {
            id: found.id,
            file: format!("{}-{}.p1", found.id.file_stem(), found.fields.trace),
            at: found.fields.at,
            octets: found.octets,
        }
    }
}

struct Exporting<'a> {
    archive: &'a Path,
    to: &'a ExportTo,
    out: &'a mut dyn Write,
    notes: &'a mut dyn Write,
    exported: Exported,
}

impl Exporting<'_> {
    fn all(&mut self, query: &Query, page: &Page) -> Result<(), CommandError> {
        let archive = self.archive;
        let summary = if matches!(self.to, ExportTo::Output) {
            let mut names = Vec::new();
            let two = Page {
                limit: page.limit.min(2),
                ..page.clone()
            };
            let summary = read::find(archive, query, &two, |found| {
                names.push(Name::of(found));
                Ok(())
            })?;
            match names.as_slice() {
                [name] => self.one(name)?,
                [] => {}
                _ => return Err(CommandError::Several),
            }
            summary
        } else {
            let mut failed = None;
            let summary = read::find(archive, query, page, |found| {
                self.one(&Name::of(found)).map_err(|error| {
                    failed = Some(error);
                    io::Error::other("the export has failed")
                })
            });
            if let Some(error) = failed {
                return Err(error);
            }
            summary?
        };
        note(&summary.issues, self.notes)?;
        match summary.found {
            0 => Err(CommandError::NothingFound),
            _ => Ok(()),
        }
    }

    fn one(&mut self, name: &Name) -> Result<(), CommandError> {
        match self.to {
            ExportTo::Output => self.copied(name, None),
            ExportTo::Folder(folder) => self.file(name, folder),
            ExportTo::Tar => self.member(name),
        }
    }

    /// Copies the octets of an entry to a file, or to the output.
    fn copied(&mut self, name: &Name, file: Option<&mut dyn Write>) -> Result<(), CommandError> {
        let out: &mut dyn Write = match file {
            Some(file) => file,
            None => self.out,
        };
        match read::copy_content(self.archive, name.id, out) {
            Ok(octets) => {
                self.exported.written += 1;
                self.exported.octets += octets;
                Ok(())
            }
            Err(error @ (ReadError::Damaged(_) | ReadError::Missing(_))) => {
                self.exported.damaged += 1;
                Ok(writeln!(self.notes, "{error}")?)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn file(&mut self, name: &Name, folder: &Path) -> Result<(), CommandError> {
        let path = folder.join(&name.file);
        let failed = |source| CommandError::File {
            path: path.clone(),
            source,
        };
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(&path);
        let file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.exported.existing += 1;
                return Ok(());
            }
            other => other.map_err(failed)?,
        };
        let before = self.exported.written;
        let mut file: BufWriter<File> = BufWriter::new(file);
        let copied = self.copied(name, Some(&mut file));
        let ended = copied.and_then(|()| file.flush().map_err(failed));
        if ended.is_err() || self.exported.written == before {
            // No half a message under a name that says that it is whole.
            fs::remove_file(&path).map_err(failed)?;
        }
        ended
    }

    fn member(&mut self, name: &Name) -> Result<(), CommandError> {
        if name.octets > tar::SIZE_MAX {
            self.exported.too_large += 1;
            writeln!(self.notes, "entry {}: too large for a tar file", name.id)?;
            return Ok(());
        }
        // The head of a member cannot be taken back.
        if !matches!(read::is_content_sound(self.archive, name.id), Ok(true)) {
            self.exported.damaged += 1;
            writeln!(self.notes, "{}", ReadError::Damaged(name.id))?;
            return Ok(());
        }
        tar::head(&name.file, name.octets, name.at, self.out)?;
        let octets = read::copy_content(self.archive, name.id, self.out)?;
        self.exported.written += 1;
        self.exported.octets += octets;
        Ok(tar::pad(octets, self.out)?)
    }

    fn finish(self) -> Result<Exported, CommandError> {
        if matches!(self.to, ExportTo::Tar) {
            tar::end(self.out)?;
        }
        self.out.flush()?;
        let exported = self.exported;
        if !matches!(self.to, ExportTo::Output) {
            write!(self.notes, "{} written", count(exported.written, "entry"))?;
            if exported.existing > 0 {
                write!(
                    self.notes,
                    ", {} already existed",
                    count(exported.existing, "file")
                )?;
            }
            writeln!(self.notes)?;
        }
        let left_out = exported.damaged + exported.too_large;
        match left_out {
            0 => Ok(exported),
            _ => Err(CommandError::LeftOut(count(left_out, "entry"))),
        }
    }
}
