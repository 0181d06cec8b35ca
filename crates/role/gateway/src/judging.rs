//! The judgement of a message received by a worker: fields removed from the header, fields added, and recipients by verdict.

use std::net::SocketAddr;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use vere_judge::{Facts, Judge, Judgement, RecipientVerdict, Verdict};
use vere_settings::{Settings, Threshold};
use vere_smtp::address::{ForwardPath, ReversePath};
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_telemetry::log::MAIL_TARGET;
use vere_telemetry::trace::{Event, EventKind, FACTS_OCTETS_MAX};
use vere_units::TraceId;

use super::day_reports::dmarc;
use super::process::Process;
use super::service::Service;
use super::{clock, filtering, known};
use vere_routing::Router;

/// Attachments kept in the trace where the facts with all attachments are too long.
const TRACED_ATTACHMENTS: usize = 8;

/// A worker's knowledge of a message.
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
    /// Whether the message is kept aside from the recipients.
    pub(super) is_quarantined: bool,
    /// The recipients.
    pub(super) recipients: Vec<RcptTo>,
    /// The event about the judgement; `None` for a message without judgement.
    pub(super) told: Option<Rc<Told>>,
}

/// A judged message that is accepted.
#[derive(Debug)]
pub(super) struct Judged {
    /// The copies, by recipients.
    pub(super) classes: Vec<Class>,
}

/// Judges a message: removes header fields with the names of this system's own, asks the content filters, applies the changes of filters, and applies the
/// rules. Without gathered facts a message is not judged, and all recipients are of one class.
///
/// # Errors
/// The refusal for the client, by the rules or for want of a filter.
pub(super) async fn judge(
    process: &Process,
    service: Service,
    trace: TraceId,
    message: &mut Message,
    gathered: Option<Gathered>,
) -> Result<Judged, Refusal> {
    let (Some(judge), Some(mut gathered)) = (process.judge(), gathered) else {
        return Ok(Judged {
            classes: vec![unjudged(message)],
        });
    };
    let settings = process.settings();
    let reverse_path = message.reverse_path.reverse_path.as_str().to_owned();
    remove_foreign(&mut message.body, &settings.hostname);
    let is_discarded = filter(process, service, trace, message, &mut gathered.facts).await?;
    let Gathered { facts, results } = gathered;
    let recipients = std::mem::take(&mut message.recipients);
    let groups = judged(process, &judge, facts, recipients);
    // Of groups with the same verdict the one without learned senders.
    let severest = groups.iter().max_by_key(|group| group.judgement.verdict);
    let refusal = severest.and_then(|group| refusal(&group.judgement, trace));
    if let Some(group) = severest {
        process.metrics.judged(&group.judgement);
        let judged = (&group.facts, &group.judgement);
        dmarc::note(process, message, judged, &results);
        let told = Told::of(message, &reverse_path, group, refusal.as_ref());
        told.log(trace);
        if refusal.is_some() {
            told.write(process, trace);
        }
    }
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let mut all = Vec::new();
    for group in groups {
        let told = Rc::new(Told::of(message, &reverse_path, &group, None));
        let author = judge.proven_author(&group.facts);
        let author = author.map(vere_judge::author_field).unwrap_or_default();
        let mut classes = classes(&group, &results);
        for class in &mut classes {
            class.is_quarantined |= is_discarded;
            class.told = Some(Rc::clone(&told));
            if class.is_quarantined {
                class.fields = [author.as_bytes(), &class.fields].concat();
            }
        }
        all.append(&mut classes);
    }
    Ok(Judged { classes: all })
}

/// Recipients with the same facts, and the judgement for them.
struct Group {
    facts: Facts,
    recipients: Vec<RcptTo>,
    judgement: Judgement,
}

