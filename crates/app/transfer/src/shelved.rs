//! Mail that another command has opened, such as that of a backup, as a source.

use vere_imap::date::DateTime;
use vere_process::failure::Failure;

use super::message::{Item, LineEnds, Message, Writer};
use super::names::Folder;

/// A mailbox of such mail.
#[derive(Debug, Clone)]
pub struct ShelvedMailbox {
    /// The name, with levels separated by `/`.
    pub name: String,
    /// The special use, such as `\Sent`.
    pub special_use: Option<String>,
    /// Whether its account subscribes to it.
    pub subscribed: bool,
}

/// A message of such a mailbox, before its content is read.
#[derive(Debug, Clone)]
pub struct ShelvedMessage {
    /// Its UID, the same in every run.
    pub uid: u32,
    /// The UIDVALIDITY of its mailbox: with the UID, the message is the same in every copy of a mail store.
    pub uid_validity: u32,
    /// Its flags and keywords, in the notation of IMAP.
    pub flags: Vec<String>,
    /// When it arrived.
    pub date: DateTime,
    /// Its octets.
    pub size: u64,
}

/// Mail of one account.
pub trait Shelved {
    /// The mailboxes.
    fn mailboxes(&mut self) -> Vec<ShelvedMailbox>;

    /// Opens the mailbox of this number, from 0 on, and lists its messages.
    ///
    /// # Errors
    /// When the mailbox cannot be read.
    fn open(&mut self, number: usize) -> Result<Vec<ShelvedMessage>, Failure>;

    /// Reads a message of the open mailbox.
    ///
    /// # Errors
    /// When the message is damaged.
    fn read(&mut self, uid: u32) -> Result<Vec<u8>, Failure>;
}

/// The name of a message in the record.
pub(super) fn key(uid_validity: u32, uid: u32) -> String {
    format!("{uid_validity}-{uid}")
}

/// Such mail as a source.
pub(super) struct Source(pub(super) Box<dyn Shelved>);

impl Source {
    pub(super) fn folders(&mut self) -> Vec<Folder> {
        let mailboxes = self.0.mailboxes().into_iter().enumerate();
        mailboxes
            .map(|(number, mailbox)| Folder {
                path: mailbox.name.split('/').map(str::to_owned).collect(),
                special_use: mailbox.special_use,
                subscribed: Some(mailbox.subscribed),
                number,
            })
            .collect()
    }

    pub(super) fn open(&mut self, folder: &Folder) -> Result<Vec<Item>, Failure> {
        let messages = self.0.open(folder.number)?.into_iter();
        let item = |message: ShelvedMessage| Item {
            key: key(message.uid_validity, message.uid),
            flags: message.flags,
            date: Some(message.date),
            size: message.size,
            at: u64::from(message.uid),
        };
        Ok(messages.map(item).collect())
    }

    pub(super) fn read(&mut self, item: &Item) -> Result<Option<Message>, Failure> {
        let octets = self.0.read(u32::try_from(item.at)?)?;
        let mut writer = Writer::new(LineEnds::Kept);
        writer.write(&octets)?;
        Ok(Some(writer.finish()))
    }
}
