//! `vere store`: asks the running store, or opens the mail store's files, while no other process uses the files.

use std::path::Path;
use std::time::Duration;

use clap::Subcommand;
use vere_ports::directory::AccountName;
use vere_settings::Settings;
use vere_store::{Reclaim, StoreError};

use crate::checking::StoreFigures;
use crate::files::Files;
use crate::mail_store::MailStore as FileStore;
use crate::search;
use crate::upkeep::ReclaimFigures;
use vere_control::{StoreProgress, StoreRequest};
use vere_parsing::Decoders;
use vere_process::outcome::Outcome;
use vere_process::wording::{counted, size};

pub mod accounts;
mod error;
pub mod mailbox;
mod owned;
mod progress;
pub(crate) mod repair;
mod resting;
mod room;

pub use crate::files::{FilesError, Trouble};
pub use crate::search::ExplainError;
pub use error::{MailboxTrouble, MaintenanceError};
use owned::owned;
use room::Room;

/// Longest time of an explained search.
const EXPLAIN_PATIENCE: Duration = Duration::from_secs(300);

/// Check and maintain the mail store; `repair`, `restored` and `compact` need a stopped system.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read everything and compare all redundant data; exit with 3 when an error is found.
    Check {
        /// Print JSON: an object with `accounts`, `mailboxes`, `messages`, `logical_octets`, `kept_messages`,
        /// `kept_octets`, `bodies`, `shared_octets`, `stored_octets`, `log_octets`, `search_index_octets` and
        /// `findings`, a list of texts.
        #[arg(long)]
        json: bool,
    },
    /// Print the amount of stored data, and the shared part.
    Stats {
        /// Print JSON: an object with `accounts`, `mailboxes`, `messages`, `logical_octets`, `kept_messages`,
        /// `kept_octets`, `bodies`, `shared_octets`, `stored_octets`, `log_octets`, `search_index_octets`,
        /// `reclaimable_octets` and `reclaimed_last`.
        #[arg(long)]
        json: bool,
    },
    /// Search a mailbox and print the source of the answer: the index, or messages that were read.
    Explain {
        /// The account, as user@example.org.
        account: AccountName,
        /// The mailbox.
        mailbox: String,
        /// The arguments of SEARCH in IMAP: 'BODY free SINCE 1-Jan-2026'.
        search: String,
    },
    /// List the accounts with mailboxes, with messages and octets, and mark accounts unknown to the directory.
    Accounts {
        /// Print JSON: a list of objects with `account`, `mailboxes`, `messages`, `octets` and `known`.
        #[arg(long)]
        json: bool,
    },
    /// Remove all mailboxes and mail of an account that is not, or no longer, in the directory.
    RemoveAccount {
        /// The account, as user@example.org.
        account: AccountName,
        /// Print the amount of mail, and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Rebuild metadata and index from the message log.
    ///
    /// If the log is damaged, salvage the readable part and list each lost message. Exits with 3 when a message is
    /// lost.
    Repair {
        /// Print the planned changes, and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON: an object with `dry_run`, `records`, `accounts`, `mailboxes`, `messages`, `from_metadata`,
        /// `mended`, `lost_messages`, `kept_lost`, `losses` and `findings`, a list of texts.
        #[arg(long)]
        json: bool,
    },
    /// Continue with a log that was restored from a backup.
    ///
    /// Rebuilds metadata and index from the log, and gives every mailbox a new UIDVALIDITY, so that clients read
    /// their mail again and take no new message for a known message.
    Restored,
    /// Free the space of messages that no mailbox holds any more.
    Compact {
        /// Skip segments whose removable part is below this percentage.
        #[arg(long, value_name = "PERCENT", default_value_t = 10)]
        dead_min: u64,
    },
}

/// Runs the command. Files that root makes belong to the owner of the data directory.
///
/// # Errors
/// When the store cannot be opened, is in use, or cannot be read.
pub fn run(command: &StoreCommand, settings: &Settings) -> Result<Outcome, MaintenanceError> {
    owned(settings, || execute(command, settings))
}

