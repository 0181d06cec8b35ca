//! A mount from the local disk compares its newest commit with the log as soon as the lead answers. Until then nothing
//! is sent: the log may have been set back, or may hold commits of this machine without a known end.
//!
//! From the comparison on the mount goes on as after a sleep: commits of others are followed, and changes rebased.

use vere_ports::files::Call;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, UidRange, Urgency};
use vere_ports::storage::Storage;

use super::accounts::{LOG_MAILBOX, mailbox_name};
use super::events::RETRY;
use super::found::Found;
use super::state::confirm::ConfirmTicket;
use super::state::{Asked, Volume};
use super::step::Notice;
use crate::format::MailId;

impl<S: Storage> Volume<S> {
    /// Whether the mount has not compared its state with the log yet.
    pub const fn is_unconfirmed(&self) -> bool {
        self.confirm.is_some()
    }

    /// Why the log is not the one of the local disk, so that the mount never sends anything.
    #[must_use]
    pub fn refused_log(&self) -> Option<String> {
        let confirm = self.confirm.as_ref().filter(|of| of.is_refused);
        let reason = confirm.and(self.read_only.as_ref());
        reason.map(ToString::to_string)
    }

    /// Whether a wait for the servers is in vain: the log is another log, and changes of the mount never get there.
    pub(super) fn waits_in_vain(&self) -> bool {
        self.confirm.as_ref().is_some_and(|of| of.is_refused)
    }

    /// Whether a close ends at once: the log is not compared, and only times of reads wait for a commit. A program that has only
    /// read must not wait for a silent lead.
    pub(super) fn ends_clean(&self, call: &Call) -> bool {
        let is_clean = self.commits.since.is_none() && self.commits.changed.is_empty();
        matches!(call, Call::Flush { .. }) && self.is_unconfirmed() && is_clean
    }

    fn has_work(&self) -> bool {
        let commits = &self.commits;
        !commits.pending.is_empty()
            || !commits.changed.is_empty()
            || !commits.abandoned.is_empty()
            || !commits.flights.is_empty()
    }

    /// Asks the lead, unless an answer is on the way.
    pub(super) fn ask_to_confirm(&mut self) {
        let Some(confirm) = &mut self.confirm else {
            return;
        };
        if confirm.asked > 0 || confirm.is_refused {
            return;
        }
        confirm.asked = 2;
        (confirm.log, confirm.has_head, confirm.has_failed) = (None, None, false);
        let (first, head) = (confirm.first, confirm.head);
        let range = UidRange { first, last: None };
        let mailbox = mailbox_name(LOG_MAILBOX);
        let list = Request::List { mailbox, range };
        self.ask_confirming(list, ConfirmTicket::Log);
        self.ask_for_mail(head.uid, ConfirmTicket::Head);
    }

    fn ask_confirming(&mut self, request: Request, ticket: ConfirmTicket) {
        let lead = AccountId(self.terms.lead);
        self.ask(lead, Urgency::Commit, request, Asked::Confirm(ticket));
    }

    fn ask_for_mail(&mut self, uid: u32, ticket: ConfirmTicket) {
        let uid_validity = self.chain.place().uid_validity;
        let request = Request::Read {
            mailbox: mailbox_name(LOG_MAILBOX),
            uid_validity,
            uid,
            parts: Vec::new(),
        };
        self.ask_confirming(request, ticket);
    }

