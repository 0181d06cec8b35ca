//! The judgement of a message that a worker has received: what is removed from its header, what is added, and who gets it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use vere_judge::{Facts, Judgement, RecipientVerdict, Verdict};
use vere_settings::{Settings, Threshold};
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Message, SessionInfo};
use vere_telemetry::log::MAIL_TARGET;
use vere_telemetry::trace::{Event, EventKind, FACTS_OCTETS_MAX};
use vere_units::TraceId;

use super::clock;
use super::process::Process;
use vere_routing::Router;

/// Attachments that are kept with the facts in the trace where all of them are too long.
const TRACED_ATTACHMENTS: usize = 8;

/// What a worker knows of a message.
#[derive(Debug)]
pub(super) struct Gathered {
    /// The facts.
    pub(super) facts: Facts,
    /// Fields with the results of authentication, to stand above the header.
    pub(super) results: Vec<u8>,
}

/// The recipients of a message with one verdict.
#[derive(Debug)]
pub(super) struct Class {
    /// Fields to stand above the header.
    pub(super) fields: Vec<u8>,
    /// Whether the message is kept aside from these recipients.
    pub(super) is_quarantined: bool,
    /// The recipients.
    pub(super) recipients: Vec<RcptTo>,
}

/// Judges a message, and removes fields from its header that only this system may write. Where nothing was gathered, nothing is judged, and all
/// recipients are of one class.
///
/// # Errors
/// The refusal for the client, by the rules.
pub(super) fn judge(
    process: &Process,
    trace: TraceId,
    message: &mut Message,
    gathered: Option<Gathered>,
) -> Result<Vec<Class>, Refusal> {
    let (Some(judge), Some(gathered)) = (process.judge(), gathered) else {
        return Ok(vec![unjudged(message)]);
    };
    let settings = process.settings();
    remove_foreign(&mut message.body, &settings.hostname);
    let addresses = addresses(&process.router, &settings, message);
    let recipients: Vec<_> = addresses.iter().map(String::as_str).collect();
    let judgement = judge.judge(&gathered.facts, &recipients);
    process.metrics.judged(&judgement);
    let refusal = refusal(&judgement, trace);
    note(
        process,
        trace,
        message,
        (&gathered.facts, &judgement),
        refusal.as_ref(),
    );
    match refusal {
        Some(refusal) => Err(refusal),
        None => Ok(classes(&judgement, gathered.results, message)),
    }
}

/// The one class of a message that nobody judges.
fn unjudged(message: &mut Message) -> Class {
    Class {
        fields: Vec::new(),
        is_quarantined: false,
        recipients: std::mem::take(&mut message.recipients),
    }
}

/// Removes `X-Spam-*`, and the results of authentication that claim to be ours (RFC 8601 section 5).
fn remove_foreign(body: &mut Vec<u8>, hostname: &str) {
    let mut ranges = vere_judge::foreign_fields(body);
    ranges.extend(vere_auth::foreign_fields(body, hostname));
    ranges.sort_by_key(|range| range.start);
    for range in ranges.into_iter().rev() {
        body.drain(range);
    }
}

/// The addresses by which thresholds are found: behind an alias that leads to one address, that address.
fn addresses(router: &Router, settings: &Settings, message: &Message) -> Vec<String> {
    let has_policies = settings
        .judging
        .as_ref()
        .is_some_and(|judging| !judging.policies.is_empty());
    let recipients = message.recipients.iter().map(|rcpt| {
        let given = rcpt.forward_path.as_str();
        let found = match has_policies {
            true => router.find(settings, &rcpt.forward_path).ok(),
            false => None,
        };
        let mut targets = found.map(|found| found.into_targets()).unwrap_or_default();
        match (targets.pop(), targets.is_empty()) {
            (Some((_, address)), true) => address,
            _ => given.to_owned(),
        }
    });
    recipients.collect()
}

/// The refusal of a message. It names the message, so that `vere explain` can tell the sender's postmaster more.
fn refusal(judgement: &Judgement, trace: TraceId) -> Option<Refusal> {
    let reply = judgement.reply()?;
    Some(Refusal::Site {
        permanent: judgement.verdict == Verdict::Reject,
        text: format!("{}, id {trace}", reply.text),
    })
}

/// Groups the recipients by what is done for them.
fn classes(judgement: &Judgement, results: Vec<u8>, message: &mut Message) -> Vec<Class> {
    let mut groups: Vec<((Verdict, Threshold), Class)> = Vec::new();
    let recipients = std::mem::take(&mut message.recipients);
    for (rcpt, verdict) in recipients.into_iter().zip(&judgement.recipients) {
        let kind = (verdict.verdict, verdict.required);
        match groups.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, class)) => class.recipients.push(rcpt),
            None => groups.push((kind, class(judgement, &results, verdict, rcpt))),
        }
    }
    groups.into_iter().map(|(_, class)| class).collect()
}

fn class(judgement: &Judgement, results: &[u8], verdict: &RecipientVerdict, rcpt: RcptTo) -> Class {
    let mut fields = judgement.fields(verdict).into_bytes();
    fields.extend_from_slice(results);
    Class {
        fields,
        is_quarantined: verdict.verdict == Verdict::Quarantine,
        recipients: vec![rcpt],
    }
}

/// Writes the judgement into the trace and, unless the message goes on as it is, the log.
fn note(
    process: &Process,
    trace: TraceId,
    message: &Message,
    (facts, judgement): (&Facts, &Judgement),
    refusal: Option<&Refusal>,
) {
    let session: &SessionInfo = &message.session;
    let reverse_path = message.reverse_path.reverse_path.as_str();
    let (verdict, score) = (judgement.verdict.name(), judgement.score.to_string());
    let (rules, reply) = (judgement.summary(), refusal.map(ToString::to_string));
    let facts = traced(facts);
    process.note(&Event {
        reverse_path: Some(reverse_path),
        recipients: u32::try_from(judgement.recipients.len()).ok(),
        peer: Some(session.address),
        verdict: Some(verdict),
        score: Some(&score),
        rules: Some(&rules),
        facts: Some(&facts),
        reply: reply.as_deref(),
        ..Event::new(EventKind::Judged, trace, clock::now())
    });
    if judgement.verdict > Verdict::Accept {
        tracing::info!(
            target: MAIL_TARGET,
            queue_id = %trace,
            client = %session.address.ip().to_canonical(),
            reverse_path,
            verdict,
            score,
            rules,
            "judged"
        );
    }
}

/// The facts as the trace keeps them. Facts with many attachments are kept without most of them.
fn traced(facts: &Facts) -> String {
    let text = STANDARD.encode(facts.encode());
    if text.len() <= FACTS_OCTETS_MAX {
        return text;
    }
    let mut fewer = facts.clone();
    if let Some(structure) = &mut fewer.structure {
        structure.attachments.truncate(TRACED_ATTACHMENTS);
        fewer.cut = true;
    }
    STANDARD.encode(fewer.encode())
}
