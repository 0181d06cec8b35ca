//! `vere restore --account`: mail of a backup, as new messages of the running system.
//!
//! The mail store of the backup is unpacked and opened beside the running store; messages go through the socket of
//! `vere import`, with the same record of finished steps. The record counts for all backups of a mail store: a message is
//! the same message in each of them, known by UIDVALIDITY and UID.

use std::collections::HashSet;

use vere_ports::directory::AccountName;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_role_store::copies::{Shelf, ShelfMailbox, ShelfMessage};
use vere_settings::Settings;
use vere_transfer::{Shelved, ShelvedMailbox, ShelvedMessage, Way};

use crate::args::RestoreArgs;
use crate::manifest::Manifest;
use crate::place::Use;
use crate::repository::Repository;
use crate::scratch::Scratch;
use crate::unpack::log_alone;

/// Restores mail.
///
/// # Errors
/// When the backup has no such mail, or the running system does not accept the mail.
pub(crate) fn run(
    args: &RestoreArgs,
    account: &AccountName,
    settings: &Settings,
) -> Result<Outcome, Failure> {
    let (manifest, scratch) = unpacked(args)?;
    let mut shelf = Shelf::open(scratch.path())?;
    let mut mailboxes = shelf.mailboxes(account)?;
    if mailboxes.is_empty() {
        return Err(Failure::new(format!("the backup has no mail of {account}")));
    }
    let to = args.mail.to_account.as_ref().unwrap_or(account);
    if !args.mail.in_place && args.mail.mailbox.is_empty() && to == account {
        leave_out_restored(&mut mailboxes, &args.mail.into);
    }
    let way = Way {
        account: to.clone(),
        only: args.mail.mailbox.clone(),
        into: (!args.mail.in_place).then(|| args.mail.into.clone()),
        dry_run: args.dry_run,
        quiet: args.shown.quiet,
        identity: identity(&manifest, account, &args.mail.message),
    };
    let wanted = args.mail.message.iter().map(|id| plain(id)).collect();
    let mut shelved = Mail {
        shelf,
        mailboxes,
        messages: Vec::new(),
        open: 0,
        wanted,
    };
    shelved.leave_out()?;
    vere_transfer::bring(Box::new(shelved), way, settings)
}

/// Unpacks the mail store of a backup. The place is free again afterwards: the transfer may take hours, and a backup
/// may be due meanwhile.
fn unpacked(args: &RestoreArgs) -> Result<(Manifest, Scratch), Failure> {
    let ask = || args.at.secret.get();
    let repository = Repository::open(&args.at.place, Use::Reading, &ask)?;
    let manifest = repository.chosen(args.which.number)?;
    let Some(log) = &manifest.log else {
        return Err(Failure::new("the backup has no mail store"));
    };
    let scratch = args.which.scratch()?;
    let losses = log_alone(&repository, log, scratch.path(), &args.shown, args.salvage)?;
    if losses.log_octets > 0 {
        let salvaged = vere_role_store::copies::salvage(scratch.path())?;
        tracing::warn!("{}", losses.text(&salvaged).trim_end());
    }
    Ok((manifest, scratch))
}

/// Equal for each run of the same restore, also from a newer backup of the same mail store: a run continues where an
/// earlier run ended. Messages are known by UIDVALIDITY and UID.
fn identity(manifest: &Manifest, account: &AccountName, messages: &[String]) -> String {
    let log = manifest.log.as_ref().map_or("", |log| log.id.as_str());
    format!("backup:{log}:{account}:{}", messages.join(" "))
}

/// Leaves out the mailboxes of an earlier restore, which a newer backup has, too.
fn leave_out_restored(mailboxes: &mut Vec<ShelfMailbox>, into: &str) {
    mailboxes.retain(|mailbox| {
        let below = mailbox.name.strip_prefix(into);
        !below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    });
}

/// A Message-ID without the brackets.
fn plain(id: &str) -> String {
    id.trim()
        .trim_start_matches('<')
        .trim_end_matches('>')
        .to_owned()
}

/// Mail of an account of the backup.
struct Mail {
    shelf: Shelf,
    mailboxes: Vec<ShelfMailbox>,
    messages: Vec<ShelfMessage>,
    open: usize,
    /// The wanted Message-IDs; if empty, all messages are wanted.
    wanted: HashSet<String>,
}

impl Mail {
    fn mailbox(&self, number: usize) -> Result<&ShelfMailbox, Failure> {
        let mailbox = self.mailboxes.get(number);
        mailbox.ok_or_else(|| Failure::new("there is no such mailbox"))
    }

    /// Leaves out the mailboxes without a wanted message: a restore would create empty mailboxes.
    fn leave_out(&mut self) -> Result<(), Failure> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let mut with_some = Vec::new();
        for number in 0..self.mailboxes.len() {
            if !self.open(number)?.is_empty() {
                with_some.push(self.mailbox(number)?.clone());
            }
        }
        if with_some.is_empty() {
            return Err(Failure::new(
                "the backup has no message with this Message-ID",
            ));
        }
        self.mailboxes = with_some;
        Ok(())
    }

    fn is_wanted(&self, mailbox: &ShelfMailbox, message: &ShelfMessage) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        // A damaged message has no readable Message-ID.
        let octets = self.shelf.read(mailbox, message).unwrap_or_default();
        let mut ids = vere_mime::fields(&octets).filter(|field| field.is("Message-ID"));
        ids.any(|id| {
            let id = vere_mime::unfold(id.value);
            self.wanted.contains(&plain(&String::from_utf8_lossy(&id)))
        })
    }
}

impl Shelved for Mail {
    fn mailboxes(&mut self) -> Vec<ShelvedMailbox> {
        let mailbox = |mailbox: &ShelfMailbox| ShelvedMailbox {
            name: mailbox.name.clone(),
            special_use: mailbox.special_use.map(str::to_owned),
            subscribed: mailbox.subscribed,
        };
        self.mailboxes.iter().map(mailbox).collect()
    }

    fn open(&mut self, number: usize) -> Result<Vec<ShelvedMessage>, Failure> {
        let mailbox = self.mailbox(number)?.clone();
        let mut messages = self.shelf.messages(&mailbox)?;
        messages.retain(|message| self.is_wanted(&mailbox, message));
        let shelved = |message: &ShelfMessage| ShelvedMessage {
            uid: message.uid,
            uid_validity: message.uid_validity,
            flags: message.flags.clone(),
            date: message.date,
            size: message.size,
        };
        let all = messages.iter().map(shelved).collect();
        (self.messages, self.open) = (messages, number);
        Ok(all)
    }

    fn read(&mut self, uid: u32) -> Result<Vec<u8>, Failure> {
        let mailbox = self.mailbox(self.open)?;
        let place = self
            .messages
            .binary_search_by_key(&uid, |message| message.uid);
        let message = place.ok().and_then(|place| self.messages.get(place));
        let message = message.ok_or_else(|| Failure::new("there is no such message"))?;
        Ok(self.shelf.read(mailbox, message)?)
    }
}
