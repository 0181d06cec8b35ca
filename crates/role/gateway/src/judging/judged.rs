//! The copies of a message by verdict, and the verdict for the trace.

use std::net::SocketAddr;
use std::rc::Rc;

use vere_settings::Verdict;
use vere_smtp::command::RcptTo;
use vere_smtp::server::Message;
use vere_telemetry::log::MAIL_TARGET;
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use crate::clock;
use crate::process::Process;

/// The recipients of a message with one verdict.
#[derive(Debug)]
pub(crate) struct Class {
    /// Fields to stand above the header.
    pub(crate) fields: Vec<u8>,
    /// Whether the message is kept aside from the recipients.
    pub(crate) is_quarantined: bool,
    /// The recipients.
    pub(crate) recipients: Vec<RcptTo>,
    /// The event about the judgement; `None` for a message without one, or with one in the trace already.
    pub(crate) told: Option<Rc<Told>>,
}

/// A judged message that is accepted.
#[derive(Debug)]
pub(crate) struct Judged {
    /// The copies, by recipients.
    pub(crate) classes: Vec<Class>,
}

impl Class {
    /// The only class of a message without a score, with all its recipients.
    pub(in crate::judging) fn of_all(message: &mut Message, is_quarantined: bool) -> Self {
        Self {
            fields: Vec::new(),
            is_quarantined,
            recipients: std::mem::take(&mut message.recipients),
            told: None,
        }
    }
}

/// A judgement, as the trace has it.
#[derive(Debug)]
pub(crate) struct Told {
    /// The sender as the client named it: a filter may have changed the sender since.
    pub(in crate::judging) reverse_path: String,
    pub(in crate::judging) client: SocketAddr,
    pub(in crate::judging) verdict: Verdict,
    /// The score; a submitted message has none.
    pub(in crate::judging) score: Option<String>,
    pub(in crate::judging) rules: String,
    pub(in crate::judging) recipients: Option<u32>,
    /// The facts; a submitted message has none.
    pub(in crate::judging) facts: Option<String>,
    pub(in crate::judging) reply: Option<String>,
}

impl Told {
    /// Writes the judgement into the trace of a message or of a copy.
    pub(crate) fn write(&self, process: &Process, trace: TraceId) {
        process.note(&Event {
            reverse_path: Some(&self.reverse_path),
            recipients: self.recipients,
            peer: Some(self.client),
            verdict: Some(self.verdict.name()),
            score: self.score.as_deref(),
            rules: Some(&self.rules),
            facts: self.facts.as_deref(),
            reply: self.reply.as_deref(),
            ..Event::new(EventKind::Judged, trace, clock::now())
        });
    }

    /// Writes a line, unless the message goes on unchanged.
    pub(in crate::judging) fn log(&self, trace: TraceId) {
        if self.verdict > Verdict::Accept {
            tracing::info!(
                target: MAIL_TARGET,
                queue_id = %trace,
                client = %self.client.ip().to_canonical(),
                reverse_path = self.reverse_path,
                verdict = self.verdict.name(),
                score = self.score.as_deref(),
                rules = self.rules,
                "judged"
            );
        }
    }
}
