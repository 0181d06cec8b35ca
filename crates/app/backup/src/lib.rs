//! Backups of a running system, and what is restored from them: `vere backup` and `vere restore`.
//!
//! `place` is where backups lie, `seal` encrypts, `repository` has objects named by their content and a `manifest` for
//! each backup. `take` makes a backup of `sources`: the log of the mail store, held as of one moment, and all other
//! files. `unpack` brings files back, for `verify`, `whole` (a new machine) and `mail` (messages, into the running
//! system). `prune` and `list` look after the backups. docs/internals/backup.md draws the format and says what survives
//! which crash.

mod list;
mod mail;
mod manifest;
mod pace;
mod place;
mod progress;
mod prune;
mod repository;
mod seal;
mod secret;
mod sources;
mod storing;
mod take;
mod unpack;
mod verify;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use secret::SecretArgs;

/// `vere backup`
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    #[command(flatten)]
    take: Option<TakeArgs>,
}

/// `vere backup PLACE`
#[derive(Debug, Args)]
struct TakeArgs {
    #[command(flatten)]
    at: PlaceArgs,
    /// Read and store at most this much per second, such as 20MiB.
    #[arg(long, value_name = "SIZE")]
    rate: Option<vere_units::ByteSize>,
    #[command(flatten)]
    shown: ShownArgs,
}

/// What is done with backups.
#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// List the backups of a place, with their times and sizes.
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
    /// afterwards. Exit code 1: something is damaged or missing.
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
    Prune {
        #[command(flatten)]
        at: PlaceArgs,
        /// Keep this many of the newest backups.
        #[arg(long, value_name = "N", required_unless_present = "keep_days")]
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
struct PlaceArgs {
    /// The place of the backups: a directory.
    #[arg(value_name = "PLACE")]
    place: String,
    #[command(flatten)]
    secret: SecretArgs,
}

/// Which backup.
#[derive(Debug, Args)]
struct WhichArgs {
    /// The number of the backup, as `vere backup list` prints it; the default is the newest one.
    #[arg(long, value_name = "N")]
    number: Option<u64>,
    /// Where the mail store is unpacked; the default is the directory for temporary files.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

/// What is printed.
#[derive(Debug, Args)]
struct ShownArgs {
    /// Print JSON: an object with the counts.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// `vere restore`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["to", "account"]))]
pub struct RestoreArgs {
    #[command(flatten)]
    at: PlaceArgs,
    #[command(flatten)]
    which: WhichArgs,
    /// Restore everything into this data directory, which must be absent or empty.
    ///
    /// Files from outside the data directory, such as settings and certificates, go into DATA/restored.
    #[arg(long, value_name = "DATA")]
    to: Option<PathBuf>,
    /// Restore mail of this account into the running system, as new messages.
    #[arg(long, short = 'a', value_name = "ACCOUNT")]
    account: Option<vere_ports::directory::AccountName>,
    #[command(flatten)]
    mail: MailArgs,
    /// Print what would be restored, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shown: ShownArgs,
}

/// Which mail is restored, and where it goes.
#[derive(Debug, Args)]
struct MailArgs {
    /// The account that receives the mail; the default is the account that had it.
    #[arg(long, value_name = "ACCOUNT", requires = "account")]
    to_account: Option<vere_ports::directory::AccountName>,
    /// Restore only this mailbox; may be given several times.
    #[arg(long, value_name = "MAILBOX", requires = "account")]
    mailbox: Vec<String>,
    /// Restore only messages with this Message-ID; may be given several times.
    #[arg(long, value_name = "MESSAGE-ID", requires = "account")]
    message: Vec<String>,
    /// Put the mailboxes below this mailbox.
    #[arg(
        long,
        value_name = "MAILBOX",
        default_value = "Restored",
        requires = "account"
    )]
    into: String,
    /// Add the messages to the mailboxes from which they came. Messages that are still there are then there twice.
    #[arg(long, requires = "account", conflicts_with = "into")]
    in_place: bool,
}

/// The settings of a running system, and their file.
pub type Loaded = (PathBuf, Arc<Settings>);

/// Runs `vere backup`; `load` gives the settings.
///
/// # Errors
/// When a backup cannot be made, read or removed.
pub fn backup(
    args: &BackupArgs,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Outcome, Failure> {
    match (&args.command, &args.take) {
        (Some(BackupCommand::List { at, json }), _) => list::run(at, *json),
        (
            Some(BackupCommand::Verify {
                at,
                which,
                objects,
                shown,
            }),
            _,
        ) => verify::run(at, which, *objects, shown),
        (
            Some(BackupCommand::Prune {
                at,
                keep,
                keep_days,
                dry_run,
                json,
            }),
            _,
        ) => prune::run(at, (*keep, *keep_days), *dry_run, *json),
        (None, Some(take)) => {
            let (config, settings) = load()?;
            take::run(take, &config, &settings)
        }
        (None, None) => Err(Failure::new("expected a place for the backup; found none")),
    }
}

/// Runs `vere restore`; `load` gives the settings of the running system, which mail alone needs.
///
/// # Errors
/// When the backup cannot be read, or its files not be written.
pub fn restore(
    args: &RestoreArgs,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Outcome, Failure> {
    match (&args.to, &args.account) {
        (Some(data), _) => whole::run(args, data),
        (None, Some(account)) => mail::run(args, account, &load()?.1),
        (None, None) => Err(Failure::new("expected --to or --account; found neither")),
    }
}

impl WhichArgs {
    /// Makes a scratch directory.
    ///
    /// # Errors
    /// When it cannot be made.
    fn scratch(&self) -> Result<tempfile::TempDir, Failure> {
        let parent = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let made = tempfile::Builder::new().prefix("vere-").tempdir_in(&parent);
        made.map_err(|error| Failure::new(format!("{}: {error}", parent.display())))
    }
}

/// Adds the path to an error of the system.
fn at(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::new(format!("{}: {error}", path.display()))
}
