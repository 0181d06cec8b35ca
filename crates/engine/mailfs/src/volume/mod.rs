//! A mounted volume: calls in, replies out; accounts, journal and worker threads in between. No sockets, threads or clocks.
//!
//! Written octets and changed rows go to the [`journal`] before their call is answered. Content leaves in packs
//! ([`uploads`]), rows in [`commits`], whose order is the [`chain`]'s matter. [`reads`] brings octets back.

mod accounts;
mod boot;
mod build;
mod calls;
mod chain;
mod commits;
mod deadlines;
mod job;
mod journal;
mod packs;
mod reads;
mod record;
mod replay;
mod replicas;
mod status;
mod step;
mod uploads;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use vere_ports::files::{Call, CallId, Caller};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use self::accounts::{Accounts, LOG_MAILBOX, mailbox_name};
use self::chain::{Chain, Next};
use self::commits::Commits;
use self::deadlines::Deadlines;
use self::job::{Done, Seals};
use self::journal::Journal;
use self::packs::{ChunkCache, Fates};
use self::reads::Reads;
use self::replicas::Replicas;
use self::uploads::Uploads;
use crate::format::commit::Record;
use crate::format::{Encoding, Kind, MailCopy, MailId, PackNumber, mail, open};
use crate::posix::Files;
use crate::rows::Extent;

pub use self::accounts::{AccountStatus, AccountTerms, GroupTerms};
pub use self::boot::{Create, Machine, OpenError, OpenStep, Opening};
pub use self::job::{Job, JobId, JobResult};
pub use self::journal::JournalError;
pub use self::status::Status;
pub use self::step::{Moment, Notice, Step};

/// What a mount is told about its volume.
#[derive(Debug, Clone)]
pub struct Terms {
    /// All accounts.
    pub accounts: Vec<AccountTerms>,
    /// The account whose log orders the commits.
    pub lead: u16,
    /// Groups for packs.
    pub groups: Vec<GroupTerms>,
    /// Whether closing a file and changing names wait for the servers.
    pub strong: bool,
    /// How long a call may wait for accounts.
    pub call_timeout: Duration,
    /// Accounts of a group that have a pack before a commit names it.
    pub sync_copies: usize,
    /// How long a change may wait for its commit.
    pub flush_interval: Duration,
    /// How long records of the journal may be unsynced.
    pub journal_sync: Duration,
    /// Written octets that are not on servers; more block their writers.
    pub unsent_max: u64,
    /// Octets of opened chunks in memory.
    pub cache_max: usize,
    /// Chunks on their way ahead of need.
    pub fetches_max: usize,
}

/// Octets on their way to accounts at once.
const SENDING_MAX: usize = 32 << 20;
/// Numbers of mails and blocks that are reserved at once.
const RESERVED: u64 = 1_024;
/// Rows that wait for a commit, before changes wait.
const PENDING_MAX: usize = 12_000;

/// A mounted volume.
#[derive(Debug)]
pub struct Volume<S: Storage> {
    terms: Terms,
    seals: Seals,
    machine: Machine,
    writer: u16,
    files: Files,
    fates: Fates,
    cache: ChunkCache,
    accounts: Accounts,
    uploads: Uploads,
    reads: Reads,
    chain: Chain,
    commits: Commits,
    journal: Journal<S>,
    deadlines: Deadlines,
    replicas: Replicas,
    /// The next sequence of a mail, and the first that is not reserved.
    sequence: (u64, u64),
    /// The first block of homes that is not reserved.
    block_end: u32,
    steps: VecDeque<Step<S::File>>,
    asked: HashMap<RequestId, (u16, Asked)>,
    working: HashMap<JobId, Working>,
    last_id: u64,
    now: Moment,
    /// Changing calls that wait for room.
    blocked: VecDeque<(CallId, Caller, Call)>,
    /// When the journal is synced next, if anything is unsynced.
    sync_at: Option<Timestamp>,
    /// When failed requests of the chain are tried again.
    retry_at: Option<Timestamp>,
    /// Why the volume takes no changes, if so.
    read_only: Option<Notice>,
}

