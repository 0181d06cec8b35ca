//! The copies of a message by verdict, and the verdict for the trace.

use std::net::SocketAddr;
use std::rc::Rc;

use vere_judge::{Facts, Judgement};
use vere_settings::Verdict;
use vere_smtp::command::RcptTo;
use vere_smtp::server::Message;
use vere_telemetry::log::MAIL_TARGET;
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use crate::clock;
use crate::day_reports::dmarc;
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
    /// What is counted once the message is stored; `None` for a message without a score.
    pub(crate) counted: Option<Box<Counted>>,
}

/// A judgement for metrics and reports. A message that the client has to send again is judged again, and counts once.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(in crate::judging) facts: Facts,
    pub(in crate::judging) judgement: Judgement,
    /// The fields with the results of authentication.
    pub(in crate::judging) results: Vec<u8>,
}

impl Counted {
    /// Counts the judgement of a message.
    pub(crate) fn count(&self, process: &Process, message: &Message) {
        count(
            process,
            message,
            (&self.facts, &self.judgement),
            &self.results,
        );
    }
}

/// Counts a judgement in metrics and for reports.
pub(in crate::judging) fn count(
    process: &Process,
    message: &Message,
    judged: (&Facts, &Judgement),
    results: &[u8],
) {
    process.metrics.judged(judged.1);
    dmarc::note(process, message, judged, results);
}

impl Class {
    /// The only class of a message without a score, with all its recipients.
    pub(in crate::judging) fn of_all(message: &mut Message) -> Self {
        Self {
            fields: Vec::new(),
            is_quarantined: false,
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
