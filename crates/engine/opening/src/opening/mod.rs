//! The opening of a volume: the newest commits name a checkpoint, whose pages give the rows, and the commits behind give the
//! rest. Without a checkpoint, or with one that is damaged, the log is read further back, at last from the first commit on.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use vere_ports::mail_accounts::{
    AccountId, Answer, Fault, Listed, Request, RequestId, UidRange, Urgency,
};
use vere_ports::storage::Storage;
use vere_replay::Stranded;

use crate::error::OpenError;
use crate::format::commit::Checkpoint;
use crate::format::{Kind, Locator, MailId, Subject};
use crate::notice::Notice;
use crate::pages::PageTree;
use crate::terms::Create;
use crate::terms::Terms;
use vere_keep::commit_store::{CommitStore, KeptCommit};
use vere_keep::journal::Journal;
use vere_keep::record::{Part, Won};
use vere_order::fingerprint::Fingerprint;
use vere_order::found::Found;
use vere_placement::accounts::mailbox_name;

mod base;
mod begin;
mod bring;
mod copy;
mod end;
mod late;
mod leads;
mod local;
mod log;
mod needed;
mod opened;
mod read;
mod stand_in;

use self::copy::StandIn;
pub use self::copy::is_outage;
pub use self::log::Log;
pub use self::opened::{Opened, Places};

/// Commits or pages read at once.
const READS_MAX: usize = 64;
/// UIDs at the end of the log that are listed first.
const WINDOW: u32 = 320;
/// UIDs before a commit that are listed too: a commit that was sent twice may stand behind its own children.
const SLACK: u32 = 32;

/// What an opening asks for.
#[derive(Debug)]
pub enum OpenStep {
    /// Asks an account; the answer goes to [`Opening::answered`].
    Ask(RequestId, AccountId, Urgency, Request),
    /// A line for the log.
    Log(Notice),
}

/// A volume that is being opened.
#[derive(Debug)]
pub struct Opening<S: Storage> {
    terms: Terms,
    of: Create,
    journal: Option<Journal<S>>,
    memory: CommitStore<S>,
    /// Commits of the local disk, until the opening has begun.
    kept: Vec<KeptCommit>,
    /// How the local disk serves, if at all.
    local: Option<Local>,
    /// What the local disk lacks.
    lacking: Option<String>,
    records: Vec<(u64, Vec<Part>)>,
    /// The newest commit of the chain that the journal knows.
    remembered: Option<Won>,
    /// The newest of the known commits with a known place in the lead's log.
    placed: Option<Won>,
    /// The generation on which changes of the journal lie: the checkpoint must not be newer.
    limit: Option<u64>,
    /// The journal's changes lie on a state that is gone, and are brought onto the newest one.
    stranded: Option<Stranded>,
    /// Whether the log is read from its first commit on, because no checkpoint is old enough.
    is_wide: bool,
    random: [u8; 16],
    steps: VecDeque<OpenStep>,
    asked: HashMap<RequestId, Asked>,
    last_id: u64,
    uid_validity: u32,
    /// The highest UID seen.
    known: u32,
    stage: Stage,
    /// The first UID that was listed.
    listed_from: u32,
    /// Commits by their subjects.
    listed: BTreeSet<u32>,
    /// Commits that were read; absent for a mail that is no authentic commit.
    commits: BTreeMap<u32, Option<Found>>,
    unread: VecDeque<u32>,
    /// The checkpoint at which the opening begins.
    base: Option<Checkpoint>,
    /// Roots of checkpoints that cannot be used.
    refused: Vec<Locator>,
    pages: PageTree,
    /// Whether every page of the checkpoint is read, because the last mount has missed one.
    is_distrusted: bool,
    /// Pages to be read.
    wanted: VecDeque<Locator>,
    /// The root page that was asked for along with commits.
    early_root: Option<Locator>,
    pages_validity: u32,
    /// The UIDs of page mails that are not where their locators say.
    moved: HashMap<MailId, u32>,
    error: Option<OpenError>,
    /// The commit that the chain must have.
    expected: Option<Fingerprint>,
    /// The highest writer of a state that the log has lost.
    lost_writer: u16,
    /// The copy that is read in place of the lead.
    stand_in: Option<StandIn>,
}

/// An opening without accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    /// If the log was seen lately: what the local disk knows may have left the log since.
    Fresh,
    /// However long ago the log was seen.
    Old,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The end of the log is looked for.
    End,
    /// The newest commit is looked for.
    Newest,
    /// The commits from the checkpoint on are read.
    Tail,
    /// The same after a second listing.
    Late,
    /// The pages that the volume begins with are read.
    Pages,
    Over,
}

