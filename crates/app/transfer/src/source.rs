//! Where mail comes from.

use super::account::Account;
use super::doubts::Doubt;
use super::message::{Item, Message};
use super::names::Folder;
use super::place::Place;
use super::{maildir, mbox, shelved};
use vere_process::failure::Failure;

/// A source of mail.
pub(super) enum Source {
    Mbox(mbox::Source),
    Maildir(maildir::Source),
    Account(Box<Account>),
    Shelved(shelved::Source),
}

impl Source {
    /// Whether another command has opened the mail, such as that of a backup.
    pub(super) const fn is_shelved(&self) -> bool {
        matches!(self, Self::Shelved(_))
    }

    pub(super) async fn open(place: Place, variant: mbox::Variant) -> Result<Self, Failure> {
        Ok(match place {
            Place::Mbox(path) => Self::Mbox(mbox::Source::new(path, variant)),
            Place::Maildir(path) => Self::Maildir(maildir::Source::new(path)),
            Place::Imap(remote) => Self::Account(Box::new(Account::remote(remote).await?)),
        })
    }

    /// The mailboxes of the source.
    pub(super) fn folders(&mut self) -> Result<Vec<Folder>, Failure> {
        match self {
            Self::Mbox(source) => source.folders(),
            Self::Maildir(source) => source.folders(),
            Self::Account(account) => Ok(account.folders()),
            Self::Shelved(source) => Ok(source.folders()),
        }
    }

    /// Opens a mailbox and lists its messages.
    pub(super) async fn list(&mut self, folder: &Folder) -> Result<Vec<Item>, Failure> {
        match self {
            Self::Mbox(source) => source.open(folder),
            Self::Maildir(source) => source.open(folder),
            Self::Account(account) => account.open(folder).await,
            Self::Shelved(source) => source.open(folder),
        }
    }

    /// Reads messages of the open mailbox; `None` stands for messages removed meanwhile.
    pub(super) async fn read(&mut self, items: &[Item]) -> Result<Vec<Option<Message>>, Failure> {
        match self {
            Self::Mbox(source) => items.iter().map(|item| source.read(item)).collect(),
            Self::Maildir(source) => items.iter().map(|item| source.read(item)).collect(),
            Self::Account(account) => account.read(items).await,
            Self::Shelved(source) => items.iter().map(|item| source.read(item)).collect(),
        }
    }

    /// The messages read since the last call that may differ from the original.
    pub(super) fn doubts(&mut self) -> Vec<Doubt> {
        match self {
            Self::Mbox(_) | Self::Maildir(_) | Self::Shelved(_) => Vec::new(),
            Self::Account(account) => account.doubts(),
        }
    }

    pub(super) async fn close(self) {
        if let Self::Account(account) = self {
            account.close().await;
        }
    }
}
