//! Mail that another command has opened, such as that of a backup, as a source.

use vere_imap::date::DateTime;
use vere_ports::directory::AccountName;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use super::account::Account;
use super::args::TransferArgs;
use super::message::{Item, LineEnds, Message, Writer};
use super::names::Folder;
use super::place::ServerArgs;
use super::run::{Direction, Run};
use super::target::Target;
use super::{block_on, sessions, source, state_path};
use crate::state::State;

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

/// Where such mail goes.
#[derive(Debug)]
pub struct Way {
    /// The account that receives it.
    pub account: AccountName,
    /// Only these mailboxes; all, if there are none.
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

/// Brings mail into an account of the running system.
///
/// # Errors
/// When the transfer cannot go on; the same again continues from the record.
pub fn bring(shelved: Box<dyn Shelved>, way: Way, settings: &Settings) -> Result<Outcome, Failure> {
    let into = way.into.as_deref().unwrap_or_default();
    let path = state_path(settings, "restore", (&way.account, into), &way.identity);
    let state = State::open(&path, way.dry_run)?;
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
        let source = source::Source::Shelved(Source(shelved));
        Run::new(Direction::Import, source, target, state, args)
            .whole()
            .await
    })
}

/// Such mail as a source.
pub(super) struct Source(Box<dyn Shelved>);

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
            key: message.uid.to_string(),
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