/// What an answer is about.
#[derive(Debug, Clone, Copy)]
enum Asked {
    End,
    /// The commit that most likely is the newest.
    Guess(u32),
    List,
    Commit(u32),
    /// UIDVALIDITY of the pages.
    PagesEnd,
    Page(Locator),
    /// Where the mail of a page is.
    Moved(Locator),
}

impl<S: Storage> Opening<S> {
    /// Begins. The random begins the journal's new segment, and must never repeat.
    pub fn new(terms: Terms, of: Create, storage: S, random: [u8; 16]) -> Self {
        Self::begin(terms, of, (storage, random), None, None)
    }

    /// As [`Self::new`], from the copy on an account, because the lead does not answer for this reason: the volume takes no changes.
    /// Requests count from a number on, so that late answers to an earlier opening are told apart.
    pub fn standing_in(
        terms: Terms,
        of: Create,
        storage: (S, [u8; 16]),
        (account, reason, first): (u16, String, u64),
    ) -> Self {
        let stand_in = (StandIn::new(account, reason), first);
        Self::begin(terms, of, storage, Some(stand_in), None)
    }

    /// As [`Self::new`], under a lead that the journal does not know. Requests count from a number on.
    pub fn under_new_lead(terms: Terms, of: Create, storage: (S, [u8; 16]), first: u64) -> Self {
        let terms = Terms {
            is_new_lead: true,
            ..terms
        };
        let mut opening = Self::prepare(terms, of, storage, None, None);
        opening.last_id = first;
        opening.ask_log();
        opening
    }

    fn begin(
        terms: Terms,
        of: Create,
        storage: (S, [u8; 16]),
        stand_in: Option<(StandIn, u64)>,
        stranded: Option<Stranded>,
    ) -> Self {
        let mut opening = Self::prepare(terms, of, storage, stand_in, stranded);
        opening.kept.clear();
        opening.ask_log();
        opening
    }

    /// The account whose log is read does not answer.
    pub fn give_up(&mut self, fault: Fault) {
        self.fail(OpenError::Account(self.source(), fault));
    }

    /// The chain must have this commit, of whatever age.
    pub const fn expect(&mut self, commit: Fingerprint) {
        self.expected = Some(commit);
    }

    /// Writers up to this number are those of a state that the log has lost: a new writer has a higher number.
    pub const fn writers_above(&mut self, last: u16) {
        self.lost_writer = last;
    }

    /// The next step to carry out.
    pub fn poll(&mut self) -> Option<OpenStep> {
        self.steps.pop_front()
    }