/// Judges a message for each group of recipients.
fn judged(process: &Process, judge: &Judge, facts: Facts, recipients: Vec<RcptTo>) -> Vec<Group> {
    let settings = process.settings();
    let groups = known::split(process, judge, facts, recipients);
    let addresses: Vec<Vec<String>> = groups
        .iter()
        .map(|(_, recipients)| addresses(&process.router, &settings, recipients))
        .collect();
    let asked: Vec<_> = groups
        .iter()
        .zip(&addresses)
        .map(|((facts, _), addresses)| {
            let addresses = addresses.iter().map(String::as_str).collect();
            (facts.clone(), addresses)
        })
        .collect();
    let judgements = judge.judge_groups(&asked).into_iter();
    let groups = groups.into_iter().zip(judgements);
    groups
        .map(|((facts, recipients), judgement)| Group {
            facts,
            recipients,
            judgement,
        })
        .collect()
}

/// Asks the content filters, and returns whether the filters discard the message by deleting all recipients. The recipients of a discarded message stay, and the
/// message is kept aside, since no message is lost without trace.
async fn filter(
    process: &Process,
    service: Service,
    trace: TraceId,
    message: &mut Message,
    facts: &mut Facts,
) -> Result<bool, Refusal> {
    let body = Bytes::from(std::mem::take(&mut message.body));
    let findings = filtering::ask(process, service, trace, message, &body).await;
    message.body = Vec::from(findings.message.unwrap_or(body));
    if findings.defer.is_some() {
        let refusal = Refusal::Site {
            permanent: false,
            text: format!("message cannot be checked now, try again later, id {trace}"),
        };
        note_deferred(process, trace, message, &refusal);
        return Err(refusal);
    }
    facts.filters = findings.filters;
    facts.viruses = findings.viruses;
    facts.cut |= findings.cut;
    if let Some(path) = findings.reverse_path {
        match ReversePath::parse(&format!("<{path}>")) {
            Ok(path) => message.reverse_path.reverse_path = path,
            Err(error) => {
                tracing::warn!(queue_id = %trace, path, %error, "a content filter names a sender that is none")
            }
        }
    }
    for address in findings.added {
        add_recipient(process, trace, message, &address);
    }
    let is_deleted = |rcpt: &RcptTo| {
        let path = rcpt.forward_path.as_str();
        findings
            .deleted
            .iter()
            .any(|gone| gone.eq_ignore_ascii_case(path))
    };
    let is_discarded = message.recipients.iter().all(is_deleted);
    if !is_discarded {
        message.recipients.retain(|rcpt| !is_deleted(rcpt));
    }
    Ok(is_discarded)
}

/// Adds a recipient named by a filter. An address that leads nowhere is left out: the client cannot correct the filter.
fn add_recipient(process: &Process, trace: TraceId, message: &mut Message, address: &str) {
    let path = ForwardPath::parse(&format!("<{address}>"));
    let found = path.map_err(|error| error.to_string()).and_then(|path| {
        let found = process.router.find(&process.settings(), &path);
        found.map(|_| path).map_err(|refusal| refusal.to_string())
    });
    match found {
        Ok(path) => message.recipients.push(RcptTo::new(path)),
        Err(error) => {
            tracing::warn!(queue_id = %trace, address, error, "a content filter names a recipient that is none");
        }
    }
}

/// Writes into the trace that a message was not taken for want of a filter, or of room in the quarantine.
pub(super) fn note_deferred(
    process: &Process,
    trace: TraceId,
    message: &Message,
    refusal: &Refusal,
) {
    let reply = refusal.to_string();
    // Grouped recipients have left the message, and the judgement has told their number.
    let recipients = Some(message.recipients.len()).filter(|count| *count > 0);
    process.note(&Event {
        reverse_path: Some(message.reverse_path.reverse_path.as_str()),
        recipients: recipients.and_then(|count| u32::try_from(count).ok()),
        peer: Some(message.session.address),
        reply: Some(&reply),
        ..Event::new(EventKind::Refused, trace, clock::now())
    });
}

/// The only class of a message without judgement.
fn unjudged(message: &mut Message) -> Class {
    Class {
        fields: Vec::new(),
        is_quarantined: false,
        recipients: std::mem::take(&mut message.recipients),
        told: None,
    }
}

