//! MAIL: a transaction begins (RFC 5321 section 4.1.1.2).

use crate::address::ReversePath;
use crate::command::{BodyType, MailFrom};
use crate::refusal::Refusal;

use super::config::Role;
use super::output::Fixed;
use super::question::Question;
use super::session::Transaction;
use super::{About, Server, replies};

impl Server {
    /// Checks the command, then asks whether the sender may send.
    pub(super) fn mail(&mut self, mut mail: MailFrom) {
        if self.counts.transactions >= self.config.limits.transactions_max {
            return self.close_with(replies::TOO_MANY_TRANSACTIONS);
        }
        self.counts.transactions = self.counts.transactions.saturating_add(1);
        if let Err(reply) = self.check_mail(&mail) {
            self.notes.refused(&mail, None, reply);
            return self.fail(reply);
        }
        if self.account().is_none() && mail.auth.is_some() {
            // Only an authenticated client is believed (RFC 4954 section 5).
            mail.auth = Some(ReversePath::Null);
        }
        if !self.may_prioritise() && mail.priority > Some(0) {
            mail.priority = Some(0);
            self.session.priority_lowered = true;
        }
        self.ask(Question::Mail(mail.clone()), About::Mail(mail));
    }

    /// Whether what the client says of priorities is believed (RFC 6710 section 4.1).
    fn may_prioritise(&self) -> bool {
        self.peer.may_prioritise || self.account().is_some()
    }

    fn check_mail(&self, mail: &MailFrom) -> Result<(), Fixed> {
        if self.session.helo.is_none() {
            return Err(replies::EHLO_FIRST);
        }
        if self.session.transaction.is_some() {
            return Err(replies::NESTED_MAIL);
        }
        if self.config.role == Role::Submission && self.account().is_none() && !self.peer.may_relay
        {
            return Err(if self.may_auth() {
                replies::AUTH_FIRST
            } else {
                replies::TLS_FIRST
            });
        }
        let offered = self.config.extensions;
        let unknown = mail.body == BodyType::BinaryMime && !offered.chunking
            || mail.smtputf8 && !offered.smtputf8
            || (mail.ret.is_some() || mail.envid.is_some()) && !offered.dsn
            || mail.priority.is_some() && self.config.mt_priority().is_none()
            || mail.require_tls && !(offered.require_tls && self.peer.tls.is_some());
        if unknown || (!self.session.esmtp && mail.has_parameters()) {
            return Err(replies::PARAMETER_UNKNOWN);
        }
        if !mail.smtputf8 && !mail.reverse_path.is_ascii() {
            return Err(replies::ADDRESS_NEEDS_UTF8);
        }
        if mail
            .size
            .is_some_and(|size| size > self.config.limits.message_size_max.as_u64())
        {
            return Err(replies::TOO_BIG);
        }
        Ok(())
    }

    pub(super) fn mail_answered(&mut self, mail: MailFrom, result: Result<(), Refusal>) {
        let lowered = std::mem::take(&mut self.session.priority_lowered);
        match result {
            Ok(()) => {
                self.session.transaction = Some(Box::new(Transaction {
                    mail,
                    recipients: Vec::new(),
                    recipients_refused: 0,
                    chunks: None,
                }));
                self.output.fixed(if lowered {
                    replies::PRIORITY_LOWERED
                } else {
                    replies::MAIL_OK
                });
            }
            Err(refusal) => {
                self.refuse(&refusal);
                self.count_refused(&refusal);
            }
        }
    }
}
