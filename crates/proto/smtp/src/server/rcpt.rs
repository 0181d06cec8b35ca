//! RCPT: a recipient is added (RFC 5321 section 4.1.1.3).

use crate::command::RcptTo;
use crate::refusal::Refusal;

use super::output::Fixed;
use super::question::Question;
use super::session::Transaction;
use super::{About, Server, replies};

impl Server {
    /// Checks the command, then asks whether the recipient may be sent to.
    pub(super) fn rcpt(&mut self, rcpt: RcptTo) {
        let Some(transaction) = self.session.transaction.as_deref() else {
            return self.fail(replies::MAIL_FIRST);
        };
        if transaction.recipients.len() >= self.config.limits.recipients_max {
            // The client made no error: a further transaction carries the remaining recipients.
            let reply = replies::TOO_MANY_RECIPIENTS;
            self.notes.refused(&transaction.mail, Some(&rcpt), reply);
            self.output.fixed(reply);
            return self.count_not_taken();
        }
        if let Err(reply) = self.check_rcpt(&rcpt, transaction) {
            self.notes.refused(&transaction.mail, Some(&rcpt), reply);
            return self.fail(reply);
        }
        self.ask(Question::Recipient(rcpt.clone()), About::Recipient(rcpt));
    }

    fn check_rcpt(&self, rcpt: &RcptTo, transaction: &Transaction) -> Result<(), Fixed> {
        if transaction.chunks.is_some() {
            return Err(replies::CHUNKS_BEGUN);
        }
        let offered = self.config.extensions.dsn && self.session.esmtp;
        if rcpt.has_parameters() && !offered {
            return Err(replies::PARAMETER_UNKNOWN);
        }
        if !rcpt.is_ascii() && !transaction.mail.smtputf8 {
            return Err(replies::ADDRESS_NEEDS_UTF8);
        }
        Ok(())
    }

    pub(super) fn rcpt_answered(&mut self, rcpt: RcptTo, result: Result<(), Refusal>) {
        match (result, self.session.transaction.as_mut()) {
            (Ok(()), Some(transaction)) => {
                transaction.recipients.push(rcpt);
                self.output.fixed(replies::RCPT_OK);
            }
            (Ok(()), None) => self.fail(replies::MAIL_FIRST),
            (Err(refusal), _) => {
                self.refuse(&refusal);
                self.count_refused(&refusal);
                self.count_not_taken();
            }
        }
    }

    fn count_not_taken(&mut self) {
        let Some(transaction) = self.session.transaction.as_deref_mut() else {
            return;
        };
        transaction.recipients_refused = transaction.recipients_refused.saturating_add(1);
        if transaction.recipients_refused > self.config.limits.recipients_max {
            self.close_with(replies::TOO_MANY_REFUSED);
        }
    }

    /// Counts permanent refusals: a client with many refusals may be guessing addresses.
    pub(super) fn count_refused(&mut self, refusal: &Refusal) {
        if refusal.is_permanent() {
            self.counts.refusals = self.counts.refusals.saturating_add(1);
            if self.counts.refusals > self.config.limits.refusals_max {
                self.close_with(replies::TOO_MANY_REFUSED);
            }
        }
    }
}