    /// Whether [`Self::finish`] has what it needs, or an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Mails read so far, and in all as far as known.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let left = self.unread.len().saturating_add(self.wanted.len());
        let left = left.saturating_add(self.asked.len());
        let read = self.commits.len();
        (read, read.saturating_add(left))
    }

    fn ask(&mut self, account: u16, request: Request, asked: Asked) {
        if self.local.is_some() {
            self.lacks(asked);
            return;
        }
        self.last_id = self.last_id.wrapping_add(1);
        let id = RequestId(self.last_id);
        self.asked.insert(id, asked);
        let account = AccountId(account);
        self.steps
            .push_back(OpenStep::Ask(id, account, Urgency::Waited, request));
    }

    /// Lists the log from a UID up to what is listed already.
    fn list(&mut self, first: u32) {
        let last = self.listed_from.checked_sub(1);
        let request = Request::List {
            mailbox: mailbox_name(self.mailboxes().0),
            range: UidRange {
                first,
                last: last.filter(|_| self.listed_from < u32::MAX),
            },
        };
        let asked = if first == u32::MAX {
            Asked::End
        } else {
            self.listed_from = first;
            Asked::List
        };
        self.ask(self.source(), request, asked);
    }

    /// The account has answered.
    pub fn answered(&mut self, id: RequestId, answer: Result<Answer, Fault>) {
        let Some(asked) = self.asked.remove(&id) else {
            return;
        };
        match (asked, answer) {
            (Asked::Page(at), answer) => self.page_answered(at, answer),
            (Asked::Moved(at), answer) => self.moved_answered(at, answer),
            (Asked::Guess(uid), Ok(Answer::Read(parts))) => {
                let body = parts.into_iter().next().unwrap_or_default();
                self.read(uid, &body);
            }
            // The listing tells more.
            (Asked::Guess(_), _) => {}
            (
                Asked::PagesEnd,
                Ok(Answer::Listed {
                    uid_validity,
                    mails,
                    ..
                }),
            ) => {
                self.pages_validity = uid_validity;
                self.note_pages(&mails);
            }
            (_, Err(fault)) => self.fail(OpenError::Account(self.source(), fault)),
            (Asked::End, Ok(Answer::Listed { uid_next, .. })) => {
                // An account that does not tell the end is listed whole.
                self.stage = Stage::Newest;
                self.list(uid_next.saturating_sub(WINDOW).max(1));
            }
            (
                Asked::List,
                Ok(Answer::Listed {
                    uid_validity,
                    mails,
                    ..
                }),
            ) => self.listed(uid_validity, &mails),
            (Asked::Commit(uid), Ok(Answer::Read(parts))) => {
                let body = parts.into_iter().next().unwrap_or_default();
                self.read(uid, &body);
            }
            // A mail that is gone was no part of the chain, or the chain breaks there.
            (Asked::Commit(uid), Ok(_)) => {
                self.commits.insert(uid, None);
            }
            (Asked::End | Asked::List | Asked::PagesEnd, Ok(_)) => {}
        }
        self.advance();
    }

    fn fail(&mut self, error: OpenError) {
        self.error.get_or_insert(error);
        self.stage = Stage::Over;
    }

    fn listed(&mut self, uid_validity: u32, mails: &[Listed]) {
        self.uid_validity = uid_validity;
        self.note_generations(mails);
        for mail in mails {
            self.known = self.known.max(mail.uid);
            if Subject::parse(&mail.subject).is_ok_and(|subject| subject.kind == Kind::Commit) {
                self.listed.insert(mail.uid);
            }
        }
    }

    /// The next stage begins as soon as the accounts have answered every request.
    fn advance(&mut self) {
        while self.asked.len() < READS_MAX
            && let Some(uid) = self.unread.pop_front()
        {
            let request = Request::Read {
                mailbox: mailbox_name(self.mailboxes().0),
                uid_validity: self.uid_validity,
                uid,
                parts: Vec::new(),
            };
            self.ask(self.source(), request, Asked::Commit(uid));
        }
        while self.asked.len() < READS_MAX
            && let Some(at) = self.wanted.pop_front()
        {
            self.ask_page(at);
        }
        if !self.asked.is_empty() {
            return;
        }
        match self.stage {
            Stage::Newest => self.find_newest(),
            Stage::Tail | Stage::Late => self.read_tail(),
            Stage::Pages => self.check_pages(),
            Stage::End | Stage::Over => {}
        }
    }

    /// Looks for the newest authentic commit.
    fn find_newest(&mut self) {
        match self.newest_listed() {
            Some(uid) => match self.commits.get(&uid) {
                Some(found) => {
                    let record = found.as_ref().map(|found| &found.record);
                    let named = record.and_then(|record| record.checkpoint);
                    self.base = named.filter(|named| self.is_old_enough(named));
                    self.stage = Stage::Tail;
                    self.advance();
                }
                None => {
                    self.unread.push_back(uid);
                    self.advance();
                }
            },
            None if self.listed_from > 1 => self.list(1),
            None => self.stage = Stage::Over,
        }
    }

    /// Reads every commit from the checkpoint on, and goes to its pages.
    fn read_tail(&mut self) {
        let first = self.first_needed();
        if first < self.listed_from {
            self.list(first);
            return;
        }
        let unread = self.needed_commits(first).into_iter();
        self.unread = unread
            .filter(|uid| !self.commits.contains_key(uid))
            .collect();
        if !self.unread.is_empty() {
            self.ask_root_early();
            self.advance();
            return;
        }
        // Some commit may name a newer checkpoint than the newest commit does, or an older one serves instead.
        let best = self.best();
        if best != self.base {
            self.base = best;
            self.read_tail();
            return;
        }
        if self.base.is_none() && self.limit.is_some() && !self.is_wide {
            self.is_wide = true;
            self.read_tail();
            return;
        }
        if self.looks_again() {
            return;
        }
        match self.base {
            Some(base) => {
                self.stage = Stage::Pages;
                self.pages.set_root(Some(base.root));
                self.wanted.push_back(base.root);
                self.advance();
            }
            None => self.stage = Stage::Over,
        }
    }

    /// Asks for the root page along with the commits.
    fn ask_root_early(&mut self) {
        if let Some(base) = self.base
            && self.early_root != Some(base.root)
            && self.pages_validity != 0
            && !self.is_distrusted
        {
            self.early_root = Some(base.root);
            self.ask_page(base.root);
        }
    }
}
