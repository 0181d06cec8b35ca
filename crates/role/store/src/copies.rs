//! Copies of the store's log: a store at rest as the source of a copy, and copies opened, checked and read.

use std::fmt;
use std::path::Path;

use vere_control::HeldLog;
use vere_imap::date::DateTime;
use vere_ports::directory::AccountName;
use vere_settings::Settings;
use vere_store::{
    BlobId, BodyReader, CheckReport, Committed, MailboxId, Snapshot, SpecialUse, StoreError, Uid,
};

use vere_disk::log::Directory as LogDirectory;

use crate::checking::sentence;
use crate::files::{Files, FilesError};
use crate::keeper::held_log;
use crate::mail_store::MailStore;
use crate::maintenance::repair;
use crate::{convert, private};

/// A store at rest, with locked files.
pub struct Resting {
    store: MailStore,
    _files: Files,
}

impl fmt::Debug for Resting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resting").finish_non_exhaustive()
    }
}

impl Resting {
    /// Opens the store that the settings name.
    ///
    /// # Errors
    /// When the store is in use, or cannot be read.
    pub fn open(settings: &Settings) -> Result<Self, FilesError> {
        let files = Files::of(settings)?;
        let store = files.open()?;
        Ok(Self {
            store,
            _files: files,
        })
    }

    /// The log, which stays as it is.
    ///
    /// # Errors
    /// When its files cannot be examined.
    pub fn log(&self) -> Result<HeldLog, StoreError> {
        held_log(&self.store)
    }
}

/// Makes the folders of a store below a data directory, for the files of a copied log. Returns the log's folder.
///
/// # Errors
/// When the folders cannot be made.
pub fn make_folders(data: &Path) -> std::io::Result<std::path::PathBuf> {
    let log = data.join("store/log");
    private::make(&data.join("store"))?;
    private::make(&log)?;
    Ok(log)
}

/// Makes a store of a copied log: metadata from the log, and a new UIDVALIDITY for every mailbox, since clients may
/// know of mail that came after the copy.
///
/// # Errors
/// When the log cannot be read, or visibly lacks data.
pub fn adopt(data: &Path) -> Result<(), FilesError> {
    Files::lock(&data.join("store"))?.restored().map(drop)
}

/// [`adopt`] for a log with zeros in place of lost parts: keeps what `vere store repair` keeps, and returns a sentence for
/// each loss that can be named.
///
/// # Errors
/// When the log cannot be read or written.
pub fn salvage(data: &Path) -> Result<Vec<String>, FilesError> {
    Ok(repair::sentences(
        &Files::lock(&data.join("store"))?.repair(false)?,
    ))
}

/// The contents of a copy, in figures, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Accounts.
    pub accounts: u64,
    /// Messages, each reference counted.
    pub messages: u64,
    /// A sentence for each fault.
    pub findings: Vec<String>,
}

/// A message of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfMessage {
    /// Its UID.
    pub uid: u32,
    /// The UIDVALIDITY of its mailbox.
    pub uid_validity: u32,
    /// Its flags and keywords, in the notation of IMAP.
    pub flags: Vec<String>,
    /// When it arrived.
    pub date: DateTime,
    /// Its octets.
    pub size: u64,
    blob: BlobId,
    own_fields: bool,
}

/// A mailbox of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfMailbox {
    /// The name, with levels separated by `/`.
    pub name: String,
    /// The special use, such as `\Sent`.
    pub special_use: Option<&'static str>,
    /// Whether the account subscribes to it.
    pub subscribed: bool,
    id: MailboxId,
}

/// A copy of a store, opened to read from it.
pub struct Shelf {
    store: MailStore,
    reader: BodyReader<LogDirectory>,
    _files: Files,
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}

impl Shelf {
    /// Opens the copied log below a data directory; metadata are made beside it.
    ///
    /// # Errors
    /// When the log cannot be read, or visibly lacks data.
    pub fn open(data: &Path) -> Result<Self, FilesError> {
        let files = Files::lock(&data.join("store"))?;
        let store = files.open()?;
        let reader = store.body_reader();
        Ok(Self {
            store,
            reader,
            _files: files,
        })
    }

    /// Reads and compares everything.
    ///
    /// # Errors
    /// When the metadata cannot be read.
    pub fn check(&mut self) -> Result<Checked, StoreError> {
        let CheckReport {
            accounts,
            messages,
            findings,
            ..
        } = self.store.check_all()?;
        Ok(Checked {
            accounts,
            messages,
            findings: findings.iter().map(sentence).collect(),
        })
    }

    /// The mailboxes of an account; none if the store has no such account.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn mailboxes(&mut self, account: &AccountName) -> Result<Vec<ShelfMailbox>, StoreError> {
        let listed = self.store.list(account)?;
        let listed = self.safe(listed)?.into_iter();
        let mailbox = |entry: vere_store::ListEntry| {
            Some(ShelfMailbox {
                name: entry.name.as_str().to_owned(),
                special_use: entry.special_use.and_then(attribute),
                subscribed: entry.subscribed,
                id: entry.mailbox?,
            })
        };
        Ok(listed.filter_map(mailbox).collect())
    }

    /// The messages of a mailbox, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn messages(&mut self, mailbox: &ShelfMailbox) -> Result<Vec<ShelfMessage>, StoreError> {
        let snapshot = self.store.snapshot(mailbox.id)?;
        let snapshot: Snapshot = self.safe(snapshot)?;
        let message = |message: &vere_store::Message| ShelfMessage {
            uid: message.uid.get(),
            uid_validity: snapshot.status().uid_validity,
            flags: convert::flag_names(&snapshot, message),
            date: convert::time(message.internal_date),
            size: u64::from(message.size),
            blob: message.blob,
            own_fields: message.own_fields,
        };
        Ok(snapshot.iter_from(0).map(message).collect())
    }

    /// The octets of a message, with the recipient's own fields in front.
    ///
    /// # Errors
    /// When the message is damaged.
    pub fn read(
        &self,
        mailbox: &ShelfMailbox,
        message: &ShelfMessage,
    ) -> Result<Vec<u8>, StoreError> {
        let mut octets = Vec::new();
        if message.own_fields
            && let Some(uid) = Uid::new(message.uid)
        {
            octets = self.store.own_fields(mailbox.id, uid)?.render();
        }
        octets.extend(self.reader.open(message.blob)?.message()?);
        Ok(octets)
    }

    fn safe<T>(&self, committed: Committed<T>) -> Result<T, StoreError> {
        let value = committed.when(self.store.end());
        value.map_err(|_| StoreError::Failed("the store is not synced".to_owned()))
    }
}

fn attribute(special_use: SpecialUse) -> Option<&'static str> {
    let mut named = SpecialUse::NAMED.iter();
    let named = named.find(|(each, ..)| *each == special_use);
    named.map(|(.., attribute)| *attribute)
}
