//! Mailboxes for administrators: lists of mailboxes, the kept expunged messages, and the restoration of expunged messages.

mod expunged;
mod undelete;

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};
use vere_ports::directory::{AccountName, NameError, StoreError as DirectoryError};
use vere_store::{Committed, KeptMailbox, ListEntry, Status, StoreError};

use super::mail_store::MailStore;
use super::reception::Reception;
use super::steps::{at_once, attribute};

pub(crate) use expunged::{ExpungedPage, ExpungedRow, page};
#[cfg(test)]
pub(crate) use undelete::BackIn;
pub(crate) use undelete::{PurgedPage, UndeletedPage, purge, undelete};

/// Why a request about mailboxes is refused.
#[derive(Debug)]
pub(crate) enum MailboxError {
    /// The requested name is no valid account name.
    Name(NameError),
    /// Neither the directory nor the store knows the account.
    NoAccount(AccountName),
    /// The account has no mailbox of that name, and keeps none.
    NoMailbox(String),
    /// The text is no name for a mailbox.
    BadName(String),
    /// The request selects too many messages by name.
    TooMany,
    /// The store cannot be read or written.
    Store(StoreError),
    /// The directory cannot be read.
    Directory(DirectoryError),
}

impl fmt::Display for MailboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::NoAccount(account) => write!(f, "there is no account {account}"),
            Self::NoMailbox(name) => write!(f, "there is no mailbox {name:?}"),
            Self::BadName(name) => write!(
                f,
                "expected the name of a mailbox, with / between levels; found {name:?}"
            ),
            Self::TooMany => f.write_str("too many UIDs or Message-IDs in one request"),
            Self::Store(error) => error.fmt(f),
            Self::Directory(error) => error.fmt(f),
        }
    }
}

/// The display holds the texts of all causes.
impl Error for MailboxError {}

impl From<NameError> for MailboxError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<StoreError> for MailboxError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<DirectoryError> for MailboxError {
    fn from(error: DirectoryError) -> Self {
        Self::Directory(error)
    }
}

/// A mailbox, or a deleted one whose messages are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MailboxRow {
    /// Its name, or the name before the deletion.
    pub(crate) mailbox: String,
    /// When it was deleted, in milliseconds since 1970; absent for a mailbox that exists.
    pub(crate) deleted: Option<u64>,
    /// Special use, such as `Sent`.
    pub(crate) special_use: Option<String>,
    /// Whether the account subscribes to the name.
    pub(crate) subscribed: bool,
    /// Messages that clients see.
    pub(crate) messages: u64,
    /// Those of them without `\Seen`.
    pub(crate) unseen: u64,
    /// Octets of the messages that clients see.
    pub(crate) octets: u64,
    /// UIDVALIDITY; absent for a deleted mailbox, as the next two are.
    pub(crate) uid_validity: Option<u32>,
    /// UIDNEXT.
    pub(crate) uid_next: Option<u32>,
    /// HIGHESTMODSEQ.
    pub(crate) highest_mod_seq: Option<u64>,
    /// Expunged messages that are kept.
    pub(crate) expunged: u64,
    /// Octets of these.
    pub(crate) expunged_octets: u64,
}

/// Returns the mailboxes of an account, and the deleted ones that are kept.
///
/// # Errors
/// When there is no such account, or the store cannot be read.
pub(super) async fn list(
    reception: &Reception,
    account: &str,
) -> Result<Vec<MailboxRow>, MailboxError> {
    let account = known(reception, account)?;
    let asked = reception.keeper().ask(move |store| rows(store, &account));
    Ok(asked.await?)
}

/// Returns a known account.
///
/// # Errors
/// When neither the directory nor the store knows the account.
fn known(reception: &Reception, account: &str) -> Result<AccountName, MailboxError> {
    let account = AccountName::parse(account)?;
    match reception.directory().store().account(&account)? {
        Some(_) => Ok(account),
        None => Err(MailboxError::NoAccount(account)),
    }
}

fn rows(
    store: &mut MailStore,
    account: &AccountName,
) -> Result<Committed<Vec<MailboxRow>>, StoreError> {
    let kept = store.kept_mailboxes(account)?;
    let kept = at_once(store, kept)?;
    let list = store.list(account)?;
    let mut rows = Vec::new();
    for entry in at_once(store, list.clone())? {
        let Some(id) = entry.mailbox else { continue };
        let status = match store.status(id) {
            // Found and said by a check.
            Err(StoreError::NoMailbox) => continue,
            status => at_once(store, status?)?,
        };
        let kept = kept.iter().find(|kept| kept.id == id);
        rows.push(row(entry, &status, kept));
    }
    rows.extend(kept.iter().filter_map(deleted));
    Ok(list.map(|_| rows))
}

fn row(entry: ListEntry, status: &Status, kept: Option<&KeptMailbox>) -> MailboxRow {
    MailboxRow {
        mailbox: entry.name.to_string(),
        deleted: None,
        special_use: entry.special_use.and_then(attribute).map(str::to_owned),
        subscribed: entry.subscribed,
        messages: status.messages.into(),
        unseen: status.unseen.into(),
        octets: status.octets,
        uid_validity: Some(status.uid_validity),
        uid_next: Some(status.uid_next.get()),
        highest_mod_seq: Some(status.highest_mod_seq.0),
        expunged: kept.map_or(0, |kept| kept.messages),
        expunged_octets: kept.map_or(0, |kept| kept.octets),
    }
}

fn deleted(kept: &KeptMailbox) -> Option<MailboxRow> {
    Some(MailboxRow {
        mailbox: kept.name.to_string(),
        deleted: Some(kept.deleted?.as_millis()),
        special_use: kept.special_use.and_then(attribute).map(str::to_owned),
        subscribed: false,
        messages: 0,
        unseen: 0,
        octets: 0,
        uid_validity: None,
        uid_next: None,
        highest_mod_seq: None,
        expunged: kept.messages,
        expunged_octets: kept.octets,
    })
}
