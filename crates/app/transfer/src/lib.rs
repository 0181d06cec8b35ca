//! Mail from other systems and to other systems: `vere import` and `vere export`.
//!
//! One side is always an account of our own store, reached by IMAP over its socket (`link`,
//! `account`), so that the store need not stop and everything goes the way of every other session. The other
//! is an mbox, a Maildir or another IMAP account (`place`). Messages keep their octets, flags and dates;
//! `state` holds what was done.

mod account;
mod args;
mod bodies;
mod doubts;
mod exact;
mod listing;
#[cfg(test)]
mod made_up;
mod mailboxes;
mod maildir;
mod mbox;
mod message;
mod names;
mod outcome;
mod place;
mod reading;
mod run;
mod sessions;
mod shelved;
mod source;
mod state;
mod target;

use std::path::{Path, PathBuf};

use clap::Args;
use vere_ports::directory::AccountName;
use vere_settings::Settings;

pub use args::TransferArgs;
pub use mbox::Variant;
pub use place::ServerArgs;
pub use reading::{Origin, Seen, each_message};
pub use shelved::{Shelved, ShelvedMailbox, ShelvedMessage};

use account::Account;
use place::Place;
use run::{Direction, Run};
use source::Source;
use state::State;
use target::Target;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::owner::Owner;

/// `vere import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    common: TransferArgs,
    /// Quoting of lines that begin with `From ` in mbox files.
    #[arg(long, value_enum, default_value_t)]
    mbox: Variant,
    /// The source of the mail: mbox:PATH (a file, or a directory of files), maildir:PATH, imaps://USER@HOST,
    /// imap://USER@HOST (with STARTTLS); HOST may be HOST:PORT.
    source: String,
}

/// `vere export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    common: TransferArgs,
    /// The target of the mail: mbox:PATH (a directory for the files), maildir:PATH, imaps://USER@HOST,
    /// imap://USER@HOST (with STARTTLS); HOST may be HOST:PORT.
    target: String,
}

/// Imports mail into an account.
///
/// # Errors
/// When the transfer cannot go on; the same command continues from the record.
pub fn import(args: ImportArgs, settings: &Settings) -> Result<Outcome, Failure> {
    let place = Place::parse(&args.source, &args.common.server)?;
    let state = open_state(&args.common, settings, "import", &place)?;
    let socket = vere_control::store_socket(settings);
    block_on(async {
        let own = sessions::local(&socket, &args.common.account.to_string()).await?;
        let target = Target::Account(Box::new(Account::own(own).await?));
        let source = Source::open(place, args.mbox).await?;
        Run::new(Direction::Import, source, target, state, args.common)
            .whole()
            .await
    })
}

/// Exports mail from an account.
///
/// # Errors
/// As [`import`].
pub fn export(args: ExportArgs, settings: &Settings) -> Result<Outcome, Failure> {
    // A directory that does not exist yet cannot be inspected.
    let place = Place::parse(&args.target, &args.common.server)?;
    let state = open_state(&args.common, settings, "export", &place)?;
    let socket = vere_control::store_socket(settings);
    block_on(async {
        let own = sessions::local(&socket, &args.common.account.to_string()).await?;
        let source = Source::Account(Box::new(Account::own(own).await?));
        let target = Target::open(place).await?;
        Run::new(Direction::Export, source, target, state, args.common)
            .whole()
            .await
    })
}

/// Where mail goes that another command has opened.
#[derive(Debug)]
pub struct Way {
    /// The account that receives it.
    pub account: AccountName,
    /// The mailboxes to transfer; an empty list stands for all mailboxes.
    pub only: Vec<String>,
    /// The mailbox below which all go.
    pub into: Option<String>,
    /// Whether nothing is changed.
    pub dry_run: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
    /// The source, by the same text in every run: a repeated run brings what is missing.
    pub identity: String,
}

/// Brings mail that another command has opened into an account of the running system.
///
/// # Errors
/// When the transfer cannot go on; the same again continues from the record.
pub fn bring(shelved: Box<dyn Shelved>, way: Way, settings: &Settings) -> Result<Outcome, Failure> {
    let into = way.into.as_deref().unwrap_or_default();
    let path = state_path(settings, "restore", (&way.account, into), &way.identity);
    let state = own_state(settings, &path, way.dry_run)?;
    let socket = vere_control::store_socket(settings);
    let args = TransferArgs {
        account: way.account,
        only: way.only,
        into: way.into,
        dry_run: way.dry_run,
        state: None,
        quiet: way.quiet,
        server: ServerArgs::default(),
    };
    block_on(async {
        let own = sessions::local(&socket, &args.account.to_string()).await?;
        let target = Target::Account(Box::new(Account::own(own).await?));
        let source = Source::Shelved(shelved::Source(shelved));
        Run::new(Direction::Import, source, target, state, args)
            .whole()
            .await
    })
}

fn block_on(work: impl Future<Output = Result<Outcome, Failure>>) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

fn open_state(
    args: &TransferArgs,
    settings: &Settings,
    direction: &str,
    place: &Place,
) -> Result<State, Failure> {
    if let Some(path) = &args.state {
        return State::open(path, args.dry_run);
    }
    let into = args.into.as_deref().unwrap_or_default();
    let place = place.identity();
    let path = state_path(settings, direction, (&args.account, into), &place);
    own_state(settings, &path, args.dry_run)
}

/// Opens a record below the data directory, which belongs to the owner of the directory, also if root runs the command.
fn own_state(settings: &Settings, path: &Path, dry_run: bool) -> Result<State, Failure> {
    match Owner::of(&settings.data) {
        Ok(owner) => owner.act(|| State::open(path, dry_run)),
        Err(_) => State::open(path, dry_run),
    }
}

/// The file that records transferred messages, named by direction, account, target and place.
fn state_path(
    settings: &Settings,
    direction: &str,
    (account, into): (&AccountName, &str),
    place: &str,
) -> PathBuf {
    let what = format!("{direction}\n{account}\n{into}\n{place}");
    let name = blake3::hash(what.as_bytes()).to_hex();
    let folder = settings.data.join("transfers");
    folder.join(format!("{direction}-{}", &name[..16]))
}
