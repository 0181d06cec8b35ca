//! The measured mail stores: ours, and Dovecot, Cyrus and Courier with their formats.
//!
//! Each system runs from a separate directory with its own ports and keeps its mail there; an installed system of
//! the same kind is neither read nor touched. All systems but Courier sync acknowledged messages.

mod courier;
mod cyrus;
mod dovecot;
mod prepared;
mod unpacked;
pub(crate) mod vere;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use tempfile::TempDir;

use prepared::{DOMAIN, Ports, Prepared};
pub(crate) use prepared::{
    Files, PASSWORD, READER, RECIPIENTS, SMALL, address_of, give_to_nobody, recipients,
};

use super::imap::{Imap, ImapError};
use super::room;
use crate::peer::{OURS, PeerError, await_ready, folder, free_address, spawn};
use crate::process::{Daemon, Process, guard};

/// Longest time from the start of a system to its greeting.
const START_MAX: Duration = Duration::from_secs(60);

/// Time between SIGTERM and SIGKILL for a system.
const STOP_MAX: Duration = Duration::from_secs(20);

/// A measurable system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SystemName {
    /// Veredarius.
    Vere,
    /// Dovecot, many messages in a file.
    Mdbox,
    /// Dovecot, a file for each message.
    Maildir,
    /// Cyrus without an index: searches read the messages.
    Cyrus,
    /// Cyrus with a Xapian index of words.
    Xapian,
    /// Courier.
    Courier,
}

impl SystemName {
    /// The systems of a short run: the omitted systems take minutes to be filled.
    pub(crate) const COMMON: [Self; 3] = [Self::Vere, Self::Mdbox, Self::Maildir];

    /// The name of the system in results.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Vere => OURS,
            Self::Mdbox => "dovecot mdbox",
            Self::Maildir => "dovecot maildir",
            Self::Cyrus => "cyrus",
            Self::Xapian => XAPIAN,
            Self::Courier => "courier",
        }
    }

    /// The peculiarities of the system.
    const fn habits(self) -> Habits {
        let usual = Habits {
            prefix: "",
            has_accounts: true,
            delivers: true,
            syncs: true,
        };
        match self {
            Self::Courier => Habits {
                prefix: "INBOX.",
                has_accounts: false,
                delivers: false,
                syncs: false,
            },
            _ => usual,
        }
    }
}

/// The system that finds only words: the answers differ, and the comparison is apart.
pub(crate) const XAPIAN: &str = "cyrus xapian";

/// Peculiarities of a system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habits {
    /// Prefix of the names of all mailboxes but INBOX.
    prefix: &'static str,
    /// Whether the system has more than one account; else mailboxes stand for accounts.
    has_accounts: bool,
    /// Whether the system accepts mail by LMTP.
    pub(super) delivers: bool,
    /// Whether acknowledged messages survive a power cut: else adding messages is not compared.
    pub(super) syncs: bool,
}

/// A running system.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) name: &'static str,
    pub(crate) imap: SocketAddr,
    pub(crate) lmtp: SocketAddr,
    /// The number of each message of the large mailbox, in the order of the system.
    pub(crate) numbers: Vec<u32>,
    /// The numbers of the mailbox with the first messages only, if the system has such a mailbox.
    pub(crate) part_numbers: Vec<u32>,
    /// Whether the large mailbox has only the first messages, because the system is slow to fill.
    pub(crate) is_partial: bool,
    pub(super) habits: Habits,
    prepared: Prepared,
    daemon: Option<Daemon>,
    folder: TempDir,
}

impl System {
    /// Starts a system in a folder below `base`; `program` is ours.
    pub(crate) fn start(
        system: SystemName,
        program: &Path,
        base: &Path,
    ) -> Result<Self, PeerError> {
        let name = system.text();
        if system != SystemName::Vere && !nix::unistd::geteuid().is_root() {
            return Err(PeerError::unavailable(name, "it starts only as root"));
        }
        let folder = folder(base, "vere-bench-store-")?;
        let ports = Ports {
            imap: free_address()?,
            lmtp: free_address()?,
        };
        let own = folder.path();
        let prepared = match system {
            SystemName::Vere => vere::prepare(program, own, ports)?,
            SystemName::Mdbox => dovecot::prepare(name, "mdbox", own, ports)?,
            SystemName::Maildir => dovecot::prepare(name, "maildir", own, ports)?,
            SystemName::Cyrus => cyrus::prepare(name, false, own, ports)?,
            SystemName::Xapian => cyrus::prepare(name, true, own, ports)?,
            SystemName::Courier => courier::prepare(name, own, ports)?,
        };
        let mut system = Self {
            name,
            imap: ports.imap,
            lmtp: ports.lmtp,
            numbers: Vec::new(),
            part_numbers: Vec::new(),
            is_partial: false,
            habits: system.habits(),
            prepared,
            daemon: None,
            folder,
        };
        system.begin()?;
        Ok(system)
    }

