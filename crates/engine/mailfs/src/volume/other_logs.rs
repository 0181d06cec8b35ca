//! Logs on further metadata accounts. An account with a commit of a later lead epoch has become the lead without this mount's
//! knowledge; and commits that a former lead took behind the parent of the change are handed on, so that they are merged as all
//! commits outside the chain are.

use vere_ports::mail_accounts::{AccountId, Answer, Fault, Listed, Request, UidRange, Urgency};
use vere_ports::storage::Storage;
use vere_sealing::mirror::MirrorJob;

use super::accounts::{LOG_MAILBOX, mailbox_name};
use super::found::{Found, lead_of};
use super::state::other_logs::{LogTicket, OtherLog};
use super::state::{Asked, Volume};
use super::step::Notice;
use crate::format::{Kind, Subject};
use crate::rows::LeadRow;
use vere_units::Timestamp;

/// Commits of a former lead that are looked at by a listing; the next one has the others.
const UNREAD_MAX: usize = 256;
/// How many times more rarely than a further metadata account any other account is asked.
const RARELY: u32 = 10;

impl<S: Storage> Volume<S> {
    /// Goes on looking at the logs of further accounts: called after every event.
    pub(super) fn tend_other_logs(&mut self) {
        // A volume that stands in for its lead sends nothing, and may find another lead.
        let stands_in = self.stand_in.is_some();
        if (self.is_stopped() || self.is_registering()) && !stands_in || self.is_retired() {
            return;
        }
        for account in self.other_accounts() {
            let now = self.now.steady;
            let log = self.other_logs.entry(account).or_default();
            let is_due = !log.is_busy && log.unread.is_empty() && log.at <= now;
            if is_due && self.accounts.may(account, Urgency::Idle) {
                self.list_other_log(account);
            }
        }
    }

    fn other_accounts(&self) -> Vec<u16> {
        let accounts = self.terms.accounts.iter().map(|terms| terms.account);
        accounts.filter(|of| *of != self.terms.lead).collect()
    }

    /// When a log is listed next.
    pub(super) fn other_logs_due(&self) -> Option<Timestamp> {
        let now = self.now.steady;
        let times = self.other_logs.values().map(|log| log.at);
        // What is due already waits for an account or an answer.
        times.filter(|at| *at > now).min()
    }

    fn list_other_log(&mut self, account: u16) {
        // Any account may become the lead, and those with copies are the likely ones.
        let rarely = match self.further_accounts().contains(&account) {
            true => 1,
            false => RARELY,
        };
        let at = self.now.steady + self.terms.refresh.saturating_mul(rarely);
        let log = self.other_logs.entry(account).or_default();
        (log.is_busy, log.at) = (true, at);
        let first = log.known.saturating_add(1);
        let request = Request::List {
            mailbox: mailbox_name(LOG_MAILBOX),
            range: UidRange { first, last: None },
        };
        self.ask_other_log(account, request, LogTicket::List);
    }

    fn ask_other_log(&mut self, account: u16, request: Request, ticket: LogTicket) {
        let to = match ticket {
            LogTicket::Forward(_) => self.terms.lead,
            _ => account,
        };
        let asked = Asked::OtherLog(account, ticket);
        self.ask(AccountId(to), Urgency::Idle, request, asked);
    }

    /// An account has answered.
    pub(super) fn other_log_answered(
        &mut self,
        account: u16,
        ticket: LogTicket,
        answer: Result<Answer, Fault>,
    ) {
        let log = self.other_logs.entry(account).or_default();
        log.is_busy = false;
        match (ticket, answer) {
            (
                LogTicket::List,
                Ok(Answer::Listed {
                    uid_validity,
                    mails,
                    ..
                }),
            ) => self.other_log_listed(account, uid_validity, &mails),
            (LogTicket::Read(uid), Ok(Answer::Read(parts))) => {
                let body = parts.into_iter().next().unwrap_or_default();
                if self.judge_other(account, uid, body) {
                    return;
                }
            }
            (LogTicket::Forward(uid), Ok(_)) => {
                self.remove_other(account, uid);
                return;
            }
            (_, Ok(_)) => {}
            (_, Err(fault)) => {
                // The next listing begins at the same place.
                log.unread.clear();
                let failed = match ticket {
                    LogTicket::Forward(_) => self.terms.lead,
                    _ => account,
                };
                self.account_failed(failed, &fault);
                return;
            }
        }
        self.read_other(account);
    }

