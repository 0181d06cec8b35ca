//! The machine of a promotion: listings, what is missing, and the next step.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use vere_opening::{Create, Terms};
use vere_order::found::Found;
use vere_placement::accounts::{
    LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX, PAGES_MAILBOX, mailbox_name,
};
use vere_ports::mail_accounts::{
    AccountId, Answer, Fault, Listed, Request, RequestId, UidRange, Urgency,
};
use vere_sealing::mirror::MirrorJob;
use vere_units::Timestamp;

use crate::copying::{self, Copying, Place};
use crate::error::PromotionError;
use crate::format::commit::{Record, RecordKind, RowChange};
use crate::format::{
    Builder, Encoding, FormatError, Head, Index, Kind, MailId, PackNumber, Subject, mail,
};
use crate::plan::{Draft, Plan, Source, View, Which};
use crate::rows::{Key, LeadRow, RowValue};
use crate::shelf::{Shelf, light};
use crate::step::PromotionStep;

/// Mails read at once.
const READS_MAX: usize = 16;
/// Looks at the accounts. Four suffice where nobody else commits; every lost race costs two more.
const LOOKS_MAX: usize = 24;
/// The first sequence for commits of changes. Writer 0 has these sequences, and no mount has writer 0.
const SEQUENCE: u64 = 16;

/// A promotion that has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promoted {
    /// The lead, its epoch, and the generation of the change.
    pub lead: LeadRow,
    /// Mails that the promotion has copied.
    pub copied: usize,
}

const ALL: [Which; 4] = [
    Which::FromLog,
    Which::FromPages,
    Which::ToLog,
    Which::ToPages,
];

/// What an answer is about.
#[derive(Debug, Clone, Copy)]
enum Asked {
    List(Which),
    Commit(Which, u32),
    Copy(u64),
    Stored(u64),
    Change,
    Removed(Which),
}

/// A change of the lead that is under way.
#[derive(Debug)]
pub struct Promotion {
    of: Create,
    encodings: BTreeMap<u16, Encoding>,
    source: Source,
    to: u16,
    date: Timestamp,
    shelves: BTreeMap<Which, Shelf>,
    copying: Copying,
    looks: usize,
    /// Whether the step of this look is under way.
    is_decided: bool,
    /// Mails that are damaged or forged: no copy of them is missed.
    refused: HashSet<MailId>,
    steps: VecDeque<PromotionStep>,
    asked: HashMap<RequestId, Asked>,
    last_id: u64,
    outcome: Option<Result<LeadRow, PromotionError>>,
}

impl Promotion {
    /// Begins to make an account of the terms the lead. Requests count from a number on, so that late answers to others are told
    /// apart; the date is that of new mails.
    #[must_use]
    pub fn new(
        terms: &Terms,
        of: Create,
        (source, to): (Source, u16),
        (first, date): (u64, Timestamp),
    ) -> Self {
        let encodings = terms.accounts.iter();
        let mut promotion = Self {
            of,
            encodings: encodings
                .map(|terms| (terms.account, terms.encoding))
                .collect(),
            source,
            to,
            date,
            shelves: BTreeMap::new(),
            copying: Copying::default(),
            looks: 0,
            is_decided: false,
            refused: HashSet::new(),
            steps: VecDeque::new(),
            asked: HashMap::new(),
            last_id: first,
            outcome: None,
        };
        promotion.look();
        promotion
    }

    /// The next step to carry out.
    pub fn poll(&mut self) -> Option<PromotionStep> {
        self.steps.pop_front()
    }

    /// Whether [`Self::finish`] has an outcome.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// An account does not answer.
    pub fn give_up(&mut self, fault: Fault) {
        self.end(Err(PromotionError::Account(self.source.account(), fault)));
    }

    /// Mails copied so far, and in all as far as known.
    #[must_use]
    pub const fn progress(&self) -> (usize, usize) {
        (self.copying.arrived, self.copying.ordered)
    }