/// Removes `X-Spam-*`, and results of authentication in our name (RFC 8601 section 5).
fn remove_foreign(body: &mut Vec<u8>, hostname: &str) {
    let mut ranges = vere_judge::foreign_fields(body);
    ranges.extend(vere_auth::foreign_fields(body, hostname));
    if ranges.is_empty() {
        return;
    }
    ranges.sort_by_key(|range| range.start);
    // One copy, whatever the number of fields: a stranger chooses the number.
    let mut kept = Vec::with_capacity(body.len());
    let mut from = 0;
    for range in ranges {
        kept.extend_from_slice(body.get(from..range.start).unwrap_or_default());
        from = range.end;
    }
    kept.extend_from_slice(body.get(from..).unwrap_or_default());
    *body = kept;
}

/// The addresses by which thresholds are found: behind an alias for a single address, the single address.
fn addresses(router: &Router, settings: &Settings, recipients: &[RcptTo]) -> Vec<String> {
    let has_policies = settings
        .judging
        .as_ref()
        .is_some_and(|judging| !judging.policies.is_empty());
    let recipients = recipients.iter().map(|rcpt| {
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

/// The refusal of a message, with the queue id for `vere explain`.
fn refusal(judgement: &Judgement, trace: TraceId) -> Option<Refusal> {
    let reply = judgement.reply()?;
    Some(Refusal::Site {
        permanent: judgement.verdict == Verdict::Reject,
        text: format!("{}, id {trace}", reply.text),
    })
}

/// Sorts the recipients of a group by verdict and threshold.
fn classes(group: &Group, results: &[u8]) -> Vec<Class> {
    let mut classes: Vec<((Verdict, Threshold), Class)> = Vec::new();
    let judgement = &group.judgement;
    for (rcpt, verdict) in group.recipients.iter().zip(&judgement.recipients) {
        let rcpt = rcpt.clone();
        let kind = (verdict.verdict, verdict.required);
        match classes.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, class)) => class.recipients.push(rcpt),
            None => classes.push((kind, class(judgement, results, verdict, rcpt))),
        }
    }
    classes.into_iter().map(|(_, class)| class).collect()
}

fn class(judgement: &Judgement, results: &[u8], verdict: &RecipientVerdict, rcpt: RcptTo) -> Class {
    let mut fields = judgement.fields(verdict).into_bytes();
    fields.extend_from_slice(results);
    Class {
        fields,
        is_quarantined: verdict.verdict == Verdict::Quarantine,
        recipients: vec![rcpt],
        told: None,
    }
}

/// A judgement, as the trace has it.
#[derive(Debug)]
pub(super) struct Told {
    /// The sender as the client named it: a filter may have changed the sender since.
    reverse_path: String,
    client: SocketAddr,
    verdict: Verdict,
    score: String,
    rules: String,
    recipients: Option<u32>,
    facts: String,
    reply: Option<String>,
}

impl Told {
    fn of(message: &Message, reverse_path: &str, group: &Group, reply: Option<&Refusal>) -> Self {
        let judgement = &group.judgement;
        Self {
            reverse_path: reverse_path.to_owned(),
            client: message.session.address,
            verdict: judgement.verdict,
            score: judgement.score.to_string(),
            rules: judgement.summary(),
            recipients: u32::try_from(judgement.recipients.len()).ok(),
            facts: traced(&group.facts),
            reply: reply.map(ToString::to_string),
        }
    }

    /// Writes the judgement into the trace of a message or of a copy.
    pub(super) fn write(&self, process: &Process, trace: TraceId) {
        process.note(&Event {
            reverse_path: Some(&self.reverse_path),
            recipients: self.recipients,
            peer: Some(self.client),
            verdict: Some(self.verdict.name()),
            score: Some(&self.score),
            rules: Some(&self.rules),
            facts: Some(&self.facts),
            reply: self.reply.as_deref(),
            ..Event::new(EventKind::Judged, trace, clock::now())
        });
    }

    /// Writes a line, unless the message goes on unchanged.
    fn log(&self, trace: TraceId) {
        if self.verdict > Verdict::Accept {
            tracing::info!(
                target: MAIL_TARGET,
                queue_id = %trace,
                client = %self.client.ip().to_canonical(),
                reverse_path = self.reverse_path,
                verdict = self.verdict.name(),
                score = self.score,
                rules = self.rules,
                "judged"
            );
        }
    }
}

/// The facts in the form of the trace. Of many attachments only the first stay.
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
