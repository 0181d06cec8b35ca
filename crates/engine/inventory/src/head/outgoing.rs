//! Mails on the way into the mailbox `head` of accounts, each tried again after an outage, and never stored twice.

use bytes::Bytes;
use vere_ports::mail_accounts::{Answer, Fault, Request};

use crate::format::MailId;
use crate::format::subject::id_word;
use vere_placement::accounts::{HEAD_MAILBOX, mailbox_name};

/// Attempts for a mail: the pauses between double from a second on; the last attempt comes after 15 s.
const ATTEMPTS_MAX: u8 = 5;
/// Requests under way.
const ASKED_MAX: usize = 8;

/// Mails on the way.
#[derive(Debug, Default)]
pub struct Mails(Vec<Outgoing>);

#[derive(Debug)]
struct Outgoing {
    account: u16,
    id: MailId,
    mail: Bytes,
    attempts: u8,
    /// Why the last attempt failed.
    fault: String,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// The account may have the mail.
    Doubtful,
    Asked,
    Stored,
    Failed(String),
}

impl Mails {
    /// A mail for an account.
    pub fn add(&mut self, account: u16, id: MailId, mail: Bytes) {
        self.0.push(Outgoing {
            account,
            id,
            mail,
            attempts: 0,
            fault: String::new(),
            state: State::Waiting,
        });
    }

    /// The next request, to an account that may be asked.
    pub fn next(&mut self, may_try: impl Fn(u16) -> bool) -> Option<(usize, u16, Request)> {
        let is_asked = |mail: &&Outgoing| mail.state == State::Asked;
        if self.0.iter().filter(is_asked).count() >= ASKED_MAX {
            return None;
        }
        let is_ready = |mail: &Outgoing| {
            // Somebody waits: a resting account is tried once as well.
            let may_try = mail.attempts == 0 || may_try(mail.account);
            may_try && matches!(mail.state, State::Waiting | State::Doubtful)
        };
        let number = self.0.iter().position(is_ready)?;
        let mail = self.0.get_mut(number)?;
        let mailbox = mailbox_name(HEAD_MAILBOX);
        let request = match mail.state {
            State::Doubtful => Request::Find {
                mailbox,
                word: id_word(mail.id),
            },
            _ => Request::Append {
                mailbox,
                mail: mail.mail.clone(),
                alone: true,
            },
        };
        mail.state = State::Asked;
        Some((number, mail.account, request))
    }

    /// The account has answered the request for a mail.
    pub fn answered(&mut self, number: usize, answer: Result<Answer, Fault>) {
        let Some(mail) = self.0.get_mut(number) else {
            return;
        };
        mail.state = match answer {
            Ok(Answer::Appended(_)) => State::Stored,
            Ok(Answer::Found(_, uids)) if !uids.is_empty() => State::Stored,
            Ok(Answer::Found(..)) => State::Waiting,
            Ok(_) => State::Failed("the answer is to another request".to_owned()),
            Err(fault) => {
                mail.attempts = mail.attempts.saturating_add(1);
                mail.fault = fault.to_string();
                match fault {
                    Fault::Unreachable(_) if mail.attempts < ATTEMPTS_MAX => State::Doubtful,
                    Fault::Throttled(..) if mail.attempts < ATTEMPTS_MAX => State::Waiting,
                    fault => State::Failed(fault.to_string()),
                }
            }
        };
    }

    /// Mails that wait for another attempt get none.
    pub fn give_up(&mut self) {
        for mail in &mut self.0 {
            if matches!(mail.state, State::Waiting | State::Doubtful) {
                mail.state = State::Failed(format!("the account fails: {}", mail.fault));
            }
        }
    }

    /// Whether every mail is stored or given up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_over = |mail: &Outgoing| matches!(mail.state, State::Stored | State::Failed(_));
        self.0.iter().all(is_over)
    }

    /// Accounts that lack a mail, with the reason.
    pub fn failed(&self) -> impl Iterator<Item = (u16, &str)> {
        self.0.iter().filter_map(|mail| match &mail.state {
            State::Failed(reason) => Some((mail.account, reason.as_str())),
            _ => None,
        })
    }

    /// Mails stored, and all.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let is_stored = |mail: &&Outgoing| mail.state == State::Stored;
        (self.0.iter().filter(is_stored).count(), self.0.len())
    }
}