    /// The outcome.
    ///
    /// # Errors
    /// [`PromotionError`]: the lead stays, or another promotion goes on where this one has ended.
    pub fn finish(self) -> Result<Promoted, PromotionError> {
        let copied = self.copying.arrived;
        let none = Err(PromotionError::Unsettled(self.looks));
        let lead = self.outcome.unwrap_or(none)?;
        Ok(Promoted { lead, copied })
    }

    fn end(&mut self, outcome: Result<LeadRow, PromotionError>) {
        self.outcome.get_or_insert(outcome);
        self.steps
            .retain(|step| matches!(step, PromotionStep::Left(..)));
    }

    const fn place(&self, which: Which) -> Place {
        let (account, mailbox) = match (which, self.source) {
            (Which::FromLog, Source::Lead(account)) => (account, LOG_MAILBOX),
            (Which::FromPages, Source::Lead(account)) => (account, PAGES_MAILBOX),
            (Which::FromLog, Source::Copy(account)) => (account, LOG_COPY_MAILBOX),
            (Which::FromPages, Source::Copy(account)) => (account, PAGES_COPY_MAILBOX),
            (Which::ToLog, _) => (self.to, LOG_MAILBOX),
            (Which::ToPages, _) => (self.to, PAGES_MAILBOX),
        };
        Place { account, mailbox }
    }

    fn encoding(&self, account: u16) -> Encoding {
        let known = self.encodings.get(&account).copied();
        known.unwrap_or(Encoding::Base64)
    }

    fn shelf(&mut self, which: Which) -> &mut Shelf {
        self.shelves.entry(which).or_default()
    }

    fn ask(&mut self, account: u16, request: Request, asked: Asked) {
        self.last_id = self.last_id.wrapping_add(1);
        let id = RequestId(self.last_id);
        self.asked.insert(id, asked);
        let urgency = match asked {
            Asked::Change => Urgency::Commit,
            _ => Urgency::Waited,
        };
        self.steps
            .push_back(PromotionStep::Ask(id, AccountId(account), urgency, request));
    }

    /// Lists the four mailboxes.
    fn look(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks > LOOKS_MAX {
            self.end(Err(PromotionError::Unsettled(LOOKS_MAX)));
            return;
        }
        for which in ALL {
            let place = self.place(which);
            let request = Request::List {
                mailbox: mailbox_name(place.mailbox),
                range: UidRange {
                    first: 1,
                    last: None,
                },
            };
            self.ask(place.account, request, Asked::List(which));
        }
    }

    /// An account has answered.
    pub fn answered(&mut self, id: RequestId, answer: Result<Answer, Fault>) {
        let Some(asked) = self.asked.remove(&id) else {
            return;
        };
        if self.is_over() {
            return;
        }
        match (asked, answer) {
            (
                Asked::List(which),
                Ok(Answer::Listed {
                    uid_validity,
                    mails,
                    ..
                }),
            ) => self.listed(which, uid_validity, &mails),
            (Asked::Commit(which, uid), Ok(answer)) => self.commit_read(which, uid, &answer),
            (Asked::Copy(number), Ok(answer)) => self.copy_read(number, &answer),
            (Asked::Stored(number), Ok(_)) => self.copying.end(number),
            (Asked::Change | Asked::Removed(_) | Asked::List(_), Ok(_)) => {}
            // The next look tells whether the mail was stored.
            (Asked::Change, Err(Fault::Unreachable(_))) => {}
            (asked, Err(fault)) => {
                let account = self.account_of(asked);
                self.end(Err(PromotionError::Account(account, fault)));
            }
        }
        self.go_on();
    }

    fn account_of(&self, asked: Asked) -> u16 {
        match asked {
            Asked::List(which) | Asked::Commit(which, _) => self.place(which).account,
            Asked::Copy(number) => {
                let order = self.copying.order(number);
                order.map_or(self.to, |order| order.from.account)
            }
            Asked::Stored(_) => self.to,
            Asked::Removed(which) => self.place(which).account,
            Asked::Change => match self.source {
                Source::Lead(account) => account,
                Source::Copy(_) => self.to,
            },
        }
    }

