//! The machine's own decisions, for the log of the host, which knows its own answers already.

use vere_sasl::server::Login;

use crate::command::{MailFrom, RcptTo};

use super::output::Fixed;

/// Number of notes of each kind kept for the host; further notes are dropped.
const NOTES_MAX: usize = 32;

/// The events since the last call.
#[derive(Debug, Default)]
pub struct Notes {
    /// Ended login attempts.
    pub logins: Vec<Login>,
    /// Transactions, recipients and messages refused without a question.
    pub refused: Vec<Refused>,
}

/// A refused transaction, recipient or message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The reverse-path without brackets.
    pub reverse_path: String,
    /// The recipient, if the refusal concerns a recipient.
    pub recipient: Option<String>,
    /// The reply: code, status code and text.
    pub reply: String,
}

impl Notes {
    /// Whether there are no notes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.logins.is_empty() && self.refused.is_empty()
    }

    pub(super) fn login(&mut self, login: Login) {
        if self.logins.len() < NOTES_MAX {
            self.logins.push(login);
        }
    }

    pub(super) fn refused(&mut self, mail: &MailFrom, rcpt: Option<&RcptTo>, reply: Fixed) {
        if self.refused.len() >= NOTES_MAX {
            return;
        }
        let Fixed { code, status, text } = reply;
        self.refused.push(Refused {
            reverse_path: mail.reverse_path.as_str().to_owned(),
            recipient: rcpt.map(|rcpt| rcpt.forward_path.as_str().to_owned()),
            reply: match status {
                Some(status) => format!("{code} {status} {text}"),
                None => format!("{code} {text}"),
            },
        });
    }
}
