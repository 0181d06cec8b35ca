//! What the machine decided by itself, for whoever keeps a log: what the host answered it knows.

use vere_sasl::server::Login;

use crate::command::{MailFrom, RcptTo};

use super::output::Fixed;

/// Notes that are kept until they are taken, of each kind; what comes after them is left out.
const NOTES_MAX: usize = 32;

/// What happened since the notes were last taken.
#[derive(Debug, Default)]
pub struct Notes {
    /// Attempts to log in that ended.
    pub logins: Vec<Login>,
    /// Transactions, recipients and messages refused without a question.
    pub refused: Vec<Refused>,
}

/// A transaction, recipient or message that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The reverse-path without brackets.
    pub reverse_path: String,
    /// The recipient, if it is about one.
    pub recipient: Option<String>,
    /// The reply: code, status code and text.
    pub reply: String,
}

impl Notes {
    /// Whether there is nothing to take.
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
