//! `vere store`: the mail store's files, while no other process uses the files; a running store also explains
//! searches, and lists and removes accounts.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use vere_ports::directory::AccountName;
use vere_settings::Settings;
use vere_store::{CheckReport, Finding, Reclaim, StoreError};
use vere_units::ByteSize;

use crate::files::Files;
use crate::index::SharedIndex;
use crate::mail_store::MailStore as FileStore;
use crate::search;
use crate::upkeep::ReclaimFigures;
use vere_control::StoreRequest;
use vere_parsing::Decoders;
use vere_process::outcome::Outcome;

pub mod accounts;
mod error;
pub mod mailbox;
mod repair;
mod room;

pub use crate::files::{FilesError, Trouble};
pub use crate::search::ExplainError;
pub use error::{MailboxTrouble, MaintenanceError};
use room::Room;

/// Longest time of an explained search.
const EXPLAIN_PATIENCE: Duration = Duration::from_secs(300);
/// Exit code of a command that did its work and found damage: 1 is for commands that could not.
const FINDINGS: u8 = 3;

/// Maintain the mail store's files, while the system is stopped; `explain`, `accounts` and `remove-account` at any
/// time.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read everything and compare all redundant data; exit with 3 when an error is found.
    Check {
        /// Print JSON: an object with the counts and `findings`, a list of texts.
        #[arg(long)]
        json: bool,
    },
    /// Print the amount of stored data, and the shared part.
    Stats {
        /// Print JSON: an object with the counts.
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
        /// Print JSON: an object with the counts and `findings`, a list of texts.
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

/// The exit code after damage was found, or not.
fn found(damage: bool) -> ExitCode {
    ExitCode::from(if damage { FINDINGS } else { 0 })
}

/// Runs the command.
///
/// # Errors
/// When the store cannot be opened, is in use, or cannot be read.
pub fn run(command: &StoreCommand, settings: &Settings) -> Result<Outcome, MaintenanceError> {
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
            let files = files()?;
            let report = Report::of(&mut files.open()?, folder, &decoders)?;
            let text = if *json {
                report.as_json()
            } else {
                report.counts() + &report.findings()
            };
            let wrong = report.is_wrong();
            Ok(Outcome::Report(text, found(wrong)))
        }
        StoreCommand::Stats { json } => {
            let files = files()?;
            let mut store = files.open()?;
            let report = Report::of(&mut store, folder, &decoders)?;
            let room = Room::of(&mut store, folder)?;
            Ok(Outcome::Print(if *json {
                report.with_room(&room)
            } else {
                report.counts() + &room.rows()
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
        StoreCommand::RemoveAccount { account, yes } => {
            accounts::remove(settings, account, *yes).map(Outcome::Print)
        }
        StoreCommand::Repair { dry_run, json } => Ok(repair(&files()?, *dry_run, *json)?),
        StoreCommand::Restored => {
            let changes = files()?.restored()?;
            Ok(Outcome::Print(format!(
                "the metadata were made anew from {changes} changes in the log; every mailbox has a new UIDVALIDITY\n"
            )))
        }
        StoreCommand::Compact { dead_min } => {
            let files = files()?;
            let saved = compact(&mut files.open()?, folder, *dead_min)?;
            Ok(Outcome::Print(format!(
                "{} given back\n",
                ByteSize::new(saved)
            )))
        }
    }
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
    let lost = report.has_losses();
    Ok(Outcome::Report(text, found(lost)))
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

/// The findings of a check of store and index.
struct Report {
    store: CheckReport,
    index_octets: u64,
    index_findings: Vec<String>,
}

impl Report {
    fn of(
        store: &mut FileStore,
        folder: &Path,
        decoders: &Decoders,
    ) -> Result<Self, MaintenanceError> {
        let index = SharedIndex::open(folder, store.log_id()).map_err(MaintenanceError::Index)?;
        let (index_octets, index_findings) = search::check(store, &index, decoders)?;
        Ok(Self {
            store: store.check_all()?,
            index_octets,
            index_findings,
        })
    }

    fn is_wrong(&self) -> bool {
        !(self.store.findings.is_empty() && self.index_findings.is_empty())
    }

    fn counts(&self) -> String {
        let size = ByteSize::new;
        let report = &self.store;
        let rows = [
            ("accounts", report.accounts.to_string()),
            ("mailboxes", report.mailboxes.to_string()),
            ("messages", report.messages.to_string()),
            (
                "  as clients count them",
                size(report.logical_octets).to_string(),
            ),
            ("expunged messages kept", report.kept_messages.to_string()),
            (
                "  as clients counted them",
                size(report.kept_octets).to_string(),
            ),
            ("bodies", report.bodies.to_string()),
            (
                "  each counted once",
                size(report.shared_octets).to_string(),
            ),
            (
                "  as they are stored",
                size(report.stored_octets).to_string(),
            ),
            ("log", size(report.log_octets).to_string()),
            ("search index", size(self.index_octets).to_string()),
        ];
        rows.iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<24} {value:>14}");
            text
        })
    }

    fn sentences(&self) -> Vec<String> {
        let store = self.store.findings.iter().map(sentence);
        store.chain(self.index_findings.iter().cloned()).collect()
    }

    fn findings(&self) -> String {
        match self.sentences().as_slice() {
            [] => "nothing is wrong\n".to_owned(),
            sentences => sentences.join("\n") + "\n",
        }
    }

    fn as_json(&self) -> String {
        format!("{:#}\n", self.as_value())
    }

    fn with_room(&self, room: &Room) -> String {
        let mut value = self.as_value();
        room.add_to(&mut value);
        format!("{value:#}\n")
    }

    fn as_value(&self) -> serde_json::Value {
        let report = &self.store;
        serde_json::json!({
            "accounts": report.accounts,
            "mailboxes": report.mailboxes,
            "messages": report.messages,
            "logical_octets": report.logical_octets,
            "kept_messages": report.kept_messages,
            "kept_octets": report.kept_octets,
            "bodies": report.bodies,
            "shared_octets": report.shared_octets,
            "stored_octets": report.stored_octets,
            "log_octets": report.log_octets,
            "search_index_octets": self.index_octets,
            "findings": self.sentences(),
        })
    }
}

/// A finding in words.
pub(crate) fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Unlisted { account, name } => {
            format!("{account}: the list names {name}, which is not there")
        }
        Finding::Unreachable { mailbox, messages } => {
            format!(
                "mailbox {}: in no list, {messages} messages in it",
                mailbox.0
            )
        }
        Finding::Counters { mailbox, reason } => format!("mailbox {}: {reason}", mailbox.0),
        Finding::Body {
            mailbox,
            uid,
            error,
        } => {
            format!("mailbox {}, message {uid}: {error}", mailbox.0)
        }
        Finding::Kept {
            mailbox,
            uid,
            error,
        } => {
            format!(
                "mailbox {}, expunged message {uid}: cannot be brought back: {error}",
                mailbox.0
            )
        }
        Finding::Log(damage) => format!(
            "{}: {} octets of the log, from position {} on, are not what was written \
             (`vere store repair --dry-run` says what is lost with them)",
            damage.file,
            damage.to - damage.from,
            damage.from
        ),
        Finding::Segment { file } => {
            format!("{file}: its head or its index is damaged, its records are whole")
        }
        Finding::Unread { reason } => format!("the log cannot be read: {reason}"),
    }
}

#[cfg(test)]
mod tests;
