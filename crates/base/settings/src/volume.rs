//! A volume on mail accounts, as its file describes it.

use std::path::PathBuf;

use vere_units::{ByteSize, Span};

/// The checked description of a volume.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    /// The account with the order of changes.
    pub lead: u16,
    /// Accounts with changes and names.
    pub metadata_accounts: usize,
    /// How long the lead may be out of reach before another account becomes the lead; zero for ever.
    pub lead_patience: Span,
    /// Whether closing a file and changing names wait for the servers.
    pub strong: bool,
    /// The longest wait of a change for its commit.
    pub flush_interval: Span,
    /// How often changes of other mounts are looked for.
    pub refresh: Span,
    /// The longest time without a sync of the disk.
    pub journal_sync: Span,
    /// The longest wait of a call for the servers.
    pub call_timeout: Span,
    /// Accounts with the data before the end of a sync.
    pub sync_copies: usize,
    /// Written octets without a copy on a server, at most.
    pub unsent_max: ByteSize,
    /// Memory for content.
    pub cache_memory: ByteSize,
    /// Content on the local disk.
    pub cache_max: ByteSize,
    /// Chunks read ahead of need.
    pub ahead_max: usize,
    /// The file with the passphrase.
    pub passphrase_file: Option<PathBuf>,
    /// The key file.
    pub key_file: Option<PathBuf>,
    /// The accounts, by the order of the file; never empty.
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
    /// Connections at the same time; the provider's default where absent.
    pub connections_max: Option<usize>,
    /// Octets to the account in 24 hours; the provider's default where absent.
    pub upload_per_day: Option<ByteSize>,
    /// Octets from the account in 24 hours; the provider's default where absent.
    pub download_per_day: Option<ByteSize>,
    /// Whether mails are in base64.
    pub base64: bool,
    /// Whether octets travel compressed; absent where encoding and server decide.
    pub compress: Option<bool>,
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
