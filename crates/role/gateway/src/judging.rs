//! The judgement of a message: fields removed from the header, fields added, and recipients by verdict.

mod filtered;
mod judged;
mod submitted;

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use vere_filters::Mail;
use vere_judge::{Facts, Judge, Judgement, RecipientVerdict, Verdict};
use vere_settings::{Settings, Threshold};
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_telemetry::trace::FACTS_OCTETS_MAX;
use vere_units::TraceId;

use super::known;
use super::process::Process;
use super::service::Service;
pub(super) use filtered::note_deferred;
pub(super) use judged::{Class, Counted, Judged, Told};
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

/// Judges a message: removes header fields with the names of this system's own, asks the content filters, applies the changes of filters, and applies the
/// rules. Without gathered facts there is no score, and all recipients are of one class: about a message of a client that is known
/// here, the actions of the filters for submitted mail decide.
///
/// # Errors
/// The refusal for the client, by the rules or for want of a filter.
pub(super) async fn judge(
    process: &Process,
    (service, is_known): (Service, bool),
    trace: TraceId,
    message: &mut Message,
    gathered: Option<Gathered>,
) -> Result<Judged, Refusal> {
    if is_known {
        return submitted::judge(process, service, trace, message).await;
    }
    let (Some(judge), Some(mut gathered)) = (process.judge(), gathered) else {
        return Ok(Judged {
            classes: vec![Class::of_all(message)],
            counted: None,
        });
    };
    let settings = process.settings();
    let reverse_path = message.reverse_path.reverse_path.as_str().to_owned();
    vere_judging::remove_foreign(&mut message.body, &settings.hostname);
    let asked = (service, Mail::Received);
    let filtered = filtered::filter(process, asked, trace, message).await?;
    gathered.facts.filters = filtered.filters;
    gathered.facts.viruses = filtered.viruses;
    gathered.facts.cut |= filtered.cut;
    let Gathered { facts, results } = gathered;
    let recipients = std::mem::take(&mut message.recipients);
    let groups = judged(process, &judge, facts, recipients);
    // Of groups with the same verdict the one without learned senders.
    let by_verdict = groups.iter().enumerate();
    let severest = by_verdict.max_by_key(|(_, group)| group.judgement.verdict);
    if let Some((_, group)) = severest {
        let refusal = refusal(&group.judgement, trace);
        let told = told(message, &reverse_path, group, refusal.as_ref());
        told.log(trace);
        if let Some(refusal) = refusal {
            told.write(process, trace);
            let judged = (&group.facts, &group.judgement);
            judged::count(process, message, judged, &results);
            return Err(refusal);
        }
    }
    let severest = severest.map(|(n, _)| n);
    let mut all = Vec::new();
    let mut about = None;
    for (n, group) in groups.into_iter().enumerate() {
        let told = told(message, &reverse_path, &group, None);
        let author = judge.proven_author(&group.facts);
        let mut classes = classes(&group, &results);
        finish(&mut classes, told, author, filtered.is_discarded);
        all.append(&mut classes);
        if severest == Some(n) {
            about = Some(group);
        }
    }
    let counted = about.map(|group| Counted {
        facts: group.facts,
        judgement: group.judgement,
        results,
    });
    Ok(Judged {
        classes: all,
        counted: counted.map(Box::new),
    })
}

/// Adds to the classes of a group the event of the judgement, and the author where the message is kept aside.
fn finish(classes: &mut [Class], told: Told, author: Option<&str>, is_discarded: bool) {
    let told = Rc::new(told);
    let author = author.map(vere_judge::author_field).unwrap_or_default();
    for class in classes {
        class.is_quarantined |= is_discarded;
        class.told = Some(Rc::clone(&told));
        if class.is_quarantined {
            class.fields = [author.as_bytes(), &class.fields].concat();
        }
    }
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

/// The judgement of a group, for the trace.
fn told(message: &Message, reverse_path: &str, group: &Group, reply: Option<&Refusal>) -> Told {
    let judgement = &group.judgement;
    Told {
        reverse_path: reverse_path.to_owned(),
        client: message.session.address,
        verdict: judgement.verdict,
        score: Some(judgement.score.to_string()),
        rules: judgement.summary(),
        recipients: u32::try_from(judgement.recipients.len()).ok(),
        facts: Some(traced(&group.facts)),
        reply: reply.map(ToString::to_string),
    }
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

#[cfg(test)]
mod tests;
