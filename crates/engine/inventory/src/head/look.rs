//! A look into the mailbox `head` before a change: the present facts, and the key slots for further accounts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vere_ports::mail_accounts::{Answer, Fault, Request, UidRange};

use crate::format::slot::Slot;
use crate::format::volume::Facts;
use crate::format::{Encoding, FormatError, Keys, Kind, MailId, Subject, VolumeId, mail, open};
use vere_placement::accounts::{HEAD_MAILBOX, mailbox_name};

/// Mails read by a look at an account.
const READS_MAX: usize = 300;

/// A look.
#[derive(Debug)]
pub struct Looking {
    /// Accounts to be asked, the best one first.
    accounts: VecDeque<u16>,
    /// Slots that are wanted and not read yet.
    wanted: BTreeSet<MailId>,
    uid_validity: u32,
    /// Whether the account has listed its mails.
    is_listed: bool,
    unread: VecDeque<(u32, Subject)>,
    is_asked: bool,
    /// The newest facts, as soon as read.
    pub facts: Option<Facts>,
    /// The slots that were wanted, as far as read.
    pub slots: BTreeMap<MailId, Slot>,
    /// Why the last account was of no use.
    pub fault: String,
}

impl Looking {
    /// Asks the accounts in this order, until the facts and these slots are there.
    #[must_use]
    pub fn new(accounts: Vec<u16>, wanted: BTreeSet<MailId>) -> Self {
        Self {
            accounts: accounts.into(),
            wanted,
            uid_validity: 0,
            is_listed: false,
            unread: VecDeque::new(),
            is_asked: false,
            facts: None,
            slots: BTreeMap::new(),
            fault: String::new(),
        }
    }

    /// The next request, if any.
    pub fn poll(&mut self) -> Option<(u16, Request)> {
        if self.is_asked {
            return None;
        }
        let account = self.accounts.front().copied()?;
        let mailbox = mailbox_name(HEAD_MAILBOX);
        let request = if self.is_listed {
            let (uid, _) = self.unread.front()?;
            Request::Read {
                mailbox,
                uid_validity: self.uid_validity,
                uid: *uid,
                parts: Vec::new(),
            }
        } else {
            let range = UidRange {
                first: 1,
                last: None,
            };
            Request::List { mailbox, range }
        };
        self.is_asked = true;
        Some((account, request))
    }

    /// Whether everything wanted is there.
    #[must_use]
    pub fn has_all(&self) -> bool {
        self.is_listed && self.unread.is_empty() && self.wanted.is_empty()
    }

    /// Whether no account is left to ask.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.has_all() || self.accounts.is_empty()
    }

    /// The account has answered.
    pub fn answered(
        &mut self,
        answer: Result<Answer, Fault>,
        of: (VolumeId, &Keys),
        encoding: Encoding,
    ) {
        self.is_asked = false;
        match answer {
            Ok(Answer::Listed {
                uid_validity,
                mails,
                ..
            }) => {
                self.uid_validity = uid_validity;
                self.is_listed = true;
                let subjects = mails.iter().filter_map(|mail| {
                    let subject = Subject::parse(&mail.subject).ok()?;
                    (subject.volume == of.0.tag()).then_some((mail.uid, subject))
                });
                self.choose(subjects.collect());
            }
            Ok(Answer::Read(parts)) => {
                if let Some((_, subject)) = self.unread.pop_front() {
                    let read = self.read(&subject, &parts.concat(), of, encoding);
                    if let Err(error) = read {
                        self.fault = error.to_string();
                    }
                }
            }
            Ok(_) => {
                self.unread.pop_front();
            }
            Err(fault) => {
                self.fault = fault.to_string();
                self.give_up();
                return;
            }
        }
        if self.is_listed && self.unread.is_empty() && !self.wanted.is_empty() {
            self.fault = "a key slot of the list is missing".to_owned();
            self.give_up();
        }
    }

    /// The next account has its turn.
    fn give_up(&mut self) {
        self.accounts.pop_front();
        self.is_listed = false;
        self.unread.clear();
    }

    /// The newest facts come first.
    fn choose(&mut self, mut mails: Vec<(u32, Subject)>) {
        mails.retain(|(_, subject)| match subject.kind {
            Kind::Volume => self.facts.is_none(),
            Kind::Slot => self.wanted.contains(&subject.mail),
            _ => false,
        });
        mails.sort_by_key(|(uid, subject)| std::cmp::Reverse((subject.generation, *uid)));
        mails.truncate(READS_MAX);
        self.unread = mails.into();
    }

    fn read(
        &mut self,
        subject: &Subject,
        body: &[u8],
        (volume, keys): (VolumeId, &Keys),
        encoding: Encoding,
    ) -> Result<(), FormatError> {
        let body = mail::unwrap(body, encoding)?;
        if subject.kind == Kind::Slot {
            let slot = Slot::decode(&body)?;
            if slot.head.volume == volume && self.wanted.remove(&slot.head.mail) {
                self.slots.insert(slot.head.mail, slot);
            }
            return Ok(());
        }
        let opened = open(&body, keys, None)?;
        if opened.head.kind == Kind::Volume && opened.head.volume == volume {
            self.facts = Some(Facts::decode(opened.last())?);
            // Older ones need not be read.
            self.unread.retain(|(_, of)| of.kind != Kind::Volume);
        }
        Ok(())
    }
}
