//! The reading of every mail with content, from whichever account has a good copy.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_units::Timestamp;

use vere_placement::accounts::{AccountTerms, LOG_MAILBOX, mailbox_name};

use super::found::{Salvaged, is_of_use};
use super::frames::{Content, read};
use super::needed::Needed;
use crate::format::{Encoding, Keys, Kind, MailCopy, MailId, Subject, VolumeId};
use crate::survey::{Inventory, Look, Survey};

/// Mails read at once.
const READS_MAX: usize = 8;
/// The shortest rest of an account that asks for patience.
const REST_MIN: Duration = Duration::from_secs(1);

/// What a salvage asks for.
#[derive(Debug)]
pub enum SalvageStep {
    /// Asks an account; the answer goes to [`Salvage::answered`].
    Ask(RequestId, AccountId, Urgency, Request),
}

/// A mail to be read.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) subject: Subject,
    /// One copy for each account.
    pub(super) copies: Vec<MailCopy>,
    /// Copies that were asked for.
    pub(super) tried: usize,
    best: Option<Content>,
    pub(super) reason: String,
    /// The generation of a commit, by its record.
    pub(super) generation: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    Look(u16, Look),
    Mail(usize),
}

/// A salvage under way.
#[derive(Debug)]
pub struct Salvage {
    pub(super) volume: VolumeId,
    pub(super) keys: Arc<Keys>,
    pub(super) encodings: HashMap<u16, Encoding>,
    survey: Option<Survey>,
    inventory: Inventory,
    pub(super) mails: Vec<Wanted>,
    pub(super) waiting: VecDeque<usize>,
    /// Mails to be read again, after the first reading.
    pub(super) needed: Option<Needed>,
    asked: HashMap<RequestId, Asked>,
    /// Accounts that ask for patience, or whose budget is used up, and until when.
    rests: HashMap<u16, Timestamp>,
    /// Mails whose copies all lie on resting accounts.
    later: BTreeSet<(Timestamp, usize)>,
    /// Looks at resting accounts.
    looks_later: Vec<(Timestamp, u16, Look)>,
    now: Timestamp,
    last_id: u64,
    steps: VecDeque<SalvageStep>,
    pub(super) read: usize,
    pub(super) found: Salvaged,
}

impl Salvage {
    /// Begins: every mailbox of every account is listed, and every commit, data pack and mail of pages is read. Then pages
    /// are chosen, and the mails of chosen leaves are read once more, along with the commits behind: names need no more memory
    /// than chosen leaves.
    #[must_use]
    pub fn new(accounts: &[AccountTerms], volume: VolumeId, keys: Arc<Keys>) -> Self {
        let encodings = accounts.iter();
        let accounts = accounts.iter().map(|terms| terms.account);
        let mut salvage = Self {
            volume,
            keys,
            encodings: encodings
                .map(|terms| (terms.account, terms.encoding))
                .collect(),
            survey: Some(Survey::new(accounts, volume.tag())),
            inventory: Inventory::default(),
            mails: Vec::new(),
            waiting: VecDeque::new(),
            needed: None,
            asked: HashMap::new(),
            rests: HashMap::new(),
            later: BTreeSet::new(),
            looks_later: Vec::new(),
            now: Timestamp::ZERO,
            last_id: 0,
            steps: VecDeque::new(),
            read: 0,
            found: Salvaged::default(),
        };
        salvage.advance();
        salvage
    }

    /// The next step to carry out.
    pub fn poll(&mut self) -> Option<SalvageStep> {
        self.steps.pop_front()
    }

