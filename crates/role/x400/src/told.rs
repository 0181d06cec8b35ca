//! Trace events, figures and log lines about arrivals.

use vere_mta400::{Decision, Outcome, Source, UnitKind};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::{Timestamp, TraceId};

use crate::auditing;
use crate::intake::Origin;
use crate::process::Process;

/// The word for the kind of a unit.
pub(crate) const fn kind(kind: UnitKind) -> &'static str {
    match kind {
        UnitKind::Message => "message",
        UnitKind::Probe => "probe",
        UnitKind::Report => "report",
    }
}

/// The text of an origin: `peer:NAME`, `gateway:NAME` or `local`.
pub(crate) fn source(source: Source<'_>) -> String {
    match source {
        Source::Local => "local".to_owned(),
        Source::Gateway(name) => format!("gateway:{name}"),
        Source::Peer(name) => format!("peer:{name}"),
    }
}

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
    let from = source(origin.source);
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
