//! A copy of the chain and its pages on a further account: what is missing there is found and appended, commits in the order of
//! the chain. A mount copies its own commits at once, and those of other mounts when their own mounts have not.
//!
//! Every commit in a copy's log is part of the chain. Several are appended at once, and an account may refuse one and take the
//! next, so the end of a copy's log tells the newest commit there and the holes before; whole logs are compared only where the
//! end tells nothing, and by each collection.

mod answers;
mod branch;
mod waiting;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use vere_placement::accounts::{
    LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX, PAGES_MAILBOX, copy_of, mailbox_name,
};
use vere_ports::mail_accounts::{Listed, Request, UidRange};
use vere_units::Timestamp;

use crate::compare::Missing;
use crate::format::MailId;
use crate::pause::Pause;
use crate::recent::Recent;

pub use self::waiting::{MirrorStatus, Mirrors};

/// Commits of the mount that are appended at once.
const APPENDS_MAX: usize = 8;
/// UIDs at the end of a copy's log that are listed first.
const TAIL: u32 = 320;
/// Time for a mount to copy its own commits, before another mount does.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an answer is about; answers of an earlier turn count no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u32, What);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    End,
    Tail(u32),
    Look,
    CopyLog,
    LeadLog,
    CopyPages,
    LeadPages,
    Read(MailId),
    /// Commits of a left branch.
    Remove,
    /// A commit of a generation.
    Commit(u64),
    /// A mail that was read from the lead.
    Made(MailId),
}

/// What a copy wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Asks the copy's account.
    Ask(Ticket, Request),
    /// Asks the lead.
    AskLead(Ticket, Request),
    /// Appends the mail of the commit of this generation, which is in memory, to the copy's log.
    Append(Ticket, u64),
}

/// A mail as the lead has given it, to be made for the copy: [`Copy::made`].
#[derive(Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The ticket for the mail.
    pub ticket: Ticket,
    /// The mail.
    pub mail: MailId,
    /// The parent that the commit must have, where known by a subject alone.
    pub parent: Option<MailId>,
    /// The body as the lead keeps the body.
    pub body: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is known.
    Unknown,
    /// The end of the log is listed.
    Asking,
    /// Both logs are listed whole.
    Wide,
    /// Commits below this generation are there or on their way, but for missing ones.
    Next(u64),
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Pages {
    #[default]
    Unknown,
    Listing(Option<Vec<Listed>>, Option<Vec<Listed>>),
    Known,
}

/// The mail that is read from the lead and appended to the copy.
#[derive(Debug)]
struct Fetch {
    missing: Missing,
    mailbox: u16,
    body: Option<Bytes>,
}

/// A copy on a further account.
#[derive(Debug)]
pub struct Copy {
    turn: u32,
    stage: Stage,
    /// The highest UID of the copy's log that was listed.
    known: u32,
    /// Generations whose mails are on their way.
    sending: BTreeSet<u64>,
    /// Older commits that the copy lacks.
    missing: VecDeque<Missing>,
    lead_log: Option<(u32, Vec<Listed>)>,
    copy_log: Option<Vec<Listed>>,
    copy_validity: u32,
    /// Whether commits of a left branch are to leave the copy.
    leaves_branch: bool,
    /// UIDs of commits of a left branch.
    left: VecDeque<Vec<u32>>,
    is_removing: bool,
    /// The newest commit of the chain when the log was last looked through for copies of other mounts.
    looked: u64,
    is_looking: bool,
    pages: Pages,
    pages_missing: VecDeque<Missing>,
    pages_validity: u32,
    fetch: Option<Fetch>,
    queue: VecDeque<Next>,
    /// The request behind the listing of the copy's log.
    behind_copy: Option<Next>,
    /// Whether whole logs are compared, whatever the end of the copy's log tells.
    is_thorough: bool,
    /// How long nothing is asked for the copy.
    pause: Pause,
    /// Commits in the copy that were in no chain known then, with their generations.
    others: Vec<(u64, MailId)>,
    /// The oldest commit that cannot be made for the copy, because the lead's mail is damaged.
    unmade: Option<u64>,
}

impl Default for Copy {
    fn default() -> Self {
        Self {
            turn: 0,
            stage: Stage::Unknown,
            known: 0,
            sending: BTreeSet::new(),
            missing: VecDeque::new(),
            lead_log: None,
            copy_log: None,
            copy_validity: 0,
            leaves_branch: false,
            left: VecDeque::new(),
            is_removing: false,
            looked: 0,
            is_looking: false,
            pages: Pages::Unknown,
            pages_missing: VecDeque::new(),
            pages_validity: 0,
            fetch: None,
            queue: VecDeque::new(),
            behind_copy: None,
            is_thorough: false,
            pause: Pause::default(),
            others: Vec::new(),
            unmade: None,
        }
    }
}

