//! Mails read whole and verified, a few at a time.

use std::collections::VecDeque;

use vere_ports::mail_accounts::{Answer, Fault, Request};

use crate::format::{FormatError, MailCopy, Subject};

use vere_placement::accounts::mailbox_name;
pub use vere_sealing::job::Inspected;

/// Mails read at once.
const READS_MAX: usize = 8;

/// A mail to be verified.
#[derive(Debug, Clone)]
pub struct Suspect {
    /// The place of the mail.
    pub copy: MailCopy,
    /// UIDVALIDITY of the mailbox.
    pub uid_validity: u32,
    /// The subject of the mail.
    pub subject: Subject,
}

/// What a mail is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The mail of the subject, every octet of it.
    Good(Inspected),
    /// Another mail, or a damaged one.
    Bad(String),
    /// The account does not say.
    Unread(String),
}

/// Mails that are read.
#[derive(Debug, Default)]
pub struct Inspection {
    suspects: Vec<Suspect>,
    waiting: VecDeque<usize>,
    reading: usize,
    verdicts: Vec<(Suspect, Verdict)>,
}

impl Inspection {
    /// All of them wait.
    #[must_use]
    pub fn new(suspects: Vec<Suspect>) -> Self {
        Self {
            waiting: (0..suspects.len()).collect(),
            suspects,
            reading: 0,
            verdicts: Vec::new(),
        }
    }

    /// A mail by number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&Suspect> {
        self.suspects.get(number)
    }

    /// The next mail to read, if there is room.
    pub fn poll(&mut self) -> Option<(usize, Request)> {
        if self.reading >= READS_MAX {
            return None;
        }
        let number = self.waiting.pop_front()?;
        let suspect = self.suspects.get(number)?;
        self.reading = self.reading.saturating_add(1);
        let request = Request::Read {
            mailbox: mailbox_name(suspect.copy.mailbox),
            uid_validity: suspect.uid_validity,
            uid: suspect.copy.uid,
            parts: Vec::new(),
        };
        Some((number, request))
    }

    /// The octets of an answer; without any the verdict is known.
    pub fn answered(
        &mut self,
        number: usize,
        answer: Result<Answer, Fault>,
    ) -> Option<bytes::Bytes> {
        let verdict = match answer {
            Ok(Answer::Read(parts)) => match parts.into_iter().next() {
                Some(body) => return Some(body),
                None => Verdict::Bad("expected a body; found none".to_owned()),
            },
            Ok(Answer::Gone) => Verdict::Bad("the mail is gone".to_owned()),
            Ok(_) => Verdict::Unread("the answer is to another request".to_owned()),
            Err(fault) => Verdict::Unread(fault.to_string()),
        };
        self.judged(number, verdict);
        None
    }

    /// The mail was opened.
    pub fn opened(&mut self, number: usize, opened: Result<Inspected, FormatError>) {
        let verdict = opened.map_or_else(|error| Verdict::Bad(error.to_string()), Verdict::Good);
        self.judged(number, verdict);
    }

    fn judged(&mut self, number: usize, verdict: Verdict) {
        self.reading = self.reading.saturating_sub(1);
        if let Some(suspect) = self.suspects.get(number) {
            self.verdicts.push((suspect.clone(), verdict));
        }
    }

    /// Mails verified, and all.
    pub fn progress(&self) -> (usize, usize) {
        (self.verdicts.len(), self.suspects.len())
    }

    /// Whether every mail has its verdict.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.reading == 0
    }

    /// The verdicts.
    #[must_use]
    pub fn finish(self) -> Vec<(Suspect, Verdict)> {
        self.verdicts
    }
}