fn execute(command: &StoreCommand, settings: &Settings) -> Result<Outcome, MaintenanceError> {
    if let StoreCommand::Explain {
        account,
        mailbox,
        search,
    } = command
        && let Some(text) = ask_store(settings, account, mailbox, search)?
    {
        return Ok(Outcome::Print(text));
    }
    let folder = &settings.data.join("store");
    let files = || Files::of(settings);
    let decoders = Decoders::new(settings.limits.parse_timeout.duration()).never_put_off();
    match command {
        StoreCommand::Check { json } => {
            let report = figures(settings, folder, &decoders)?;
            let text = match *json {
                true => report.as_json(),
                false => report.counts() + &report.findings(),
            };
            Ok(Outcome::of_findings(text, report.is_wrong()))
        }
        StoreCommand::Stats { json } => {
            let report = figures(settings, folder, &decoders)?;
            let room = Room::of(report.reclaimable_octets, folder);
            Ok(Outcome::Print(match *json {
                true => room.beside(&report),
                false => report.counts() + &room.rows(),
            }))
        }
        StoreCommand::Explain {
            account,
            mailbox,
            search,
        } => {
            let files = files()?;
            let mut store = files.open()?;
            let asked = (mailbox.as_str(), search.as_str());
            let text = search::explain_alone(&mut store, folder, account, asked, &decoders)?;
            Ok(Outcome::Print(text))
        }
        StoreCommand::Accounts { json } => accounts::list(settings, *json).map(Outcome::Print),
        StoreCommand::RemoveAccount {
            account,
            dry_run: true,
            ..
        } => accounts::would_remove(settings, account)
            .map(|text| Outcome::Print(format!("{text}\n"))),
        StoreCommand::RemoveAccount { account, yes, .. } => {
            accounts::remove(settings, account, *yes).map(Outcome::Print)
        }
        StoreCommand::Repair { dry_run, json } => Ok(repair(&files()?, *dry_run, *json)?),
        StoreCommand::Restored => {
            let changes = files()?.restored()?;
            Ok(Outcome::Print(format!(
                "the metadata were made anew from {} in the log; every mailbox has a new UIDVALIDITY\n",
                counted(changes, "change", "changes")
            )))
        }
        StoreCommand::Compact { dead_min } => {
            let files = files()?;
            let saved = compact(&mut files.open()?, folder, *dead_min)?;
            Ok(Outcome::Print(format!("{} given back\n", size(saved))))
        }
    }
}

/// What a check finds in the running store, or else in the store at rest.
fn figures(
    settings: &Settings,
    folder: &Path,
    decoders: &Decoders,
) -> Result<StoreFigures, MaintenanceError> {
    let bar = progress::bar();
    let told = |done: &StoreProgress| progress::show(&bar, done);
    let socket = vere_control::store_socket(settings);
    let figures = match vere_control::check_store(&socket, &told)? {
        Some(value) => serde_json::from_value(value)?,
        None => {
            let files = Files::of(settings)?;
            resting::at_rest(&mut files.open()?, folder, decoders, &told)?
        }
    };
    bar.finish_and_clear();
    Ok(figures)
}

/// The running store's answer to a search; `None` when no store runs.
fn ask_store(
    settings: &Settings,
    account: &AccountName,
    mailbox: &str,
    search: &str,
) -> Result<Option<String>, MaintenanceError> {
    let request = StoreRequest::Explain {
        account: account.to_string(),
        mailbox: mailbox.to_owned(),
        search: search.to_owned(),
    };
    let asked = vere_control::ask_store(
        &vere_control::store_socket(settings),
        &request,
        EXPLAIN_PATIENCE,
    );
    let Some(value) = asked? else {
        return Ok(None);
    };
    Ok(Some(serde_json::from_value(value)?))
}

fn repair(files: &Files, dry_run: bool, json: bool) -> Result<Outcome, FilesError> {
    let report = files.repair(dry_run)?;
    let text = match json {
        true => repair::as_json(&report, dry_run),
        false => repair::as_text(&report, dry_run),
    };
    Ok(Outcome::of_findings(text, report.has_losses()))
}

fn compact(store: &mut FileStore, folder: &Path, dead_min: u64) -> Result<u64, StoreError> {
    let mut known = ReclaimFigures::read(folder).unwrap_or_default();
    let mut saved = 0;
    loop {
        match store.reclaim(dead_min)? {
            Reclaim::Working => {}
            Reclaim::Job(job) => {
                store.finish_reclaim(job.run())?;
            }
            Reclaim::Done(report) => {
                saved += report.saved;
                known.note(&report);
                if report.covered == 0 {
                    break;
                }
                // The log covered by snapshots is removed once the snapshots are safe.
                while let Some(job) = store.sync_job()? {
                    store.finish_sync(job.run())?;
                }
            }
        }
    }
    known.dead = store.reclaimable()?.dead;
    known.write(folder);
    Ok(saved)
}

#[cfg(test)]
mod tests;