    /// Stops the system and starts it again on the same mail.
    pub(crate) fn restart(&mut self) -> Result<(), PeerError> {
        self.end();
        self.begin()
    }

    fn begin(&mut self) -> Result<(), PeerError> {
        let daemon = spawn(&self.prepared.command, self.folder.path())?;
        let daemon = self.daemon.insert(daemon);
        let greets = || Imap::connect(self.imap).is_ok();
        await_ready(self.name, daemon, START_MAX, greets)
    }

    fn end(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.stop(STOP_MAX);
        }
    }

    /// A new connection, logged in as the owner of the mailboxes.
    pub(crate) fn login(&self) -> Result<Imap, ImapError> {
        self.login_as(READER)
    }

    /// A new connection, logged in as `user`, where the system has several accounts.
    pub(crate) fn login_as(&self, user: &str) -> Result<Imap, ImapError> {
        let mut imap = Imap::connect(self.imap)?;
        if !imap.is_authenticated {
            imap.ok(&format!("LOGIN {user}@{DOMAIN} {PASSWORD}"))?;
        }
        Ok(imap)
    }

    /// A connection with little memory in the benchmark.
    pub(crate) fn login_lean(&self) -> Result<Imap, ImapError> {
        let mut imap = Imap::connect_lean(self.imap)?;
        imap.ok(&format!("LOGIN {READER}@{DOMAIN} {PASSWORD}"))?;
        Ok(imap)
    }

    /// The name of a mailbox in the system.
    pub(crate) fn mailbox(&self, name: &str) -> String {
        format!("{}{name}", self.habits.prefix)
    }

    /// The mailbox of the account with little mail.
    pub(crate) fn small_mailbox(&self) -> String {
        self.mailbox(if self.habits.has_accounts {
            "Mail"
        } else {
            "Small"
        })
    }

    /// How the system imports messages as files, if at all.
    pub(crate) const fn files(&self) -> Option<&Files> {
        self.prepared.files.as_ref()
    }

    /// Builds the index, for a system without automatic indexing.
    pub(crate) fn index(&self) -> io::Result<()> {
        let index = self.prepared.index.as_deref();
        index.map_or(Ok(()), |command| run(command, None).map(drop))
    }

    /// Whether the index is built on command.
    pub(crate) const fn has_index_made(&self) -> bool {
        self.prepared.index.is_some()
    }

    /// The processes of the system.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let root = self.daemon.as_ref().map(Daemon::id);
        root.and_then(|root| Process::tree(root).ok())
            .unwrap_or_default()
    }

    /// User and system time of all processes of the system so far.
    pub(crate) fn cpu(&self) -> Duration {
        let account = self.daemon.as_ref().map(Daemon::account);
        account
            .and_then(|account| account.total().ok())
            .unwrap_or_default()
    }

    /// Octets of the mail with its metadata on the disk.
    pub(crate) fn disk(&self) -> io::Result<u64> {
        let mut seen = HashSet::new();
        let folders = self.prepared.mail.iter();
        folders.map(|folder| disk(folder, &mut seen)).sum()
    }

    /// Octets reserved on the disk before a write, where known.
    pub(crate) fn disk_ahead(&self) -> io::Result<Option<u64>> {
        let search = self.prepared.search.as_ref();
        let log = search.map(|search| search.with_file_name("log"));
        let log = log.filter(|_| self.name == OURS);
        log.map(|log| room::ahead(&log)).transpose()
    }

    /// Octets of the text index, if the index has a separate directory.
    pub(crate) fn index_disk(&self) -> io::Result<Option<u64>> {
        let folder = self.prepared.search.as_ref();
        folder
            .map(|folder| disk(folder, &mut HashSet::new()))
            .transpose()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command, with an optional last argument, to its end; returns the output, or the error text on failure.
pub(crate) fn run(command: &[OsString], argument: Option<&str>) -> io::Result<Vec<u8>> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program"));
    };
    let mut command = Command::new(program);
    let output = guard::output(command.args(arguments).args(argument))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim_end().lines().last().unwrap_or_default();
    Err(io::Error::other(format!("{}: {last}", program.display())))
}

/// Blocks of all files below a folder, in octets; a file that has several names counts once.
fn disk(folder: &Path, seen: &mut HashSet<u64>) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut octets = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let known = entry.metadata()?;
        octets += match known.is_dir() {
            true => disk(&entry.path(), seen)?,
            false if known.nlink() > 1 && !seen.insert(known.ino()) => 0,
            false => known.blocks() * 512,
        };
    }
    Ok(octets)
}