/// What an answer is about.
#[derive(Debug, Clone)]
enum Asked {
    Chunk(Extent, MailCopy),
    Pack(PackNumber, u16),
    Original(PackNumber, u16, MailCopy),
    Copy(PackNumber, u16),
    Commit(MailId),
    Log,
    Judge(u32),
    Quota,
}

/// What a job is about.
#[derive(Debug, Clone, Copy)]
enum Working {
    Chunk(Extent, MailCopy),
    Pack(PackNumber),
    Copy(PackNumber, u16, MailCopy),
}

impl<S: Storage> Volume<S> {
    /// The next step to carry out.
    pub fn poll(&mut self) -> Option<Step<S::File>> {
        self.steps.pop_front()
    }

    /// When [`Self::wake`] is to be called at the latest.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        let times = [
            self.commits.due(self.terms.flush_interval),
            self.sync_at,
            self.retry_at,
            self.accounts.next_trial(),
            self.deadlines.next(),
        ];
        times.into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Moment) {
        self.at(now);
        self.flush_due(now);
        if self.sync_at.is_some_and(|at| at <= now.steady) {
            self.sync_at = None;
            let file = self.journal.take_unsynced();
            self.steps.extend(file.map(Step::Sync));
        }
        if self.retry_at.is_some_and(|at| at <= now.steady) {
            self.retry_at = None;
            self.advance_chain();
        }
        self.end_waits();
        for pack in self.accounts.rested() {
            self.send_pack(pack);
        }
        self.make_copies();
    }

    /// The end of [`Step::Sync`].
    pub fn synced(&mut self, result: Result<(), String>) {
        if let Err(error) = result {
            self.fail(Notice::Journal(error));
        }
    }

    /// An account has answered.
    pub fn answered(&mut self, now: Moment, id: RequestId, answer: Result<Answer, Fault>) {
        self.at(now);
        let Some((account, asked)) = self.asked.remove(&id) else {
            return;
        };
        self.accounts.answers(account);
        if answer.is_ok() && self.accounts.answered_well(account) {
            self.steps
                .push_back(Step::Log(Notice::Recovered(AccountId(account))));
        }
        match asked {
            Asked::Chunk(chunk, copy) => self.chunk_answered(chunk, copy, answer),
            Asked::Pack(number, account) => self.pack_answered(number, account, answer),
            Asked::Original(pack, account, copy) => {
                self.original_answered(pack, account, copy, answer);
            }
            Asked::Copy(pack, account) => self.copy_answered(pack, account, answer),
            Asked::Commit(id) => self.commit_answered(id, answer),
            Asked::Log => self.log_answered(answer),
            Asked::Judge(uid) => self.judge_answered(uid, answer),
            Asked::Quota => self.quota_answered(account, answer),
        }
    }

    /// A job has ended.
    pub fn done(&mut self, now: Moment, id: JobId, result: JobResult) {
        self.at(now);
        match (self.working.remove(&id), result) {
            (Some(Working::Chunk(chunk, copy)), JobResult(Done::Opened(opened))) => {
                self.chunk_opened(chunk, copy, opened);
            }
            (Some(Working::Pack(number)), JobResult(Done::Packed(packed))) => {
                self.pack_made(number, packed)
            }
            (Some(Working::Copy(pack, account, copy)), JobResult(Done::Copied(made))) => {
                self.copy_made(pack, account, copy, made);
            }
            _ => {}
        }
    }

    fn at(&mut self, now: Moment) {
        self.now = now;
        self.accounts.now = now.steady;
    }

    fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    fn ask(&mut self, account: AccountId, urgency: Urgency, request: Request, asked: Asked) {
        let id = RequestId(self.next_id());
        self.accounts.asks(account.0);
        self.asked.insert(id, (account.0, asked));
        self.steps
            .push_back(Step::Ask(id, account, urgency, request));
    }

    fn work(&mut self, job: Job, working: Working) {
        let id = JobId(self.next_id());
        self.working.insert(id, working);
        self.steps.push_back(Step::Work(id, Box::new(job)));
    }

    fn lead_encoding(&self) -> Encoding {
        self.accounts
            .encoding(self.terms.lead)
            .unwrap_or(Encoding::Base64)
    }

    /// An account fails.
    fn account_failed(&mut self, account: u16, fault: &Fault) {
        if self.accounts.failed(account, fault.to_string()) {
            self.steps.push_back(Step::Log(Notice::Account {
                account: AccountId(account),
                fault: fault.to_string(),
            }));
        }
    }

    /// Carries out what the chain wants.
    fn advance_chain(&mut self) {
        let lead = AccountId(self.terms.lead);
        if !self.accounts.may_try(lead.0) {
            self.retry_at = self.accounts.next_trial();
            return;
        }
        let log = mailbox_name(LOG_MAILBOX);
        while let Some(next) = self.chain.next() {
            match next {
                Next::Append(id, mail) => {
                    let request = Request::Append {
                        mailbox: log.clone(),
                        mail,
                        alone: true,
                    };
                    self.ask(lead, Urgency::Commit, request, Asked::Commit(id));
                }
                Next::List(first) => {
                    let range = vere_ports::mail_accounts::UidRange { first, last: None };
                    let request = Request::List {
                        mailbox: log.clone(),
                        range,
                    };
                    self.ask(lead, Urgency::Commit, request, Asked::Log);
                }
                Next::Judge(uid) => self.ask_judge(lead, uid),
                Next::Won(won) => self.won(won),
                Next::Lost(uid) => self.fail(Notice::Overtaken { uid }),
            }
        }
    }

    fn ask_judge(&mut self, lead: AccountId, uid: u32) {
        let request = Request::Read {
            mailbox: mailbox_name(LOG_MAILBOX),
            uid_validity: self.accounts.uid_validity(lead.0, LOG_MAILBOX).unwrap_or(0),
            uid,
            parts: Vec::new(),
        };
        self.ask(lead, Urgency::Commit, request, Asked::Judge(uid));
    }

    fn commit_answered(&mut self, id: MailId, answer: Result<Answer, Fault>) {
        match answer {
            Ok(Answer::Appended(place)) => self.chain.appended(id, place),
            Err(fault @ Fault::Unreachable(_)) => {
                self.account_failed(self.terms.lead, &fault);
                self.chain.failed(id);
            }
            Ok(_) => self.chain.failed(id),
            Err(fault) => {
                self.account_failed(self.terms.lead, &fault);
                self.chain.refused(id);
            }
        }
        self.advance_chain();
    }

    fn log_answered(&mut self, answer: Result<Answer, Fault>) {
        match answer {
            Ok(Answer::Listed {
                uid_validity,
                mails,
                ..
            }) => {
                if !self.chain.listed(uid_validity, mails) {
                    let reason = "UIDVALIDITY of the log has changed".to_owned();
                    self.fail(Notice::Renumbered(reason));
                }
            }
            Ok(_) => self.chain.list_failed(),
            Err(fault) => {
                self.account_failed(self.terms.lead, &fault);
                self.chain.list_failed();
            }
        }
        self.advance_chain();
    }

    fn judge_answered(&mut self, uid: u32, answer: Result<Answer, Fault>) {
        let parent = match answer {
            Ok(Answer::Read(parts)) => {
                Some(parts.first().and_then(|body| self.parent_of(uid, body)))
            }
            Ok(Answer::Gone) => Some(None),
            Ok(_) => None,
            Err(fault) => {
                self.account_failed(self.terms.lead, &fault);
                None
            }
        };
        self.chain.judged(uid, parent);
        self.advance_chain();
    }

    /// The parent that an authentic commit names.
    fn parent_of(&mut self, uid: u32, body: &[u8]) -> Option<MailId> {
        let opened = mail::unwrap(body, self.lead_encoding())
            .and_then(|body| open(&body, &self.seals.keys, None))
            .and_then(|opened| {
                let record = Record::decode(opened.last())?;
                Ok((opened.head, record))
            });
        match opened {
            Ok((head, record)) if head.kind == Kind::Commit && head.volume == self.seals.volume => {
                Some(record.parent)
            }
            Ok(_) => None,
            Err(error) => {
                self.steps.push_back(Step::Log(Notice::Forged {
                    account: AccountId(self.terms.lead),
                    mailbox: mailbox_name(LOG_MAILBOX),
                    uid,
                    reason: error.to_string(),
                }));
                None
            }
        }
    }
}
