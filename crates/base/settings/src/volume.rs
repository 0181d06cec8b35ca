//! A volume on mail accounts, as its file describes it.

use std::path::PathBuf;

use vere_units::{ByteSize, Span};

/// The checked description of a volume.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    /// The account that decides the order of changes.
    pub lead: u16,
    /// Whether closing a file and changing names wait for the servers.
    pub strong: bool,
    /// The longest time for which a change waits for its commit.
    pub flush_interval: Span,
    /// The longest time for which a change is not on the disk.
    pub journal_sync: Span,
    /// The longest time for which a call waits for the servers.
    pub call_timeout: Span,
    /// Accounts of a group that keep data before a sync ends.
    pub sync_copies: usize,
    /// Written octets that no server has, at most.
    pub unsent_max: ByteSize,
    /// Memory for content that was read.
    pub cache_memory: ByteSize,
    /// Chunks read ahead of need.
    pub ahead_max: usize,
    /// The file with the passphrase.
    pub passphrase_file: Option<PathBuf>,
    /// The key file.
    pub key_file: Option<PathBuf>,
    /// The accounts, by the order of the file; at least one.
    pub accounts: Vec<VolumeAccount>,
}

/// A mail account of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeAccount {
    /// The number in the volume.
    pub number: u16,
    /// User and server, as `imaps://USER@HOST:PORT/`.
    pub url: String,
    /// The proof of the user.
    pub secret: AccountSecret,
    /// Further certificates to trust.
    pub ca: Option<PathBuf>,
    /// Whether `imap://` goes without TLS.
    pub clear: bool,
    /// Connections at the same time.
    pub connections_max: usize,
    /// Whether mails are in base64.
    pub base64: bool,
    /// The group of accounts with equal data.
    pub group: u16,
}

/// Where the proof of a user is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountSecret {
    /// The first line of a file is the password.
    PasswordFile(PathBuf),
    /// A program prints the password.
    PasswordCommand(Vec<String>),
    /// A program prints an access token.
    TokenCommand(Vec<String>),
}
