//! A message while filters are asked about it, in turn.

use std::mem;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vere_milter::{Change, Session, apply, apply_to_recipients};

use crate::failure::Failure;
use crate::filter::Filter;
use crate::findings::{Answer, Deferral, Findings};
use crate::outcome::{Asked, Verdict};

/// The largest message, in octets, that is changed on the thread of the caller: a larger one would delay other tasks.
const CHANGE_HERE_MAX: usize = 256 * 1024;

/// The message and its envelope as changed so far.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    session: Session<'a>,
    message: Bytes,
    is_changed: bool,
    reverse_path: String,
    recipients: Vec<String>,
    findings: Findings,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(message: &Bytes, session: &Session<'a>) -> Self {
        Self {
            session: *session,
            message: message.clone(),
            is_changed: false,
            reverse_path: session.reverse_path.to_owned(),
            recipients: session
                .recipients
                .iter()
                .map(|to| (*to).to_owned())
                .collect(),
            findings: Findings::default(),
        }
    }

    pub(crate) const fn message(&self) -> &Bytes {
        &self.message
    }

    /// Asks a filter, and applies its changes.
    pub(crate) async fn ask(&mut self, filter: &Filter) -> Asked {
        let recipients: Vec<&str> = self.recipients.iter().map(String::as_str).collect();
        let session = Session {
            reverse_path: &self.reverse_path,
            recipients: &recipients,
            ..self.session
        };
        let mut asked = filter.ask(&self.message, &session).await;
        if let Asked::Answered(outcome) = &mut asked {
            let changes = mem::take(&mut outcome.changes);
            let goes_on = matches!(outcome.verdict, Verdict::Accept | Verdict::Quarantine(_));
            outcome.changes = match self.changed(changes, goes_on).await {
                Some(changes) => changes,
                None => return Asked::Unavailable(Failure::NotApplied),
            };
        }
        asked
    }

    /// Applies changes where the message goes on, and returns the changes without bodies.
    async fn changed(&mut self, mut changes: Vec<Change>, goes_on: bool) -> Option<Vec<Change>> {
        if goes_on && changes.iter().any(is_of_message) {
            let message = self.message.clone();
            let change = move || (Bytes::from(apply(&message, &changes)), changes);
            (self.message, changes) = match self.message.len() <= CHANGE_HERE_MAX {
                true => change(),
                // The task does not panic, and is cancelled only at the end of the process.
                false => spawn_blocking(change).await.ok()?,
            };
            self.is_changed = true;
        }
        if goes_on {
            let recipients: Vec<&str> = self.recipients.iter().map(String::as_str).collect();
            let envelope = apply_to_recipients(&self.reverse_path, &recipients, &changes);
            self.reverse_path = envelope.0;
            // The message is kept aside for the recipients so far, and later filters see the stored message.
            match envelope.1.is_empty() {
                true => self.findings.is_discarded = true,
                false => self.recipients = envelope.1,
            }
        }
        for change in &mut changes {
            if let Change::ReplaceBody(body) = change {
                *body = Vec::new();
            }
        }
        Some(changes)
    }

    /// Adds an answer to the findings.
    pub(crate) fn note(&mut self, answer: Answer, defers_unavailable: bool) {
        match &answer.asked {
            Asked::Answered(outcome) => self.findings.answered(&answer.filter, outcome),
            Asked::Unavailable(failure) if defers_unavailable => {
                self.findings.defer = Some(Deferral {
                    filter: answer.filter.clone(),
                    reason: failure.to_string(),
                });
            }
            Asked::Unavailable(_) | Asked::Skipped { .. } => {}
        }
        self.findings.answers.push(answer);
    }

    /// The findings with the changes of message and envelope.
    pub(crate) fn end(self) -> Findings {
        let mut findings = self.findings.bounded();
        findings.message = self.is_changed.then_some(self.message);
        let before = self.session.recipients;
        let is_same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        for to in before {
            if !self.recipients.iter().any(|other| is_same(to, other)) {
                findings.deleted.push((*to).to_owned());
            }
        }
        let is_new = |to: &String| !before.iter().any(|other| is_same(to, other));
        findings.added = self.recipients.into_iter().filter(is_new).collect();
        findings.reverse_path =
            (self.reverse_path != self.session.reverse_path).then_some(self.reverse_path);
        findings
    }
}

/// Whether a change is one of header or body, and not of the envelope.
const fn is_of_message(change: &Change) -> bool {
    match change {
        Change::AddHeader { .. }
        | Change::InsertHeader { .. }
        | Change::ChangeHeader { .. }
        | Change::ReplaceBody(_) => true,
        Change::AddRecipient { .. } | Change::DeleteRecipient(_) | Change::ChangeFrom { .. } => {
            false
        }
    }
}
