//! What happens to a volume: time passes, accounts answer, jobs end.

use super::accounts::{LOG_MAILBOX, mailbox_name};
use super::chain::Next;
use super::job::Done;
use super::job::{Job, JobId, JobResult};
use super::rates::{Began, Direction};
use super::state::{Asked, Volume, Working};
use super::step::{Moment, Notice, Step};
use crate::breakage::{Breakage, is_broken};
use crate::format::{Encoding, MailId};
use std::time::Duration;

use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

/// Pause before the log is listed again for a commit absent from the listing.
pub(super) const RETRY: Duration = Duration::from_secs(1);

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
            self.local_room_at(),
            self.quotas_at,
            self.accounts.next_trial(),
            self.deadlines.next(),
            self.replicas.scan_at,
            self.facts.as_ref().and_then(|run| run.until()),
            self.follow.due(),
            self.adoption_due(),
            self.mirrors_due(),
            self.other_logs_due(),
            self.upkeep_wake(),
            self.sign_due(),
        ];
        times.into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Moment) {
        self.at(now);
        self.retry_journal();
        self.flush_due(now);
        if self.sync_at.is_some_and(|at| at <= now.steady) {
            self.sync_at = None;
            let file = self.journal.take_unsynced();
            let file = file.filter(|_| !is_broken(Breakage::JournalUnsynced));
            self.steps.extend(file.map(Step::Sync));
        }
        if self.retry_at.is_some_and(|at| at <= now.steady) {
            self.retry_at = None;
            self.chain.look_again();
            self.advance_chain();
        }
        if self.quotas_at.is_some_and(|at| at <= now.steady) {
            self.ask_quotas();
        }
        self.follow_due();
        self.ask_for_sign();
        self.end_waits();
        for pack in self.accounts.rested() {
            self.send_pack(pack);
        }
        self.ask_for_pages();
        self.scan_packs();
        self.make_copies();
        self.tend_checkpoints();
        self.tend();
    }

    /// The end of [`Step::Sync`].
    pub fn synced(&mut self, result: Result<(), String>) {
        if let Err(error) = result {
            self.journal.sync_failed();
            if self.is_retired() {
                // A failed disk is final, whatever the volume has stopped for.
                self.read_only = None;
            }
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
        self.measure(id, account, &answer);
        let has_recovered = answer.is_ok()
            && match asked {
                Asked::Quota => self.accounts.told_quota(account),
                _ => self.accounts.answered_well(account),
            };
        if answer.is_ok() {
            self.note_answer(account);
        }
        if has_recovered {
            self.steps
                .push_back(Step::Log(Notice::Recovered(AccountId(account))));
            for pack in self.accounts.rested() {
                self.send_pack(pack);
            }
            self.ask_for_pages();
        }
        if let Some((asked, answer)) = self.is_late(account, asked, answer) {
            self.take_answer(account, asked, answer);
        }
        self.tend();
    }

    /// An answer whose rows are there.
    pub(super) fn take_answer(
        &mut self,
        account: u16,
        asked: Asked,
        answer: Result<Answer, Fault>,
    ) {
        if self.is_retired() && !asked.is_read() {
            return;
        }
        match asked {
            Asked::Sign => {}
            Asked::Chunk(chunk, copy) => self.chunk_answered(chunk, copy, answer),
            Asked::Chunks(chunks, copy) => self.chunks_answered(chunks, copy, answer),
            Asked::Pack(number, account) => self.pack_answered(number, account, answer),
            Asked::Original(pack, account, copy) => {
                self.original_answered(pack, account, copy, answer);
            }
            Asked::Copy(pack, account) => self.copy_answered(pack, account, answer),
            Asked::Commit(id) => self.commit_answered(id, answer),
            Asked::Log => self.log_answered(answer),
            Asked::Judge(uid) => self.judge_answered(uid, answer),
            Asked::Watch => self.watch_answered(&answer),
            Asked::Mirror(account, ticket) => self.mirror_answered(account, ticket, answer),
            Asked::OtherLog(account, ticket) => self.other_log_answered(account, ticket, answer),
            Asked::Quota => self.quota_answered(account, answer),
            Asked::Page(at) => self.page_answered(at, answer),
            Asked::FindPage(at) => self.page_found(at, answer),
            Asked::FindMirrored(at, account) => self.mirrored_page_found(at, account, answer),
            Asked::FindCommit(chunk, account) => {
                self.mirrored_commit_found(chunk, account, answer);
            }
            Asked::FindPack(chunk, copy) => self.pack_found(chunk, copy, answer),
            Asked::PageMail(covers, number) => self.page_mail_answered(covers, number, answer),
            Asked::Upkeep(ticket) => self.upkeep_answered(account, ticket, answer),
            Asked::Facts(ticket) => self.facts_answered(account, ticket, answer),
            Asked::Confirm(ticket) => self.confirm_answered(ticket, answer),
        }
    }

    /// A job has ended.
    pub fn done(&mut self, now: Moment, id: JobId, result: JobResult) {
        self.at(now);
        match (self.working.remove(&id), result) {
            (Some(Working::Chunk(chunk, copy)), JobResult(Done::Opened(opened))) => {
                self.chunk_opened(chunk, copy, opened);
            }
            (Some(Working::Cached(chunk, id)), JobResult(Done::Cached(plain))) => {
                self.cached(chunk, id, plain);
            }
            (Some(Working::Keep(chunk)), JobResult(Done::Kept(kept))) => self.kept(chunk, kept),
            (Some(Working::Names(number)), JobResult(Done::Named(names))) => {
                self.chunks_named(number, names);
            }
            (Some(Working::Pack(number)), JobResult(Done::Packed(packed))) => {
                self.pack_made(number, packed)
            }
            (Some(Working::Copy(pack, account, copy)), JobResult(Done::Copied(made))) => {
                self.copy_made(pack, account, copy, made);
            }
            (Some(Working::Mirror(account, ticket)), JobResult(Done::Copied(made))) => {
                self.mirror_made(account, ticket, made);
            }
            (Some(Working::Upkeep(number)), JobResult(Done::Inspected(opened))) => {
                self.mail_inspected(number, opened);
            }
            (Some(Working::Upkeep(number)), JobResult(Done::Opened(opened))) => {
                self.frame_opened(number, opened.map(|opened| opened.plain));
            }
            _ => {}
        }
        self.tend();
    }

    pub(super) fn at(&mut self, now: Moment) {
        self.now = now;
        self.accounts.now = now.steady;
        // Pages are forgotten between two events only: whoever has read rows ahead finds them again.
        self.files.tree().pages().trim(self.pages.octets_max);
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        urgency: Urgency,
        request: Request,
        asked: Asked,
    ) {
        if self.is_retired() && !asked.is_read() {
            return;
        }
        let id = RequestId(self.next_id());
        self.accounts.asks(account.0);
        let began = Began::of(&request, self.now.steady);
        self.began.insert(id, began);
        self.asked.insert(id, (account.0, asked));
        self.steps
            .push_back(Step::Ask(id, account, urgency, request));
    }

    /// An answer with content, or to content, tells how fast the account is.
    fn measure(&mut self, id: RequestId, account: u16, answer: &Result<Answer, Fault>) {
        let Some(Began { at, octets }) = self.began.remove(&id) else {
            return;
        };
        let (direction, octets) = match answer {
            Ok(Answer::Appended(_)) => (Direction::Up, octets),
            Ok(Answer::Read(parts)) => {
                let octets: usize = parts.iter().map(bytes::Bytes::len).sum();
                (Direction::Down, octets as u64)
            }
            _ => return,
        };
        let now = self.now.steady;
        let took = now.saturating_since(at);
        let rates = &mut self.accounts.rates;
        rates.measured((account, direction), octets, took, now);
    }

    pub(super) fn work(&mut self, job: Job, working: Working) {
        let id = JobId(self.next_id());
        self.working.insert(id, working);
        self.steps.push_back(Step::Work(id, Box::new(job)));
    }

    pub(super) fn lead_encoding(&self) -> Encoding {
        self.accounts
            .encoding(self.terms.lead)
            .unwrap_or(Encoding::Base64)
    }

    /// An account fails.
    pub(super) fn account_failed(&mut self, account: u16, fault: &Fault) {
        if matches!(fault, Fault::OverQuota(_)) {
            self.quotas_at = Some(self.now.steady);
        }
        if self.accounts.failed(account, fault) {
            self.steps.push_back(Step::Log(Notice::Account {
                account: AccountId(account),
                fault: fault.to_string(),
            }));
        }
    }

    /// Carries out what the chain wants.
    pub(super) fn advance_chain(&mut self) {
        if self.is_retired() {
            return;
        }
        let lead = AccountId(self.terms.lead);
        if !self.accounts.may_try(lead.0) {
            self.retry_at = self.accounts.rests_until(lead.0);
            return;
        }
        if self.is_unconfirmed() {
            self.ask_to_confirm();
            return;
        }
        let log = mailbox_name(LOG_MAILBOX);
        // Behind an unreadable commit no commit of the mount is in the chain, whatever the place in the log.
        while !self.is_far_behind()
            && !matches!(self.read_only, Some(Notice::NewKeys))
            && let Some(next) = self.chain.poll()
        {
            match next {
                Next::Append(id, mail) => {
                    self.mirror_sent(&mail);
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
                Next::Won(won) => {
                    self.mirror_won(won);
                    self.won(won);
                }
                Next::Follow(won) => {
                    self.mirror_followed(won);
                    self.followed(won);
                }
                Next::Located(won) => self.located_commit(won),
                Next::Gap(generation) => self.fail(Notice::Gap {
                    head: self.chain.head().1,
                    generation,
                }),
            }
        }
    }

    pub(super) fn ask_judge(&mut self, lead: AccountId, uid: u32) {
        let request = Request::Read {
            mailbox: mailbox_name(LOG_MAILBOX),
            uid_validity: self.accounts.uid_validity(lead.0, LOG_MAILBOX).unwrap_or(0),
            uid,
            parts: Vec::new(),
        };
        self.ask(lead, Urgency::Commit, request, Asked::Judge(uid));
    }

    pub(super) fn commit_answered(&mut self, id: MailId, answer: Result<Answer, Fault>) {
        match answer {
            Ok(Answer::Appended(place)) => self.chain.appended(id, place),
            Err(fault @ Fault::Unreachable(_)) => {
                self.account_failed(self.terms.lead, &fault);
                self.chain.failed(id);
            }
            Ok(_) => self.chain.failed(id),
            Err(fault) => {
                self.accounts.refuses_mail(self.terms.lead, &fault);
                self.account_failed(self.terms.lead, &fault);
                self.chain.refused(id);
            }
        }
        self.advance_chain();
    }

    pub(super) fn log_answered(&mut self, answer: Result<Answer, Fault>) {
        match answer {
            Ok(Answer::Listed {
                uid_validity,
                mails,
                ..
            }) => {
                self.retry_at = Some(self.now.steady + RETRY);
                if uid_validity != 0 {
                    let lead = self.terms.lead;
                    self.accounts.number(lead, LOG_MAILBOX, uid_validity);
                }
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
}
