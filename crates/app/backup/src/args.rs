//! The arguments of the commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use vere_ports::directory::AccountName;
use vere_process::failure::Failure;
use vere_units::ByteSize;

use crate::scratch::Scratch;
use crate::secret::SecretArgs;

/// `vere backup`
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BackupCommand>,
    #[command(flatten)]
    pub(crate) take: TakeArgs,
}

/// `vere backup PLACE`
#[derive(Debug, Args)]
pub(crate) struct TakeArgs {
    /// The place of the backups: a directory, or s3://BUCKET/PREFIX.
    ///
    /// Credentials, region and endpoint of S3 come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    /// AWS_REGION, AWS_ENDPOINT_URL, AWS_CA_BUNDLE. VERE_BACKUP_TIMEOUT is how long a server may be silent in a request,
    /// from 1s to 60s; the default is 30s.
    #[arg(value_name = "PLACE", required = true)]
    pub(crate) place: Option<String>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// Read and store at most this much per second, such as 20MiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) rate: Option<ByteSize>,
    /// Make no pauses: several times as fast, for a disk that nothing else needs, as of a stopped system.
    /// Deliveries beside a fast backup wait.
    #[arg(long)]
    pub(crate) fast: bool,
    /// Back up into this place although the newest backup there is of another host, or nothing is there and the last
    /// backup was made there.
    #[arg(long)]
    pub(crate) accept_place: bool,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// What is done with backups.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// List the backups of a place, with their times and sizes. Exit code 3: a list is damaged.
    List {
        #[command(flatten)]
        at: PlaceArgs,
        /// Print JSON: a list of objects with `number`, `made`, `host`, `octets`, `files` and `log_files`.
        #[arg(long)]
        json: bool,
    },
    /// Read every object of a backup, and check the mail store that it makes.
    ///
    /// The mail store is unpacked into a scratch directory, which needs as much space as the store, and removed
    /// afterwards. Exit code 3: something is damaged or missing. The next backup stores damaged objects again, as far
    /// as the system still has their content.
    Verify {
        #[command(flatten)]
        at: PlaceArgs,
        #[command(flatten)]
        which: WhichArgs,
        /// Read the objects only; do not unpack the mail store.
        #[arg(long)]
        objects: bool,
        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Remove old backups, and then the objects that no backup needs any more.
    #[command(group = clap::ArgGroup::new("kept").required(true).multiple(true).args(["keep", "keep_days"]))]
    Prune {
        #[command(flatten)]
        at: PlaceArgs,
        /// Keep this many of the newest backups.
        #[arg(long, value_name = "N")]
        keep: Option<u64>,
        /// Keep the backups of this many days, and the newest one in any case. With --keep, a backup stays if either
        /// option keeps it.
        #[arg(long, value_name = "D")]
        keep_days: Option<u64>,
        /// Print what would be removed, and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON: an object with `removed`, `kept`, `objects` and `octets`.
        #[arg(long)]
        json: bool,
    },
}

/// Where backups are.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The place of the backups: a directory, or s3://BUCKET/PREFIX.
    #[arg(value_name = "PLACE")]
    pub(crate) place: String,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// Which backup.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// The number of the backup, as `vere backup list` prints it; the default is the newest one.
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<u64>,
    /// Where the mail store is unpacked; the default is the directory for temporary files.
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
}

/// What is printed.
#[derive(Debug, Args)]
pub(crate) struct ShownArgs {
    /// Print JSON: an object with `number`, `made` and the counts: `octets`, `read_octets`, `reused_octets`,
    /// `stored_octets`, `stored_objects`, `files`, `log_files`, `encrypted`, `queued_messages` (null where no gateway
    /// answered) and `seconds` of a backup, `objects`, `octets`, `accounts`, `messages` and `findings` of a
    /// verification, `data`, `octets`, `files`, `outside`, `lost_files` and `lost_octets` (of the mail store, with
    /// --salvage), or `messages` of a restoration.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `vere restore`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["to", "account"]))]
pub struct RestoreArgs {
    #[command(flatten)]
    pub(crate) at: PlaceArgs,
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Restore everything into this data directory, which must be absent or empty.
    ///
    /// Files from outside the data directory, such as settings and certificates, go into DATA/restored.
    #[arg(long, value_name = "DATA")]
    pub(crate) to: Option<PathBuf>,
    /// Restore mail of this account into the running system, as new messages.
    #[arg(long, short = 'a', value_name = "ACCOUNT")]
    pub(crate) account: Option<AccountName>,
    #[command(flatten)]
    pub(crate) mail: MailArgs,
    /// Restore what is left where objects are damaged or missing: mail without its content and files that are not whole
    /// are left out, and named. Exit code 3: something is lost.
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Print what would be restored, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// Which mail is restored, and where it goes.
#[derive(Debug, Args)]
pub(crate) struct MailArgs {
    /// The account that receives the mail; the default is the account that had it.
    #[arg(long, value_name = "ACCOUNT", requires = "account")]
    pub(crate) to_account: Option<AccountName>,
    /// Restore only this mailbox; may be given several times.
    #[arg(long, value_name = "MAILBOX", requires = "account")]
    pub(crate) mailbox: Vec<String>,
    /// Restore only messages with this Message-ID; may be given several times.
    #[arg(long, value_name = "MESSAGE-ID", requires = "account")]
    pub(crate) message: Vec<String>,
    /// Put the mailboxes below this mailbox.
    #[arg(
        long,
        value_name = "MAILBOX",
        default_value = "Restored",
        requires = "account"
    )]
    pub(crate) into: String,
    /// Add the messages to the mailboxes that had them. A message that is still in its mailbox is then there twice; a
    /// message that an earlier restore added is not.
    #[arg(long, requires = "account", conflicts_with = "into")]
    pub(crate) in_place: bool,
}

impl WhichArgs {
    /// Makes a scratch directory.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn scratch(&self) -> Result<Scratch, Failure> {
        Scratch::make(self.scratch.as_deref())
    }
}