const fn list(mailbox: u16, first: u32) -> (u16, UidRange) {
    (mailbox, UidRange { first, last: None })
}

fn listing((mailbox, range): (u16, UidRange)) -> Request {
    let mailbox = mailbox_name(mailbox);
    Request::List { mailbox, range }
}

impl Copy {
    /// The account has failed, or the mount begins: everything is looked up again.
    pub fn reset(&mut self) {
        *self = Self {
            turn: self.turn.wrapping_add(1),
            pages_validity: self.pages_validity,
            is_thorough: self.is_thorough,
            leaves_branch: self.is_leaving(),
            pause: self.pause,
            ..Self::default()
        };
    }

    /// Mails may be missing in the middle: whole logs are compared, and all pages.
    pub fn compare_whole(&mut self) {
        self.reset();
        self.pause.skip();
        self.is_thorough = true;
    }

    /// Pages may have been stored by other mounts.
    pub fn compare_pages(&mut self) {
        if self.pages == Pages::Known && self.pages_missing.is_empty() {
            self.pages = Pages::Unknown;
        }
    }

    /// A mail of pages is stored on the lead.
    pub fn page_stored(&mut self, mail: MailId, (uid_validity, uid): (u32, u32)) {
        self.pages_validity = uid_validity;
        if self.pages_missing.iter().all(|of| of.mail != mail) {
            self.pages_missing.push_back(Missing::page(mail, uid));
        }
    }

    /// The generation up to which the copy has the chain; absent while unknown.
    #[must_use]
    pub fn has(&self) -> Option<u64> {
        let Stage::Next(next) = self.stage else {
            return None;
        };
        let fetch = self.fetch.as_ref();
        let fetch = fetch.filter(|fetch| fetch.mailbox == LOG_MAILBOX);
        let missing = self.missing.iter().chain(fetch.map(|of| &of.missing));
        let absent = missing.map(|missing| missing.generation);
        let absent = absent.chain(self.sending.first().copied());
        let first = absent.chain(self.unmade).chain([next]).min()?;
        Some(first.saturating_sub(1))
    }

    /// Commits and mails of pages that are missing, as far as known.
    #[must_use]
    pub fn behind(&self, recent: &Recent) -> (u64, usize) {
        let head = recent.head().map_or(0, |head| head.generation);
        let next = match self.stage {
            Stage::Next(next) => next,
            _ => head.saturating_add(1),
        };
        let older = u64::try_from(self.missing.len().saturating_add(self.sending.len()));
        let fetching = u64::from(self.is_fetching(LOG_MAILBOX) && self.sending.is_empty());
        let commits = head.saturating_add(1).saturating_sub(next);
        let commits = commits
            .saturating_add(older.unwrap_or(u64::MAX))
            .saturating_add(fetching)
            .saturating_add(u64::from(self.unmade.is_some()));
        let page = usize::from(self.is_fetching(PAGES_MAILBOX));
        (commits, self.pages_missing.len().saturating_add(page))
    }

    /// Whether everything is there as far as the mount knows.
    #[must_use]
    pub fn is_level(&self, recent: &Recent) -> bool {
        let knows = matches!(self.stage, Stage::Next(_)) && self.pages == Pages::Known;
        knows && !self.is_leaving() && self.behind(recent) == (0, 0)
    }

    /// Whether the copy has commits of a branch that the chain has left, after a rollback: the copy cannot tell which branch
    /// counts, and stands in for no lead.
    #[must_use]
    pub fn has_other_branch(&self, recent: &Recent) -> bool {
        self.others.iter().any(|(generation, mail)| {
            let known = recent.at(*generation);
            known.is_some_and(|known| known.won.commit != *mail)
        })
    }

    fn is_fetching(&self, mailbox: u16) -> bool {
        let fetch = self.fetch.as_ref();
        fetch.is_some_and(|fetch| fetch.mailbox == mailbox)
    }

    const fn ticket(&self, what: What) -> Ticket {
        Ticket(self.turn, what)
    }

    /// The next request; may be called again at once. Without the lead only what is in memory is copied.
    pub fn poll(&mut self, recent: &Recent, now: Timestamp, has_lead: bool) -> Option<Next> {
        if self.pauses(now) {
            return None;
        }
        if let Some(fetch) = &mut self.fetch
            && let Some(mail) = fetch.body.take()
        {
            let mailbox = mailbox_name(copy_of(fetch.mailbox));
            let what = What::Made(fetch.missing.mail);
            let request = Request::Append {
                mailbox,
                mail,
                alone: false,
            };
            return Some(Next::Ask(self.ticket(what), request));
        }
        if let Some(next) = self.queue.pop_front() {
            return Some(next);
        }
        let next = self.poll_log(recent, now, has_lead);
        next.or_else(|| self.poll_pages(has_lead))
    }