    fn other_log_listed(&mut self, account: u16, uid_validity: u32, mails: &[Listed]) {
        let tag = self.seals.volume.tag();
        // A mount from the local disk sends nothing before its comparison with the log.
        let (since, is_unconfirmed) = (self.lead_since(), self.sends_nothing());
        let commits = mails.iter().filter_map(|mail| {
            let subject = Subject::parse(&mail.subject).ok()?;
            let is_commit = subject.kind == Kind::Commit && subject.volume == tag;
            is_commit.then_some((mail.uid, subject))
        });
        let commits: Vec<(u32, Subject)> = commits.collect();
        // The newest commit tells the epoch; a former lead's commits behind the change are handed on.
        let newest = commits.last().map(|(uid, _)| *uid);
        let is_behind = |subject: &Subject| {
            let is_late = since > 0 && !is_unconfirmed && subject.generation >= Some(since);
            is_late && !self.follow.is_merged(subject.mail)
        };
        let behind = commits.iter().filter(|(_, subject)| is_behind(subject));
        let mut unread: Vec<u32> = behind.map(|(uid, _)| *uid).take(UNREAD_MAX).collect();
        let last = match unread.last() {
            Some(last) if unread.len() == UNREAD_MAX => Some(*last),
            _ => mails.last().map(|mail| mail.uid),
        };
        unread.extend(newest.filter(|newest| unread.last() != Some(newest)));
        let log = self.other_logs.entry(account).or_default();
        if log.uid_validity != uid_validity {
            *log = OtherLog {
                uid_validity,
                at: log.at,
                ..OtherLog::default()
            };
        }
        log.listed = last.unwrap_or(log.known);
        log.unread = unread.into();
    }

    fn read_other(&mut self, account: u16) {
        let is_unconfirmed = self.sends_nothing();
        let log = self.other_logs.entry(account).or_default();
        let Some(uid) = log.unread.pop_front() else {
            // Behind the comparison all mails count once more.
            if !is_unconfirmed {
                log.known = log.known.max(log.listed);
            }
            return;
        };
        log.is_busy = true;
        let request = Request::Read {
            mailbox: mailbox_name(LOG_MAILBOX),
            uid_validity: log.uid_validity,
            uid,
            parts: Vec::new(),
        };
        self.ask_other_log(account, request, LogTicket::Read(uid));
    }

    /// Looks at a commit. Returns whether it is handed on.
    fn judge_other(&mut self, account: u16, uid: u32, body: bytes::Bytes) -> bool {
        let Some(encoding) = self.accounts.encoding(account) else {
            return false;
        };
        let seals = (&*self.seals.keys, self.seals.volume);
        let Ok(found) = Found::read(uid, &body, encoding, seals) else {
            return false;
        };
        let epoch = self.lead_epoch();
        // A change names its account; any other commit was made under the lead whose log it is in.
        let lead = lead_of(&found).unwrap_or(LeadRow {
            account,
            epoch: found.record.lead_epoch,
            since: 0,
        });
        let is_change = lead_of(&found).is_some();
        if lead.epoch > epoch || is_change && self.is_newer(lead) {
            if lead.account != self.terms.lead {
                self.other_lead_found(lead.account, lead.epoch);
            }
            return false;
        }
        if is_change {
            return false;
        }
        let is_displaced = !self.sends_nothing()
            && found.record.lead_epoch < epoch
            && found.record.generation >= self.lead_since()
            && !self.follow.is_merged(found.id());
        if !is_displaced {
            return false;
        }
        let job = MirrorJob {
            keys: self.seals.keys.clone(),
            volume: self.seals.volume,
            id: found.id(),
            parent: None,
            from: encoding,
            to: self.lead_encoding(),
            body,
            date: self.now.date(),
        };
        let Ok(mail) = job.run() else {
            return false;
        };
        let request = Request::Append {
            mailbox: mailbox_name(LOG_MAILBOX),
            mail,
            alone: true,
        };
        self.other_logs.entry(account).or_default().is_busy = true;
        self.ask_other_log(account, request, LogTicket::Forward(uid));
        self.chain.refresh();
        true
    }

    fn remove_other(&mut self, account: u16, uid: u32) {
        let log = self.other_logs.entry(account).or_default();
        log.is_busy = true;
        let request = Request::Remove {
            mailbox: mailbox_name(LOG_MAILBOX),
            uid_validity: log.uid_validity,
            uids: vec![uid],
        };
        self.ask_other_log(account, request, LogTicket::Removed);
        self.chain.refresh();
        self.advance_chain();
    }

    const fn sends_nothing(&self) -> bool {
        self.is_unconfirmed() || self.stand_in.is_some()
    }

    fn other_lead_found(&mut self, account: u16, epoch: u32) {
        self.chain.stand();
        if self.stand_in.is_some() {
            // The copy has served its purpose.
            self.read_only = None;
        }
        self.fail(Notice::LeadChanged {
            lead: AccountId(account),
            epoch,
        });
    }
}
