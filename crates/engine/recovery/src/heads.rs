//! Mailbox `head` of every account at hand: listed, its slots read, and the newest facts looked for.

use std::collections::{BTreeMap, HashMap, VecDeque};

use vere_ports::mail_accounts::{
    AccountId, Answer, Fault, Listed, Request, RequestId, UidRange, Urgency,
};

use super::facts::{Authentic, Recovered, RecoveryError, knows_slot, read};
use super::slots::{FoundSlot, Slots, Work};
use crate::format::slot::{Slot, SlotKeys, SlotSecret};
use crate::format::{Encoding, FormatError, Head, Kind, MAIL_OCTETS_MAX, Subject, mail};
use crate::volume::{Notice, OpenStep};

/// The mailbox of slots and facts.
const HEAD_MAILBOX: &str = "head";
/// Mails of a kind that are read from an account; a person who floods an account makes a recovery no longer than that.
const READS_MAX: usize = 256;
/// Opened slots that a mount tries: each takes a look at the log.
const CANDIDATES_MAX: usize = 8;
/// Octets of the longest slot as an account keeps the mail: 1,024 keys in base64.
const SLOT_SIZE_MAX: u32 = 64 << 10;
/// Octets of the longest mail with facts: base64 has 4 octets for 3, and line ends.
const FACTS_SIZE_MAX: u32 = (MAIL_OCTETS_MAX as u32).saturating_mul(3) / 2;

/// A mail of the mailbox.
#[derive(Debug, Clone, Copy)]
struct Mail {
    uid: u32,
    subject: Subject,
}

/// Mailbox `head` of an account.
#[derive(Debug, Default)]
struct Shelf {
    uid_validity: u32,
    slots: VecDeque<Mail>,
    /// The newest claim first.
    facts: VecDeque<Mail>,
    newest: Option<Authentic>,
    fault: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    List,
    Slot(Mail),
    Facts(Mail),
}

/// A recovery under way.
#[derive(Debug)]
pub struct Recovery {
    tag: u32,
    shelves: BTreeMap<AccountId, Shelf>,
    slots: Slots,
    steps: VecDeque<OpenStep>,
    asked: HashMap<RequestId, (AccountId, Asked)>,
    last_id: u64,
    /// Mails read, and mails known to be read.
    progress: (usize, usize),
}

impl Recovery {
    /// Begins with the accounts at hand. The tag is that of the folder.
    #[must_use]
    pub fn new(accounts: impl IntoIterator<Item = AccountId>, tag: u32) -> Self {
        let mut recovery = Self {
            tag,
            shelves: BTreeMap::new(),
            slots: Slots::default(),
            steps: VecDeque::new(),
            asked: HashMap::new(),
            last_id: 0,
            progress: (0, 0),
        };
        for account in accounts {
            recovery.shelves.insert(account, Shelf::default());
            let request = Request::List {
                mailbox: HEAD_MAILBOX.to_owned(),
                range: UidRange {
                    first: 1,
                    last: None,
                },
            };
            recovery.ask(account, request, Asked::List);
        }
        recovery
    }

    /// The next step to carry out.
    pub fn poll(&mut self) -> Option<OpenStep> {
        self.steps.pop_front()
    }