    fn listed(&mut self, which: Which, uid_validity: u32, mails: &[Listed]) {
        let kind = match which {
            Which::FromLog | Which::ToLog => Kind::Commit,
            Which::FromPages | Which::ToPages => Kind::Pages,
        };
        let tag = self.of.volume.tag();
        self.shelf(which).list(uid_validity, mails, kind, tag);
    }

    fn commit_read(&mut self, which: Which, uid: u32, answer: &Answer) {
        let account = self.place(which).account;
        let found = match answer {
            Answer::Read(parts) => {
                let body = parts.first().map(|body| &**body).unwrap_or_default();
                let seals = (&*self.of.keys, self.of.volume);
                let found = Found::read(uid, body, self.encoding(account), seals);
                found.map_err(|error| error.to_string())
            }
            _ => Err("the mail is gone".to_owned()),
        };
        if let Answer::Read(parts) = answer
            && found.is_err()
            && self.is_locked(account, parts.first())
        {
            self.shelf(which).locked.insert(uid);
        }
        if let Err(reason) = &found {
            let step = PromotionStep::Left(account, uid, reason.clone());
            self.steps.push_back(step);
        }
        self.shelf(which).read.insert(uid, found.ok().map(light));
    }

    /// Whether a mail is a commit of a key epoch that the keys lack. The head is not sealed, so a stranger's mail or a damaged one
    /// is none.
    fn is_locked(&self, account: u16, body: Option<&Bytes>) -> bool {
        let body = body.map(|body| &**body).unwrap_or_default();
        let body = mail::unwrap(body, self.encoding(account));
        let Ok(head) = body.and_then(|body| Head::decode(&body)) else {
            return false;
        };
        let is_commit = head.kind == Kind::Commit && head.volume == self.of.volume;
        is_commit && !self.of.keys.has(head.epoch)
    }

    fn copy_read(&mut self, number: u64, answer: &Answer) {
        let Some(order) = self.copying.order(number) else {
            return;
        };
        let made = match answer {
            Answer::Read(parts) => self.remade(&order, parts.first().cloned().unwrap_or_default()),
            _ => Err("the mail is gone".to_owned()),
        };
        match made {
            Ok(mail) if order.to.mailbox == LOG_MAILBOX => self.copying.hold(number, mail),
            Ok(mail) => self.store(number, &order, mail),
            Err(reason) => {
                self.refused.insert(order.mail);
                let step = PromotionStep::Left(order.from.account, order.uid, reason);
                self.steps.push_back(step);
                self.copying.end(number);
            }
        }
    }

    fn store(&mut self, number: u64, order: &copying::Order, mail: Bytes) {
        let request = Request::Append {
            mailbox: mailbox_name(order.to.mailbox),
            mail,
            alone: order.to.mailbox == LOG_MAILBOX,
        };
        self.ask(order.to.account, request, Asked::Stored(number));
    }

    fn remade(&self, order: &copying::Order, body: Bytes) -> Result<Bytes, String> {
        let job = MirrorJob {
            keys: self.of.keys.clone(),
            volume: self.of.volume,
            id: order.mail,
            parent: None,
            from: self.encoding(order.from.account),
            to: self.encoding(order.to.account),
            body,
            date: self.date,
        };
        job.run().map_err(|error| error.to_string())
    }

    /// Fills the windows; with nothing under way any more the next step is decided.
    fn go_on(&mut self) {
        while !self.is_over()
            && let Some((number, place, request)) = self.copying.next()
        {
            self.ask(place.account, request, Asked::Copy(number));
        }
        // An opening reads a log from a UID on: commits lie in the order of their chain.
        if !self.is_over()
            && let Some((number, order, mail)) = self.copying.next_in_order()
        {
            self.store(number, &order, mail);
        }
        let is_listing = self
            .asked
            .values()
            .any(|asked| matches!(asked, Asked::List(_)));
        if self.is_over() || is_listing || self.reads_more() || !self.asked.is_empty() {
            return;
        }
        if self.is_decided {
            self.is_decided = false;
            self.look();
        } else if let Err(error) = self.decide() {
            self.end(Err(error));
        }
    }