    fn poll_log(&mut self, recent: &Recent, now: Timestamp, has_lead: bool) -> Option<Next> {
        match self.stage {
            Stage::Unknown => {
                self.stage = Stage::Asking;
                let end = listing(list(LOG_COPY_MAILBOX, u32::MAX));
                Some(Next::Ask(self.ticket(What::End), end))
            }
            Stage::Asking | Stage::Wide => None,
            Stage::Next(next) => self.poll_commits(next, recent, now, has_lead),
        }
    }

    fn poll_commits(
        &mut self,
        next: u64,
        recent: &Recent,
        now: Timestamp,
        has_lead: bool,
    ) -> Option<Next> {
        if self.fetch.is_some() || self.is_looking || self.is_removing {
            return None;
        }
        if let Some(uids) = self.left.pop_front() {
            return Some(self.remove(uids));
        }
        if !self.missing.is_empty() {
            if !has_lead {
                return None;
            }
            let missing = self.missing.pop_front()?;
            let validity = recent.head().map_or(0, |head| head.uid_validity);
            return Some(self.read(missing, LOG_MAILBOX, validity));
        }
        let head = recent.head()?.generation;
        if next > head {
            return None;
        }
        let Some(known) = recent.at(next) else {
            return self.widen(has_lead);
        };
        if known.mail.is_some() {
            if self.sending.len() >= APPENDS_MAX {
                return None;
            }
            self.sending.insert(next);
            self.stage = Stage::Next(next.saturating_add(1));
            return Some(Next::Append(self.ticket(What::Commit(next)), next));
        }
        let is_due = known.is_own || known.since + PATIENCE <= now || recent.has_own_behind(next);
        if !is_due || !self.sending.is_empty() || !has_lead {
            return None;
        }
        if self.looked < next {
            self.looked = head;
            self.is_looking = true;
            let rest = list(LOG_COPY_MAILBOX, self.known.saturating_add(1));
            return Some(Next::Ask(self.ticket(What::Look), listing(rest)));
        }
        self.stage = Stage::Next(next.saturating_add(1));
        let missing = Missing::known(known);
        Some(self.read(missing, LOG_MAILBOX, known.won.uid_validity))
    }

    /// Whether the copy rests, because the account has not taken a mail.
    #[must_use]
    pub fn pauses(&self, now: Timestamp) -> bool {
        self.pause.until(now).is_some()
    }

    /// When the copy goes on without an answer: at the end of a pause, or with a commit that another mount has not copied.
    #[must_use]
    pub fn due(&self, recent: &Recent, now: Timestamp) -> Option<Timestamp> {
        if let Some(until) = self.pause.until(now) {
            return Some(until);
        }
        let Stage::Next(next) = self.stage else {
            return None;
        };
        let known = recent.at(next).filter(|known| known.mail.is_none())?;
        Some(known.since + PATIENCE)
    }

    /// The end of the copy's log tells nothing: whole logs are compared.
    fn widen(&mut self, has_lead: bool) -> Option<Next> {
        if !has_lead || !self.sending.is_empty() {
            return None;
        }
        self.stage = Stage::Wide;
        (self.lead_log, self.copy_log) = (None, None);
        let all = listing(list(LOG_MAILBOX, 1));
        let copy = listing(list(LOG_COPY_MAILBOX, 1));
        let of_copy = Next::Ask(self.ticket(What::CopyLog), copy);
        let of_lead = Next::AskLead(self.ticket(What::LeadLog), all);
        if self.leaves_branch {
            // The lead is listed behind the copy, so that the list has commits just copied by a second mount.
            self.behind_copy = Some(of_lead);
            return Some(of_copy);
        }
        self.queue.push_back(of_copy);
        Some(of_lead)
    }

    fn poll_pages(&mut self, has_lead: bool) -> Option<Next> {
        if self.fetch.is_some() || !has_lead {
            return None;
        }
        match &self.pages {
            Pages::Unknown => {
                self.pages = Pages::Listing(None, None);
                let all = listing(list(PAGES_MAILBOX, 1));
                let copy = listing(list(PAGES_COPY_MAILBOX, 1));
                let of_copy = Next::Ask(self.ticket(What::CopyPages), copy);
                self.queue.push_back(of_copy);
                Some(Next::AskLead(self.ticket(What::LeadPages), all))
            }
            Pages::Listing(..) => None,
            Pages::Known => {
                let missing = self.pages_missing.pop_front()?;
                Some(self.read(missing, PAGES_MAILBOX, self.pages_validity))
            }
        }
    }

    fn read(&mut self, missing: Missing, mailbox: u16, uid_validity: u32) -> Next {
        let request = Request::Read {
            mailbox: mailbox_name(mailbox),
            uid_validity,
            uid: missing.uid,
            parts: Vec::new(),
        };
        let ticket = self.ticket(What::Read(missing.mail));
        self.fetch = Some(Fetch {
            missing,
            mailbox,
            body: None,
        });
        Next::AskLead(ticket, request)
    }
}