    /// Whether the accounts have answered: [`Self::unlock`] follows, or [`Self::finish`].
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }

    /// Mails read, and mails known to be read.
    #[must_use]
    pub const fn progress(&self) -> (usize, usize) {
        self.progress
    }

    fn ask(&mut self, account: AccountId, request: Request, asked: Asked) {
        self.last_id = self.last_id.wrapping_add(1);
        let id = RequestId(self.last_id);
        self.asked.insert(id, (account, asked));
        self.steps
            .push_back(OpenStep::Ask(id, account, Urgency::Waited, request));
        self.progress.1 = self.progress.1.saturating_add(1);
    }

    fn report(&mut self, account: AccountId, uid: u32, reason: String) {
        self.steps.push_back(OpenStep::Log(Notice::Forged {
            account,
            mailbox: HEAD_MAILBOX.to_owned(),
            uid,
            reason,
        }));
    }

    /// An account has answered.
    pub fn answered(&mut self, id: RequestId, answer: Result<Answer, Fault>) {
        let Some((account, asked)) = self.asked.remove(&id) else {
            return;
        };
        self.progress.0 = self.progress.0.saturating_add(1);
        match (asked, answer) {
            (_, Err(fault)) => self.failed(account, &fault),
            (
                Asked::List,
                Ok(Answer::Listed {
                    uid_validity,
                    mails,
                    ..
                }),
            ) => self.listed(account, uid_validity, &mails),
            (Asked::Slot(mail), Ok(Answer::Read(parts))) => {
                let body = parts.into_iter().next().unwrap_or_default();
                if let Err(error) = self.take_slot(account, mail, &body) {
                    self.report(account, mail.uid, error.to_string());
                }
            }
            (Asked::Facts(mail), Ok(Answer::Read(parts))) => {
                let body = parts.into_iter().next().unwrap_or_default();
                match self.take_facts(account, mail, &body) {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => self.report(account, mail.uid, error.to_string()),
                }
                self.next_facts(account);
            }
            // A mail that is gone in the meantime.
            (Asked::Facts(_), Ok(_)) => self.next_facts(account),
            (Asked::List | Asked::Slot(_), Ok(_)) => {}
        }
    }

    fn failed(&mut self, account: AccountId, fault: &Fault) {
        if let Some(shelf) = self.shelves.get_mut(&account) {
            shelf.fault.get_or_insert(fault.to_string());
            shelf.facts.clear();
        }
    }

    /// Sorts the mails of an account, and asks for its slots.
    fn listed(&mut self, account: AccountId, uid_validity: u32, mails: &[Listed]) {
        let mut shelf = Shelf {
            uid_validity,
            ..Shelf::default()
        };
        let mut strange = Vec::new();
        for mail in mails {
            let subject = match Subject::parse(&mail.subject) {
                Ok(subject) if subject.volume == self.tag => subject,
                _ => {
                    strange.push((mail.uid, "the subject is none of this volume"));
                    continue;
                }
            };
            let found = Mail {
                uid: mail.uid,
                subject,
            };
            match subject.kind {
                Kind::Slot if mail.size <= SLOT_SIZE_MAX => shelf.slots.push_back(found),
                Kind::Volume if mail.size <= FACTS_SIZE_MAX => shelf.facts.push_back(found),
                Kind::Slot | Kind::Volume => strange.push((mail.uid, "the mail is too long")),
                // The test mails of accounts.
                Kind::Probe => {}
                _ => strange.push((mail.uid, "the mail is of another kind")),
            }
        }
        let claim = |mail: &Mail| (mail.subject.generation, mail.subject.pack, mail.uid);
        let facts = shelf.facts.make_contiguous();
        facts.sort_by_key(|mail| std::cmp::Reverse(claim(mail)));
        for kept in [&mut shelf.slots, &mut shelf.facts] {
            if let Some(first) = kept.get(READS_MAX) {
                strange.push((first.uid, "further mails of this kind are not read"));
            }
            kept.truncate(READS_MAX);
        }
        for (uid, reason) in strange.into_iter().take(READS_MAX) {
            self.report(account, uid, reason.to_owned());
        }
        let slots = std::mem::take(&mut shelf.slots);
        self.shelves.insert(account, shelf);
        for mail in slots {
            self.read(account, mail, Asked::Slot(mail));
        }
    }

    fn read(&mut self, account: AccountId, mail: Mail, asked: Asked) {
        let Some(shelf) = self.shelves.get(&account) else {
            return;
        };
        let request = Request::Read {
            mailbox: HEAD_MAILBOX.to_owned(),
            uid_validity: shelf.uid_validity,
            uid: mail.uid,
            parts: Vec::new(),
        };
        self.ask(account, request, asked);
    }

    fn take_slot(
        &mut self,
        account: AccountId,
        mail: Mail,
        body: &[u8],
    ) -> Result<(), FormatError> {
        let slot = Slot::decode(&decoded(body)?)?;
        mail.subject.check(&slot.head)?;
        let found = self.slots.found.entry(slot.head.mail);
        let found = found.or_insert_with(|| FoundSlot::new(slot));
        found.accounts.insert(account);
        Ok(())
    }

    /// Opens the slots, and asks for the facts. The call takes the time and memory of argon2id for each slot that is tried.
    ///
    /// # Errors
    /// If there is no slot, or the secret opens none.
    pub fn unlock(&mut self, secret: SlotSecret<'_>) -> Result<(), RecoveryError> {
        if self.slots.found.is_empty() {
            return Err(RecoveryError::NoSlot);
        }
        let tried = self.slots.open(secret, Work::DEFAULT);
        if self.slots.ring.is_none() {
            let found = self.slots.found.len();
            return Err(RecoveryError::Closed { found, tried });
        }
        let accounts: Vec<AccountId> = self.shelves.keys().copied().collect();
        for account in accounts {
            self.next_facts(account);
        }
        Ok(())
    }

    /// The slots that the secret opens, those of the newest keys first; for a mount, which takes less work than [`Self::unlock`].
    pub fn candidates(&mut self, secret: SlotSecret<'_>) -> Vec<(Slot, SlotKeys)> {
        self.slots.open(secret, Work::MOUNT);
        let mut opened = self.slots.opened();
        opened.truncate(CANDIDATES_MAX);
        opened
    }

    fn next_facts(&mut self, account: AccountId) {
        let shelf = self.shelves.get_mut(&account);
        if let Some(mail) = shelf.and_then(|shelf| shelf.facts.pop_front()) {
            self.read(account, mail, Asked::Facts(mail));
        }
    }

    /// The newest facts of an account are found when a mail of the newest key is what its subject claims.
    fn take_facts(
        &mut self,
        account: AccountId,
        mail: Mail,
        body: &[u8],
    ) -> Result<bool, FormatError> {
        let body = decoded(body)?;
        let epoch = Head::decode(&body)?.epoch;
        let keys = self.slots.ring.as_ref();
        let (volume, keys) = keys
            .and_then(|(volume, ring)| Some((*volume, ring.get(&epoch)?)))
            .ok_or(FormatError::Form {
                what: "epoch of the key",
                expected: "an epoch of a key in the slots",
            })?;
        let newest = self
            .slots
            .ring
            .as_ref()
            .and_then(|(_, ring)| ring.keys().next_back());
        let is_newest_key = newest == Some(&epoch);
        let (head, found) = read(&body, volume, keys)?;
        let generation = found.facts.generation;
        if let Some(shelf) = self.shelves.get_mut(&account)
            && shelf
                .newest
                .as_ref()
                .is_none_or(|newest| newest.rank < found.rank)
        {
            shelf.newest = Some(found);
        }
        // A replayed mail whose subject claims more stands in front of the newest one.
        mail.subject.check(&head)?;
        match mail.subject.generation {
            Some(claimed) if claimed != generation => Err(FormatError::Differs {
                what: "generation of the subject",
                expected: generation,
                found: claimed,
            }),
            _ => Ok(is_newest_key),
        }
    }

    /// What the accounts tell.
    ///
    /// # Errors
    /// If no account has the facts, or the secret opens revoked slots only.
    pub fn finish(mut self) -> Result<Recovered, RecoveryError> {
        let newest = self
            .shelves
            .values()
            .filter_map(|shelf| shelf.newest.clone())
            .max_by_key(|newest| newest.rank);
        let (Some(newest), Some((volume, _))) = (newest, self.slots.ring.take()) else {
            return Err(RecoveryError::NoFacts);
        };
        let is_valid = |number, mail| knows_slot(&newest.facts.rows, number, mail);
        let slots = self.slots.reports(is_valid);
        let Some((slot, keys)) = self.slots.best(is_valid) else {
            let any = self.slots.best(|_, _| true);
            let number = any.map_or(0, |(slot, _)| slot.number);
            return Err(RecoveryError::Revoked { number });
        };
        let has_newest = |shelf: &Shelf| {
            let rank = shelf.newest.as_ref().map(|own| own.rank);
            rank == Some(newest.rank)
        };
        let read = |shelf: &&Shelf| shelf.fault.is_none();
        let behind = self.shelves.iter().filter(|(_, shelf)| read(shelf));
        let behind = behind.filter(|(_, shelf)| !has_newest(shelf));
        Ok(Recovered {
            volume,
            slot: slot.clone(),
            keys: keys.clone(),
            slots,
            behind: behind.map(|(account, _)| *account).collect(),
            faults: self
                .shelves
                .iter()
                .filter_map(|(account, shelf)| Some((*account, shelf.fault.clone()?)))
                .collect(),
            facts: newest.facts,
        })
    }
}

/// The octets of a mail in either encoding: which one an account takes is a fact of the volume.
fn decoded(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    let has_head = |body: &Vec<u8>| Head::decode(body).is_ok();
    let eight = mail::unwrap(text, Encoding::EightBit);
    if let Ok(body) = eight.as_ref()
        && has_head(body)
    {
        return eight;
    }
    match mail::unwrap(text, Encoding::Base64) {
        Ok(body) if has_head(&body) => Ok(body),
        // The first error is the one of the usual encoding.
        _ => eight.and_then(|body| Head::decode(&body).map(|_| body)),
    }
}