    /// Reads commits that are not known yet. Returns whether any is read now.
    fn reads_more(&mut self) -> bool {
        let mut is_reading = false;
        for which in [Which::FromLog, Which::ToLog] {
            let place = self.place(which);
            let shelf = self.shelf(which);
            let uid_validity = shelf.uid_validity;
            let unread: Vec<u32> = shelf.unread().collect();
            for uid in unread {
                let is_asked = |asked: &Asked| matches!(asked, Asked::Commit(of, at) if (*of, *at) == (which, uid));
                is_reading = true;
                if self.asked.len() >= READS_MAX || self.asked.values().any(is_asked) {
                    continue;
                }
                let request = Request::Read {
                    mailbox: mailbox_name(place.mailbox),
                    uid_validity,
                    uid,
                    parts: Vec::new(),
                };
                self.ask(place.account, request, Asked::Commit(which, uid));
            }
        }
        is_reading
    }

    /// Carries out the next missing step, as the mailboxes are now.
    fn decide(&mut self) -> Result<(), PromotionError> {
        let view = View {
            source: self.source,
            to: self.to,
            shelves: &self.shelves,
            refused: &self.refused,
        };
        match view.plan()? {
            Plan::Done(lead) => {
                self.end(Ok(lead));
                return Ok(());
            }
            Plan::Copy(from, to, mails) => self.copy(from, to, mails),
            Plan::Remove(which, uids) => self.remove(which, uids),
            Plan::Change(draft) => self.append(&draft)?,
        }
        self.is_decided = true;
        self.go_on();
        Ok(())
    }

    fn copy(&mut self, from: Which, to: Which, mails: Vec<(u32, MailId)>) {
        let uid_validity = self.shelf(from).uid_validity;
        for (uid, mail) in mails {
            self.copying.put(copying::Order {
                from: self.place(from),
                uid_validity,
                uid,
                mail,
                to: self.place(to),
            });
        }
    }

    fn remove(&mut self, which: Which, uids: Vec<u32>) {
        let place = self.place(which);
        let request = Request::Remove {
            mailbox: mailbox_name(place.mailbox),
            uid_validity: self.shelf(which).uid_validity,
            uids,
        };
        self.ask(place.account, request, Asked::Removed(which));
    }

    /// Appends the commit of the change: to the log of a lead that answers, which decides; else to that of the new lead.
    fn append(&mut self, draft: &Draft) -> Result<(), PromotionError> {
        let which = match self.source {
            Source::Lead(_) => Which::FromLog,
            Source::Copy(_) => Which::ToLog,
        };
        let place = self.place(which);
        let mail = self
            .sealed(draft, self.encoding(place.account))
            .map_err(|error| PromotionError::Record(error.to_string()))?;
        let request = Request::Append {
            mailbox: mailbox_name(place.mailbox),
            mail,
            alone: true,
        };
        self.ask(place.account, request, Asked::Change);
        Ok(())
    }

    fn sealed(&self, draft: &Draft, encoding: Encoding) -> Result<Bytes, FormatError> {
        let row = RowChange {
            key: Key::Lead.encode(),
            value: Some(draft.lead.encode()),
        };
        let record = Record {
            kind: RecordKind::LeadChange,
            lead_epoch: draft.lead.epoch,
            generation: draft.lead.since,
            parent: draft.parent,
            time: i64::try_from(self.date.as_millis()).unwrap_or(i64::MAX),
            checkpoint: draft.checkpoint,
            merged: Vec::new(),
            ancestors: Vec::new(),
            rows: vec![row],
            index: Index::default(),
        };
        let number = PackNumber(SEQUENCE.saturating_add(draft.lead.epoch.into()));
        let builder = Builder::new(Kind::Commit, self.of.volume, draft.epoch, 0, number);
        let sealed = builder.finish(record.encode()?.into(), &self.of.keys)?;
        let subject = Subject::of(&sealed.head, Some(draft.parent), Some(draft.lead.since));
        Ok(mail::wrap(&subject, self.date, encoding, &sealed.body).into())
    }
}
