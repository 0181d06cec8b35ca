//! Trace events, figures and log lines about arrivals.

use vere_mta400::{Decision, Outcome};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::{Timestamp, TraceId};

use crate::auditing;
use crate::origin::{Origin, kind};
use crate::process::Process;

/// Tells of a unit that is safe.
pub(crate) fn received(
    process: &Process,
    origin: Origin<'_>,
    trace: TraceId,
    at: Timestamp,
    outcome: &Outcome,
) {
    let facts = &outcome.facts;
    if let Some(audit) = &process.audit {
        auditing::arrival(audit, origin, trace, at, outcome);
    }
    process.figures.received(facts.kind, facts.content_octets);
    let from = origin.text();
    process.note(&Event {
        reverse_path: Some(facts.originator.as_deref().unwrap_or_default()),
        message_id: Some(&facts.identifier),
        size: Some(facts.content_octets),
        recipients: u32::try_from(facts.recipients.len()).ok(),
        peer: origin.address,
        account: Some(&from),
        ..Event::new(EventKind::Received, trace, at)
    });
    tracing::info!(
        queue_id = %trace,
        from,
        kind = kind(facts.kind),
        identifier = facts.identifier,
        originator = facts.originator.as_deref().unwrap_or_default(),
        recipients = facts.recipients.len(),
        octets = facts.content_octets,
        "received"
    );
    for recipient in &facts.recipients {
        if let Decision::Failed(cause) = &recipient.decision {
            process.figures.failed();
            process.note(&Event {
                rcpt: Some(&recipient.address),
                reply: Some(&cause.to_string()),
                ..Event::new(EventKind::Bounced, trace, at)
            });
            tracing::info!(queue_id = %trace, recipient = recipient.address, %cause, "not delivered");
        }
    }
}
