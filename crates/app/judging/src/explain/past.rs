//! A message that was judged, by the trace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use vere_judge::Facts;
use vere_settings::Settings;
use vere_telemetry::trace::{EventKind, Query, Record, find};
use vere_units::TraceId;

use super::known::{Known, Past};
use vere_control::{Request, ask};
use vere_process::failure::Failure;

/// Finds the judgement of a message.
///
/// # Errors
/// When the trace cannot be read, or has no judgement of the message.
pub(super) fn look(id: TraceId, settings: &Settings) -> Result<Known, Failure> {
    // A running gateway flushes the events in its memory; without a gateway, the files are complete.
    let _ = ask(&settings.control.socket, &Request::FlushTrace);
    let traces = find(&settings.trace_directory(), &Query::TraceId(id), 1)?;
    let events = traces.into_iter().flat_map(|trace| trace.events);
    let events: Vec<_> = events.collect();
    let Some(event) = events.iter().find(|event| event.kind == EventKind::Judged) else {
        let why = match events.is_empty() {
            true => "the trace has no such message",
            false => {
                "nobody judged the message: the client may relay or had logged in, without a filter for submitted mail, or the settings had no [judging]"
            }
        };
        return Err(Failure::new(format!("expected a judgement of {id}; {why}")));
    };
    Ok(Known {
        name: id.to_string(),
        past: Some(past(event)),
        asked: None,
        facts: facts(event)?,
        recipients: recipients(&events),
    })
}

fn past(event: &Record) -> Past {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Past {
        at: event.at,
        verdict: text(&event.verdict),
        score: text(&event.score),
        rules: text(&event.rules),
        reply: event.reply.clone(),
        reverse_path: event.reverse_path.clone(),
        peer: event.peer.clone(),
    }
}

fn facts(event: &Record) -> Result<Facts, Failure> {
    let Some(text) = &event.facts else {
        return Err(Failure::new(without_facts(event)));
    };
    let octets = STANDARD
        .decode(text)
        .map_err(|error| Failure::new(format!("facts in the trace: {error}")))?;
    Facts::decode(&octets).map_err(|error| Failure::new(format!("facts in the trace: {error}")))
}

/// The explanation of a judgement without facts.
fn without_facts(event: &Record) -> String {
    let Some(verdict) = event.verdict.as_ref().filter(|_| event.score.is_none()) else {
        return "expected facts in the trace; found none: they were too long to be kept".to_owned();
    };
    let rules = event.rules.as_deref().filter(|rules| !rules.is_empty());
    format!(
        "expected a message of a stranger; found a submitted one: the filters for submitted mail decided {verdict} ({})",
        rules.unwrap_or("no objection")
    )
}

/// The recipients with queued mail, each once; empty for a refused message.
fn recipients(events: &[Record]) -> Vec<String> {
    let queued = events
        .iter()
        .filter(|event| event.kind == EventKind::Queued);
    let mut recipients: Vec<String> = Vec::new();
    for rcpt in queued.filter_map(|event| event.rcpt.as_ref()) {
        if !recipients.contains(rcpt) {
            recipients.push(rcpt.clone());
        }
    }
    recipients
}
