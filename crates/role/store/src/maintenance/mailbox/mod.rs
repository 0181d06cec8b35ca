//! `vere mailbox`: mailboxes of an account in the running store, and expunged messages that are kept.

mod show;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use vere_control::{Expunged, StoreRequest, Undelete};
use vere_ports::directory::AccountName;
use vere_process::clock::now;
use vere_process::confirm::confirm;
use vere_process::outcome::Outcome;
use vere_settings::Settings;
use vere_units::Span;

use super::error::{MailboxTrouble, MaintenanceError};
use crate::mailboxes::{ExpungedPage, ExpungedRow, MailboxRow, PurgedPage, UndeletedPage};

/// How long the store may take for one page: an import or export may have to end before.
const PATIENCE: Duration = Duration::from_secs(120);
/// Messages that `expunged` lists, unless told otherwise.
const LISTED: usize = 1_000;

/// List mailboxes of the running system, and bring expunged messages back.
#[derive(Debug, Subcommand)]
pub enum MailboxCommand {
    /// List the mailboxes of an account, with deleted ones whose messages are kept.
    List {
        /// The account, as user@example.org.
        account: AccountName,
        /// Print JSON: a list of objects with `mailbox`, `deleted`, `special_use`, `subscribed`, `messages`,
        /// `unseen`, `octets`, `uid_validity`, `uid_next`, `highest_mod_seq`, `expunged` and `expunged_octets`.
        #[arg(long)]
        json: bool,
    },
    /// Show one mailbox.
    Show {
        /// The account, as user@example.org.
        account: AccountName,
        /// The mailbox.
        mailbox: String,
        /// Print JSON: an object with `mailbox`, `deleted`, `special_use`, `subscribed`, `messages`, `unseen`,
        /// `octets`, `uid_validity`, `uid_next`, `highest_mod_seq`, `expunged` and `expunged_octets`.
        #[arg(long)]
        json: bool,
    },
    /// List expunged messages that are kept, those of deleted mailboxes too.
    Expunged(ExpungedArgs),
    /// Bring expunged messages back, with dates and flags, as new messages.
    ///
    /// A mailbox that was deleted is created again. Exit code 3: no message matches, or the quota stopped the command
    /// before the last message.
    Undelete(UndeleteArgs),
    /// Remove expunged messages for good, after a question.
    Purge {
        /// The account, as user@example.org.
        account: AccountName,
        /// Only messages of this mailbox.
        mailbox: Option<String>,
        /// Print the amount of mail, and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// A list of expunged messages.
#[derive(Debug, Args)]
pub struct ExpungedArgs {
    /// The account, as user@example.org.
    account: AccountName,
    /// Only messages of this mailbox.
    mailbox: Option<String>,
    /// Only messages expunged within this time, such as 2h.
    #[arg(long, value_name = "TIME")]
    since: Option<Span>,
    /// The most messages to list.
    #[arg(long, default_value_t = LISTED)]
    limit: usize,
    /// Messages to skip: those of earlier pages.
    #[arg(long, default_value_t = 0)]
    skip: usize,
    /// Print JSON: a list of objects with `mailbox`, `mailbox_deleted`, `uid`, `size`, `arrived`, `expunged`,
    /// `flags`, `from`, `subject` and `message_id`.
    #[arg(long)]
    json: bool,
}

/// Messages that come back.
#[derive(Debug, Args)]
pub struct UndeleteArgs {
    /// The account, as user@example.org.
    account: AccountName,
    /// Only messages of this mailbox, also of a deleted one.
    mailbox: Option<String>,
    #[command(flatten)]
    which: Which,
    /// The mailbox that gets the messages, created if it is missing [default: the mailbox of each message].
    #[arg(long, value_name = "MAILBOX")]
    to: Option<String>,
    /// Print which messages would come back, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: an object with `dry_run`, `messages`, `octets`, `mailboxes` and `stopped`.
    #[arg(long)]
    json: bool,
}

/// Which messages come back.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Which {
    /// Messages with these UIDs, as `expunged` lists them.
    #[arg(long, value_name = "UID", value_delimiter = ',', requires = "mailbox")]
    uid: Vec<u32>,
    /// Messages with this Message-ID; may be repeated.
    #[arg(long, value_name = "ID")]
    message_id: Vec<String>,
    /// Messages expunged within this time, such as 2h.
    #[arg(long, value_name = "TIME")]
    since: Option<Span>,
    /// All messages.
    #[arg(long, conflicts_with_all = ["uid", "message_id", "since"])]
    all: bool,
}

/// Runs the command.
///
/// # Errors
/// When the store does not run, or refuses.
pub fn run(command: &MailboxCommand, settings: &Settings) -> Result<Outcome, MaintenanceError> {
    let running = Running { settings };
    match command {
        MailboxCommand::List { account, json } => {
            let rows = running.mailboxes(account)?;
            Ok(Outcome::Print(match json {
                true => show::json(&show::values(&rows)),
                false => show::list(&rows, now()),
            }))
        }
        MailboxCommand::Show {
            account,
            mailbox,
            json,
        } => {
            let rows = running.mailboxes(account)?;
            let mut rows = rows.into_iter().filter(|row| is_named(row, mailbox));
            let row = rows.next().ok_or_else(|| MailboxTrouble::Absent {
                mailbox: mailbox.clone(),
            })?;
            Ok(Outcome::Print(match json {
                true => show::json(&show::value(&row)),
                false => show::one(&row, now()),
            }))
        }
        MailboxCommand::Expunged(args) => running.expunged(args).map(Outcome::Print),
        MailboxCommand::Undelete(args) => running.undelete(args),
        MailboxCommand::Purge {
            account,
            mailbox,
            dry_run,
            yes,
        } => running.purge(account, mailbox.as_deref(), (*dry_run, *yes)),
    }
}

/// The running store.
struct Running<'a> {
    settings: &'a Settings,
}

