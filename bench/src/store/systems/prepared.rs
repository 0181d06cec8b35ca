//! The directory of a system: its accounts, its owner, and the commands to run and fill the system.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The password of every account.
pub(crate) const PASSWORD: &str = "secret";

/// The user `nobody` and the group `nogroup` of Debian, which own the mail of peers.
pub(super) const NOBODY: u32 = 65_534;

/// Number of accounts for deliveries.
pub(crate) const RECIPIENTS: usize = 15;

/// The account with most of the mail.
pub(crate) const READER: &str = "reader";
/// The account with little mail in a store with much mail.
pub(crate) const SMALL: &str = "small";

/// Where a system listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) imap: SocketAddr,
    pub(super) lmtp: SocketAddr,
}

/// A mailbox that is filled with files in a directory.
#[derive(Debug, Clone)]
pub(crate) enum Files {
    /// The directories are in this Maildir.
    Maildir(PathBuf),
    /// The system prints the directory of a mailbox, and imports the files of the directory on command.
    Cyrus {
        /// Command that prints the directory of a mailbox.
        tell: Vec<OsString>,
        /// Command that imports the files of a mailbox.
        take: Vec<OsString>,
    },
}

/// A system with its directory prepared.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) command: Vec<OsString>,
    /// Directories of the mail with its metadata.
    pub(super) mail: Vec<PathBuf>,
    /// The directory of only the text index, if the index has a directory.
    pub(super) search: Option<PathBuf>,
    /// Command that indexes the mail, for a system without automatic indexing.
    pub(super) index: Option<Vec<OsString>>,
    /// How the system imports messages as files, where APPEND takes too long.
    pub(super) files: Option<Files>,
}

/// Creates a directory for the user of the peers.
pub(super) fn folder_of_nobody(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    give_to_nobody(path)
}

/// Gives a file or directory to the user of the peers.
pub(crate) fn give_to_nobody(path: &Path) -> io::Result<()> {
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY))
}

/// The domain of all accounts.
pub(super) const DOMAIN: &str = "bench.test";

/// The accounts of every system, without their domain.
pub(super) fn users() -> impl Iterator<Item = String> {
    let recipients = (1..=RECIPIENTS).map(|number| format!("r{number}"));
    [READER, SMALL]
        .map(str::to_owned)
        .into_iter()
        .chain(recipients)
}

/// The addresses for deliveries.
pub(crate) fn recipients() -> impl Iterator<Item = String> {
    (1..=RECIPIENTS).map(|number| address_of(&format!("r{number}")))
}

/// The address of an account.
pub(crate) fn address_of(user: &str) -> String {
    format!("{user}@{DOMAIN}")
}
