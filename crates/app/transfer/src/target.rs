//! Where mail goes.

use super::account::{Account, Begin};
use super::message::{Item, Message};
use super::names::Folder;
use super::outcome::Put;
use super::place::Place;
use super::state::FolderState;
use super::{maildir, mbox};
use vere_process::failure::Failure;

/// A target of mail.
pub(super) enum Target {
    Mbox(mbox::Target),
    Maildir(maildir::Target),
    Account(Box<Account>),
}

impl Target {
    pub(super) async fn open(place: Place) -> Result<Self, Failure> {
        Ok(match place {
            Place::Mbox(path) => Self::Mbox(mbox::Target::new(path)),
            Place::Maildir(path) => Self::Maildir(maildir::Target::new(path)),
            Place::Imap(remote) => Self::Account(Box::new(Account::remote(remote).await?)),
        })
    }

    /// Prepares a mailbox; returns its numbers, where the target has numbers.
    pub(super) async fn prepare(
        &mut self,
        folder: &Folder,
        known: &FolderState,
    ) -> Result<Option<Begin>, Failure> {
        match self {
            Self::Mbox(target) => target.open(folder, known.length).map(|()| None),
            Self::Maildir(target) => target.open(folder).map(|()| None),
            Self::Account(account) => account
                .prepare(folder, known.begin.is_none())
                .await
                .map(Some),
        }
    }

    /// Stores messages at the target, and returns the outcome of each.
    pub(super) async fn put(
        &mut self,
        folder: &Folder,
        batch: &mut [(Item, Message)],
    ) -> Result<Vec<Put>, Failure> {
        match self {
            Self::Mbox(target) => batch
                .iter_mut()
                .map(|(item, message)| target.put(item, message))
                .collect(),
            Self::Maildir(target) => batch
                .iter_mut()
                .map(|(item, message)| target.put(item, message))
                .collect(),
            Self::Account(account) => account.put(folder, batch).await,
        }
    }

    /// Syncs the messages stored last; returns the present length of the file, if the target is a file.
    pub(super) fn sync(&mut self) -> Result<Option<u64>, Failure> {
        match self {
            Self::Mbox(target) => target.sync().map(Some),
            Self::Maildir(target) => target.sync().map(|()| None),
            // The server acknowledged only synced messages.
            Self::Account(_) => Ok(None),
        }
    }

    /// Ends with a mailbox.
    pub(super) fn leave(&mut self) -> Result<(), Failure> {
        match self {
            Self::Mbox(target) => target.close(),
            _ => Ok(()),
        }
    }

    pub(super) async fn close(self) {
        if let Self::Account(account) = self {
            account.close().await;
        }
    }
}
