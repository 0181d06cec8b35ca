//! Errors, by the caller who meets them.

use std::io;
use std::path::{Path, PathBuf};

use crate::name::EntryId;

/// An entry is not in the archive. All callers of a failed write get the same error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The archive is closed, or its thread has ended.
    #[error("the archive is closed")]
    Closed,
    /// The texts of the entry exceed [`META_OCTETS_MAX`](crate::META_OCTETS_MAX).
    #[error("expected texts of at most {max} bytes in an entry of the archive; found {found}")]
    TextsTooLong {
        /// The length of the texts with their heads.
        found: u64,
        /// The bound.
        max: u64,
    },
    /// The disk is full.
    #[error("the disk of the archive is full: {}: {said}", .path.display())]
    Full {
        /// The file or directory.
        path: PathBuf,
        /// The words of the operating system.
        said: String,
    },
    /// The disk failed in another way.
    #[error("cannot write the archive: {}: {said}", .path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The words of the operating system.
        said: String,
    },
}

impl ArchiveError {
    pub(crate) fn of(path: &Path, error: &io::Error) -> Self {
        let (path, said) = (path.to_owned(), error.to_string());
        let full = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::FileTooLarge,
        ];
        match full.contains(&error.kind()) {
            true => Self::Full { path, said },
            false => Self::Disk { path, said },
        }
    }
}

/// The archive or the audit log cannot be opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes there.
    #[error("another process writes the archive in {}", .0.display())]
    InUse(PathBuf),
    /// The operating system refused.
    #[error("cannot open {}: {source}", .path.display())]
    System {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        |source| Self::System { path, source }
    }
}

/// A reader cannot give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused to read.
    #[error("cannot read {}: {source}", .path.display())]
    System {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The archive has no such entry.
    #[error("entry {0}: expected an entry at this place of the archive; found none")]
    Missing(EntryId),
    /// The octets of the entry do not have their checksum.
    #[error("entry {0}: content damaged, its checksum differs")]
    Damaged(EntryId),
    /// The reader of the result refused.
    #[error("cannot write the result: {0}")]
    Output(#[source] io::Error),
}

impl ReadError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        |source| Self::System { path, source }
    }
}
