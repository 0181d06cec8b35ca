//! `vere x400 archive find`, `export` and `verify`, without the parsing of arguments.
//!
//! Each function takes options, a writer for the result, and a writer for notes (standard error). An error means exit
//! code 1.

mod export;
mod find;
mod tar;
mod text;
mod verify;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::ReadError;
use crate::read::Issues;

pub use export::{ExportOptions, ExportTo, ExportWhat, Exported, export};
pub use find::{FindOptions, find};
pub use verify::{VerifyOptions, verify};

/// A command failed, or found damage.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no archive.
    #[error("no archive in {}: expected a directory in which an MTA with x400.archive = \"yes\" has written", .0.display())]
    NoArchive(PathBuf),
    /// The archive cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The result cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// A file or directory of the result cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Nothing meets the conditions.
    #[error("no entry of the archive meets the conditions")]
    NothingFound,
    /// More than one entry meets the conditions.
    #[error(
        "expected one entry for standard output; found several. Name one by its id, or export to a directory or a tar file"
    )]
    Several,
    /// Entries are damaged, and were left out.
    #[error("{0} left out: damaged")]
    LeftOut(String),
    /// The archive is damaged.
    #[error("archive damaged: {0}")]
    Damaged(String),
}

/// A missing directory is no empty archive: the path may be wrong.
fn exists(folder: &Path) -> Result<(), CommandError> {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(CommandError::NoArchive(folder.to_owned())),
    }
}

/// Writes what is wrong, a line each.
fn note(issues: &Issues, notes: &mut dyn Write) -> io::Result<()> {
    for (segment, issue) in &issues.list {
        writeln!(notes, "{segment}: {issue}")?;
    }
    if issues.more > 0 {
        writeln!(notes, "{} more", text::count(issues.more, "issue"))?;
    }
    Ok(())
}