impl Running<'_> {
    fn ask<T: DeserializeOwned>(&self, request: &StoreRequest) -> Result<T, MaintenanceError> {
        let socket = vere_control::store_socket(self.settings);
        let answer = vere_control::ask_store(&socket, request, PATIENCE)?;
        Ok(serde_json::from_value(
            answer.ok_or(MailboxTrouble::Stopped)?,
        )?)
    }

    fn mailboxes(&self, account: &AccountName) -> Result<Vec<MailboxRow>, MaintenanceError> {
        self.ask(&StoreRequest::Mailboxes {
            account: account.to_string(),
        })
    }

    fn expunged(&self, args: &ExpungedArgs) -> Result<String, MaintenanceError> {
        let mut wanted = Expunged {
            account: args.account.to_string(),
            mailbox: args.mailbox.clone(),
            since: args.since.map(since),
            ..Expunged::default()
        };
        let enough = args.skip.saturating_add(args.limit);
        let (mut rows, mut skipped): (Vec<ExpungedRow>, usize) = (Vec::new(), 0);
        let mut more = true;
        while more && skipped + rows.len() <= enough {
            let page: ExpungedPage = self.ask(&StoreRequest::Expunged(wanted.clone()))?;
            let mut found = page.messages;
            let skip = (args.skip - skipped).min(found.len());
            skipped += skip;
            rows.extend(found.drain(skip..));
            (wanted.after, more) = (page.after, page.after.is_some());
        }
        more |= rows.len() > args.limit;
        rows.truncate(args.limit);
        Ok(match args.json {
            true => show::json(&show::expunged_values(&rows)),
            false => show::expunged(&rows, now(), more.then_some(enough)),
        })
    }

    fn undelete(&self, args: &UndeleteArgs) -> Result<Outcome, MaintenanceError> {
        let mut wanted = Undelete {
            of: Expunged {
                account: args.account.to_string(),
                mailbox: args.mailbox.clone(),
                uids: args.which.uid.clone(),
                message_ids: args.which.message_id.clone(),
                since: args.which.since.map(since),
                ..Expunged::default()
            },
            to: args.to.clone(),
            dry_run: true,
        };
        let would = self.pages(wanted.clone())?;
        let is_over = |left: Option<u64>, more: u64| left.is_some_and(|left| more > left);
        if is_over(would.messages_left, would.messages) || is_over(would.octets_left, would.octets)
        {
            return Err(MailboxTrouble::Quota(show::over(&would)).into());
        }
        let done = match args.dry_run {
            true => would,
            false => {
                wanted.dry_run = false;
                self.pages(wanted)?
            }
        };
        let text = match args.json {
            true => show::json(&show::undeleted_value(&done, args.dry_run)),
            false => show::undeleted(&done, args.dry_run),
        };
        Ok(Outcome::of_findings(
            text,
            done.messages == 0 || done.stopped.is_some(),
        ))
    }

    /// All pages as one.
    fn pages(&self, mut wanted: Undelete) -> Result<UndeletedPage, MaintenanceError> {
        let mut all: Option<UndeletedPage> = None;
        loop {
            let page: UndeletedPage = self.ask(&StoreRequest::Undelete(wanted.clone()))?;
            wanted.of.after = page.after;
            let is_last = page.after.is_none();
            match &mut all {
                None => all = Some(page),
                Some(all) => all.join(page),
            }
            if is_last {
                return Ok(all.unwrap_or_default());
            }
        }
    }

    fn purge(
        &self,
        account: &AccountName,
        mailbox: Option<&str>,
        (dry_run, yes): (bool, bool),
    ) -> Result<Outcome, MaintenanceError> {
        let rows = self.mailboxes(account)?;
        let rows = rows
            .iter()
            .filter(|row| mailbox.is_none_or(|mailbox| is_named(row, mailbox)));
        let (mut messages, mut octets) = (0, 0);
        for row in rows {
            messages += row.expunged;
            octets += row.expunged_octets;
        }
        let amount = show::amount(messages, octets);
        let would = format!("{amount} of {account} could not be brought back any more");
        if dry_run {
            return Ok(Outcome::Print(would + "\n"));
        }
        if !yes && messages > 0 {
            confirm(&would)?;
        }
        let (mut messages, mut octets) = (0, 0);
        loop {
            let page: PurgedPage = self.ask(&StoreRequest::PurgeExpunged {
                account: account.to_string(),
                mailbox: mailbox.map(str::to_owned),
            })?;
            messages += page.messages;
            octets += page.octets;
            if !page.more {
                break;
            }
        }
        let amount = show::amount(messages, octets);
        Ok(Outcome::Print(format!("{amount} removed for good\n")))
    }
}

/// Whether a mailbox has a name; INBOX has it in any case.
fn is_named(row: &MailboxRow, name: &str) -> bool {
    let is_inbox = |name: &str| name.eq_ignore_ascii_case("INBOX");
    row.mailbox == name || (is_inbox(&row.mailbox) && is_inbox(name))
}

/// The time so long ago, in milliseconds since 1970.
fn since(ago: Span) -> u64 {
    now().as_millis().saturating_sub(ago.as_millis())
}

/// Pages of one command.
impl UndeletedPage {
    fn join(&mut self, page: Self) {
        self.messages += page.messages;
        self.octets += page.octets;
        self.stopped = page.stopped;
        for back in page.mailboxes {
            let known = self.mailboxes.iter_mut();
            let mut known = known.filter(|each| each.mailbox == back.mailbox);
            match known.next() {
                Some(known) => {
                    known.messages += back.messages;
                    known.octets += back.octets;
                    known.made |= back.made;
                }
                None => self.mailboxes.push(back),
            }
        }
    }
}