    /// Whether everything is read: [`Self::finish`] follows.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.needed.is_some() && self.has_read()
    }

    /// Whether nothing is under way.
    fn has_read(&self) -> bool {
        self.survey.is_none()
            && self.asked.is_empty()
            && self.later.is_empty()
            && self.waiting.is_empty()
    }

    /// Whether an answer is on the way.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// When [`Self::wake`] has something to ask again.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        let mails = self.later.first().map(|(at, _)| *at);
        let looks = self.looks_later.iter().map(|(at, ..)| *at);
        looks.chain(mails).min()
    }

    /// Until when the account with the longest rest asks for patience.
    #[must_use]
    pub fn rests_until(&self) -> Option<Timestamp> {
        self.rests.values().copied().max()
    }

    /// Time has passed: accounts that have rested are asked again.
    pub fn wake(&mut self, now: Timestamp) {
        self.now = now;
        let due = self.looks_later.extract_if(.., |(at, ..)| *at <= now);
        for (_, account, look) in due.collect::<Vec<_>>() {
            self.ask(account, look.request(), Asked::Look(account, look));
        }
        let due = self.later.extract_if(.., |(at, _)| *at <= now);
        self.waiting.extend(due.map(|(_, number)| number));
        self.advance();
    }

    /// The present stage, with the parts done and the parts known.
    #[must_use]
    pub fn progress(&self) -> (&'static str, usize, usize) {
        match &self.survey {
            Some(survey) => {
                let (done, left) = survey.progress();
                ("listing", done, done.saturating_add(left))
            }
            None if self.asked.is_empty() && !self.later.is_empty() => (
                "waiting for accounts that take no requests now",
                self.read,
                self.all(),
            ),
            None => ("reading", self.read, self.all()),
        }
    }

    /// Mails to be read, by both readings.
    fn all(&self) -> usize {
        let again = self.needed.as_ref().map_or(0, |needed| needed.mails);
        self.mails.len().saturating_add(again)
    }

    /// What was found. Before the end nothing of this can be placed: what is unread would count as lost.
    #[must_use]
    pub fn finish(mut self) -> Salvaged {
        self.found.is_whole = self.is_over();
        if let Some(past) = &self.found.past {
            let left_out = &mut self.found.report.pages_left_out;
            *left_out = left_out.saturating_add(past.rows_left_out);
        }
        self.found
    }

    fn ask(&mut self, account: u16, request: Request, asked: Asked) {
        self.last_id = self.last_id.wrapping_add(1);
        let id = RequestId(self.last_id);
        self.asked.insert(id, asked);
        let step = SalvageStep::Ask(id, AccountId(account), Urgency::Waited, request);
        self.steps.push_back(step);
    }

    /// An account has answered. A mail is verified at once, which takes time.
    pub fn answered(&mut self, now: Timestamp, id: RequestId, answer: Result<Answer, Fault>) {
        self.now = now;
        match self.asked.remove(&id) {
            Some(Asked::Look(account, look)) => {
                if let Some(at) = self.rest(account, &answer) {
                    self.looks_later.push((at, account, look));
                } else if let Some(survey) = &mut self.survey {
                    survey.answered(account, look, answer);
                }
            }
            Some(Asked::Mail(number)) => self.mail_answered(number, answer),
            None => return,
        }
        self.advance();
    }

    /// An account that gives nothing for a while has lost nothing. Returns the end of the rest.
    fn rest(&mut self, account: u16, answer: &Result<Answer, Fault>) -> Option<Timestamp> {
        let (Err(Fault::Scarce(_, _, millis)) | Err(Fault::Throttled(_, millis))) = answer else {
            return None;
        };
        let rest = Duration::from_millis(*millis).max(REST_MIN);
        let end = self.now + rest;
        self.rests.insert(account, end);
        Some(end)
    }

    /// Puts a copy of an account that does not rest first among those not asked for. Returns the next trial, where there is none.
    fn choose(&mut self, number: usize) -> Option<Timestamp> {
        let wanted = self.mails.get_mut(number)?;
        let (now, rests) = (self.now, &self.rests);
        let rest = |copy: &MailCopy| rests.get(&copy.account).filter(|end| **end > now).copied();
        let left = wanted.copies.get_mut(wanted.tried..)?;
        match left.iter().position(|copy| rest(copy).is_none()) {
            Some(place) => {
                left.get_mut(..=place)?.rotate_right(1);
                None
            }
            None => left.iter().filter_map(rest).min(),
        }
    }

    fn advance(&mut self) {
        while let Some((account, look)) = self.survey.as_mut().and_then(Survey::poll) {
            self.ask(account, look.request(), Asked::Look(account, look));
        }
        if let Some(survey) = self.survey.take_if(|survey| survey.is_over()) {
            self.inventory = survey.finish();
            self.list();
        }
        loop {
            while self.asked.len() < READS_MAX
                && let Some(number) = self.waiting.pop_front()
            {
                self.ask_mail(number);
            }
            if self.needed.is_some() || !self.has_read() {
                return;
            }
            self.read_again();
        }
    }

    /// Every mail with content, each once, with a copy of every account.
    fn list(&mut self) {
        for (account, holding) in &self.inventory.accounts {
            if let Some(fault) = &holding.fault {
                self.found.unusable(format!("account {account}: {fault}"));
            }
        }
        let mut mails: BTreeMap<MailId, Wanted> = BTreeMap::new();
        for (copy, seen) in self.inventory.of_mailboxes(LOG_MAILBOX..=u16::MAX) {
            let Ok(subject) = &seen.subject else {
                continue;
            };
            if !is_of_use(subject.kind) {
                continue;
            }
            let wanted = mails.entry(subject.mail).or_insert_with(|| Wanted {
                subject: *subject,
                copies: Vec::new(),
                tried: 0,
                best: None,
                reason: String::new(),
                generation: None,
            });
            // UIDs rise, and the lowest one counts. A copy whose subject says something else is tried with its own words only.
            let is_known = |known: &MailCopy| known.account == copy.account;
            if wanted.subject == *subject && !wanted.copies.iter().any(is_known) {
                wanted.copies.push(copy);
            }
        }
        self.mails = mails.into_values().collect();
        let mut order: Vec<usize> = (0..self.mails.len()).collect();
        // Pages of old checkpoints come last, and have no room first.
        order.sort_by_key(|number| {
            let subject = self.mails.get(*number).map(|wanted| &wanted.subject);
            let pages = subject.filter(|subject| subject.kind == Kind::Pages);
            pages.map(|subject| Reverse(subject.generation))
        });
        self.waiting = order.into();
    }

    /// Asks for the next copy of a mail; without a further copy the best one counts.
    pub(super) fn ask_mail(&mut self, number: usize) {
        if let Some(at) = self.choose(number) {
            self.later.insert((at, number));
            return;
        }
        let Some(wanted) = self.mails.get_mut(number) else {
            return;
        };
        let copy = wanted.copies.get(wanted.tried).copied();
        wanted.tried = wanted.tried.saturating_add(1);
        let validity =
            copy.and_then(|copy| self.inventory.uid_validity(copy.account, copy.mailbox));
        let (Some(copy), Some(uid_validity)) = (copy, validity) else {
            self.decide(number);
            return;
        };
        let request = Request::Read {
            mailbox: mailbox_name(copy.mailbox),
            uid_validity,
            uid: copy.uid,
            parts: Vec::new(),
        };
        self.ask(copy.account, request, Asked::Mail(number));
    }

    fn mail_answered(&mut self, number: usize, answer: Result<Answer, Fault>) {
        let Some(wanted) = self.mails.get(number) else {
            return;
        };
        let copy = wanted.tried.checked_sub(1);
        let copy = copy.and_then(|tried| wanted.copies.get(tried).copied());
        if let Some(copy) = copy
            && self.rest(copy.account, &answer).is_some()
        {
            if let Some(wanted) = self.mails.get_mut(number) {
                wanted.tried = wanted.tried.saturating_sub(1);
            }
            self.ask_mail(number);
            return;
        }
        let encoding = copy.and_then(|copy| self.encodings.get(&copy.account).copied());
        let encoding = encoding.unwrap_or(Encoding::EightBit);
        let text = match answer {
            Ok(Answer::Read(parts)) => Ok(parts.into_iter().next().unwrap_or_default()),
            Ok(_) => Err("the mail is gone".to_owned()),
            Err(fault) => Err(fault.to_string()),
        };
        if self.needed.is_some() {
            self.answered_again(number, encoding, text);
            return;
        }
        let Some(wanted) = self.mails.get_mut(number) else {
            return;
        };
        let content = text.and_then(|text| {
            let of = (self.volume, &*self.keys);
            read(&text, encoding, &wanted.subject, of).map_err(|error| error.to_string())
        });
        match content {
            Ok(content) => {
                let is_whole = content.damaged == 0;
                let is_better = wanted
                    .best
                    .as_ref()
                    .is_none_or(|best| best.opened() < content.opened());
                if is_better {
                    wanted.best = Some(content);
                }
                if is_whole {
                    self.decide(number);
                    return;
                }
            }
            Err(reason) => wanted.reason = reason,
        }
        self.ask_mail(number);
    }

    /// No further copy is read.
    fn decide(&mut self, number: usize) {
        self.read = self.read.saturating_add(1);
        if self.needed.is_some() {
            self.give_up_again(number);
            return;
        }
        let Some(wanted) = self.mails.get_mut(number) else {
            return;
        };
        let copies = wanted.copies.clone();
        for copy in &copies {
            let place = (copy.account, copy.mailbox);
            if let Some(number) = self.inventory.uid_validity(place.0, place.1) {
                self.found.validities.insert(place, number);
            }
        }
        match wanted.best.take() {
            Some(content) => {
                let subject = wanted.subject;
                let record = content.record.as_ref();
                wanted.generation = record.map(|record| record.generation);
                self.found.take(&subject, copies, content);
            }
            None => {
                let reason = std::mem::take(&mut wanted.reason);
                let text = format!("mail {}: {reason}", wanted.subject.mail);
                self.found.unusable(text);
            }
        }
    }
}
