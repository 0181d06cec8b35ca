//! APPEND (RFC 9051 section 6.3.12, RFC 3516 section 4.4, RFC 4315).

use bytes::Bytes;

use crate::command::AppendCommand;

use super::answer::Appended;
use super::question::{AppendQuery, Question};
use super::refusal::Refusal;
use super::{About, Server};

impl Server {
    /// `text` is the command, with the message at the end.
    pub(super) fn append(&mut self, tag: String, command: AppendCommand, text: Vec<u8>) {
        let text = Bytes::from(text);
        let end = text.len().saturating_sub(command.behind);
        let message = text.slice(end.saturating_sub(command.octets)..end);
        if message.is_empty() {
            return self.complete(tag, "NO [CANNOT] a message has at least one octet");
        }
        // RFC 3516 section 4.4: only a literal8 may have NUL.
        if !command.binary && memchr::memchr(0, &message).is_some() {
            return self.bad(Some(&tag), "NUL may not stand here");
        }
        let query = AppendQuery {
            mailbox: command.mailbox,
            flags: command.flags,
            date: command.date,
            message,
        };
        self.ask(Question::Append(Box::new(query)), About::Append(tag));
    }

    pub(super) fn append_answered(&mut self, tag: String, result: Result<Appended, Refusal>) {
        match result {
            Ok(appended) => {
                // The target may be the open mailbox.
                if let Some(selected) = self.selected() {
                    selected.dirty = true;
                }
                let Appended { uid_validity, uid } = appended;
                self.complete(tag, &format!("OK [APPENDUID {uid_validity} {uid}] kept"));
            }
            Err(Refusal::NoMailbox) => self.no(tag, Refusal::NoTarget),
            Err(refusal) => self.no(tag, refusal),
        }
    }
}
