//! DATA: the text of the message, up to the lone dot (RFC 5321 section 4.1.1.4), and the end of a
//! transaction by whatever way the text came.

use vere_units::Timestamp;

use crate::command::BodyType;
use crate::refusal::Refusal;
use crate::reply::EnhancedStatusCode;

use super::collector::{Collector, Fault, Form, TextLimits};
use super::config::Role;
use super::message::Message;
use super::question::Question;
use super::{About, Phase, Server, replies};

impl Server {
    pub(super) fn data(&mut self, now: Timestamp) {
        let Some(transaction) = self.session.transaction.as_deref() else {
            return self.fail(replies::MAIL_FIRST);
        };
        if transaction.chunks.is_some() {
            return self.fail(replies::CHUNKS_BEGUN);
        }
        if transaction.recipients.is_empty() {
            return self.fail(replies::NO_RECIPIENTS);
        }
        if transaction.mail.body == BodyType::BinaryMime {
            return self.fail(replies::BINARY_NEEDS_BDAT);
        }
        self.output.fixed(replies::START_DATA);
        let collector = Collector::new(Form::Dotted, self.text_limits(), now);
        self.phase = Phase::Data(Box::new(collector));
    }

    pub(super) fn text_limits(&self) -> TextLimits {
        TextLimits {
            size_max: self.config.limits.message_size_max.as_u64(),
            line_octets_max: self.config.limits.text_line_octets_max,
            nul: self.config.limits.text_nul,
        }
    }

    pub(super) fn take_text(&mut self, bytes: &[u8], now: Timestamp) -> usize {
        let Phase::Data(collector) = &mut self.phase else {
            return 0;
        };
        self.waiting_since = now;
        let (taken, ended) = collector.take(bytes);
        collector.pace().take(taken, &self.config.limits, now);
        if ended {
            if let Phase::Data(collector) = std::mem::replace(&mut self.phase, Phase::Command) {
                self.end_message(collector.finish());
            }
        } else if collector.refused() > self.config.limits.refused_size_max.as_u64() {
            self.close_with(replies::REFUSED_TOO_MUCH);
        }
        taken
    }

    /// Ends the transaction: the host has to make the message safe, or its text is refused.
    pub(super) fn end_message(&mut self, text: Result<(u64, Vec<u8>), Fault>) {
        let Some(transaction) = self.session.transaction.take() else {
            return self.fail(replies::MAIL_FIRST);
        };
        let recipients = transaction.recipients.len();
        match text {
            Ok((aside, body)) => {
                let session = self.session_info(&transaction.mail);
                let message = Message {
                    reverse_path: transaction.mail,
                    recipients: transaction.recipients,
                    aside,
                    body,
                    session,
                };
                self.ask(
                    Question::Message(Box::new(message)),
                    About::Message(recipients),
                );
            }
            Err(fault) => {
                let reply = replies::fault(fault);
                self.notes.refused(&transaction.mail, None, reply);
                // LMTP answers for each recipient, also where all are refused (RFC 2033 section 4.2).
                let answers = match self.config.role {
                    Role::Lmtp => recipients,
                    Role::Mx | Role::Submission => 1,
                };
                for _ in 0..answers {
                    self.refuse_text(fault);
                }
            }
        }
    }

    fn refuse_text(&mut self, fault: Fault) {
        match fault {
            Fault::NoRoom => self.refuse(&Refusal::StorageFull),
            fault => self.fail(replies::fault(fault)),
        }
    }

    /// Answers for each recipient, in order (RFC 2033 section 4.2).
    pub(super) fn filed_answered(&mut self, recipients: usize, results: Vec<Result<(), Refusal>>) {
        self.counts.idle_commands = 0;
        // A recipient without an answer from the host counts as not filed.
        let missing = || Err(Refusal::LocalError);
        let results = results.into_iter().chain(std::iter::repeat_with(missing));
        for result in results.take(recipients) {
            match result {
                Ok(()) => self.output.fixed(replies::FILED),
                Err(refusal) => self.refuse(&refusal),
            }
        }
    }

    pub(super) fn message_answered(&mut self, result: Result<String, Refusal>) {
        match result {
            Ok(id) => {
                self.counts.idle_commands = 0;
                let status = EnhancedStatusCode::new(2, 0, 0);
                self.output.text(250, status, &format!("queued as {id}"));
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }
}