    /// The lead has answered a question of the comparison.
    pub(super) fn confirm_answered(
        &mut self,
        ticket: ConfirmTicket,
        answer: Result<Answer, Fault>,
    ) {
        let Some(mut confirm) = self.confirm.take() else {
            return;
        };
        confirm.asked = confirm.asked.saturating_sub(1);
        match (ticket, answer) {
            (ConfirmTicket::Log, Ok(answer)) => {
                confirm.log = match answer {
                    Answer::Listed {
                        uid_validity,
                        uid_next,
                        mails,
                    } => Some((uid_validity, uid_next, mails)),
                    _ => None,
                };
            }
            (ConfirmTicket::Head, Ok(Answer::Read(parts))) => {
                let body = parts.first().map(|body| &**body).unwrap_or_default();
                let seals = (&*self.seals.keys, self.seals.volume);
                let found = Found::read(confirm.head.uid, body, self.lead_encoding(), seals);
                let has_head = found.is_ok_and(|found| found.id() == confirm.head.commit);
                confirm.has_head = Some(has_head);
            }
            (ConfirmTicket::Head, Ok(_) | Err(Fault::Renumbered { .. })) => {
                confirm.has_head = Some(false);
            }
            (ConfirmTicket::Outside(uid), Ok(answer)) => {
                confirm.uids.insert(uid);
                if let Answer::Read(parts) = answer {
                    let body = parts.into_iter().next().unwrap_or_default();
                    if let Some(child) = self.commit_of(uid, &body) {
                        self.chain.see(uid, child);
                    }
                }
            }
            (_, Err(fault)) => {
                self.account_failed(self.terms.lead, &fault);
                confirm.has_failed = true;
            }
        }
        self.confirm = Some(confirm);
        self.go_on_confirming();
    }

    fn go_on_confirming(&mut self) {
        let Some(confirm) = self.confirm.as_mut().filter(|of| of.asked == 0) else {
            return;
        };
        if confirm.has_failed || confirm.log.is_none() {
            self.retry_at = Some(self.now.steady + RETRY);
            return;
        }
        let is_same =
            |(uid_validity, ..): &(u32, u32, _)| *uid_validity == confirm.head.uid_validity;
        if confirm.has_head != Some(true) || !confirm.log.as_ref().is_some_and(is_same) {
            confirm.is_refused = true;
            let generation = confirm.head.generation;
            self.fail(Notice::Unconfirmed(generation));
            return;
        }
        let unread = confirm.unread();
        confirm.asked = unread.len();
        for uid in &unread {
            self.ask_for_mail(*uid, ConfirmTicket::Outside(*uid));
        }
        if unread.is_empty() {
            self.confirmed();
        }
    }

    /// The log goes on from the state of the mount: changes of others come, and own ones go.
    fn confirmed(&mut self) {
        let confirm = self.confirm.take();
        self.leave_ancestors(confirm.as_ref().map_or(MailId::NONE, |of| of.below));
        let log = confirm.and_then(|confirm| confirm.log);
        self.memory.seen(self.now.millis());
        if let Some((uid_validity, uid_next, mails)) = log {
            self.log_answered(Ok(Answer::Listed {
                uid_validity,
                uid_next,
                mails,
            }));
        }
        self.upload_more();
        self.build_ready();
        self.resume_blocked();
        self.make_copies();
        self.tend_checkpoints();
    }

    /// Commits of the chain below those of the local disk were read, and are no open commits.
    fn leave_ancestors(&mut self, mut parent: MailId) {
        while let Some(ancestor) = self.follow.outside.remove(&parent) {
            parent = ancestor.found.record.parent;
            self.follow.named(&ancestor.found.record.merged);
        }
    }

    /// While the mount may not send, calls without work end at once: as far as the machine remembers, the lead has every change.
    /// Where the user wants several copies, calls wait for the comparison, and then for the copy: the state of the copy is unknown.
    pub(super) fn release_idle(&mut self) {
        if self.has_work() {
            return;
        }
        self.commits.since = None;
        if self.mirrors_wanted() > 0 {
            self.commits.wants.retain(|want| !want.waiters.is_empty());
            return;
        }
        for want in std::mem::take(&mut self.commits.wants) {
            for (call, reply) in want.waiters {
                self.reply(call, Ok(reply));
            }
        }
    }

    /// The next mount reads the log, where the log is the reason of a stop.
    pub(super) fn doubt_memory(&mut self, notice: &Notice) {
        let doubts = matches!(
            notice,
            Notice::Unconfirmed(_)
                | Notice::Gap { .. }
                | Notice::Renumbered(_)
                | Notice::LeadChanged { .. }
                | Notice::NewKeys
                | Notice::Revoked(_)
                | Notice::Behind
                | Notice::Rows(_)
        );
        if doubts {
            self.memory.give_up();
        }
    }
}
