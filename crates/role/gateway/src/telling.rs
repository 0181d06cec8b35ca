//! Turns what happens to messages into trace events, figures and log lines.

use vere_delivery::{Happened, Leaving, Notice};
use vere_process::clock;
use vere_queue::{Attempt, Destination, Disposition, Envelope, FOREVER, Job, Settlement};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::{Timestamp, TraceId};

use super::mail_log;
use super::process::Process;

/// Tells what has happened to a message.
pub(super) fn tell(process: &Process, happened: &Happened<'_>) {
    match happened {
        Happened::Queued(destination, envelope) => queued(process, destination, envelope),
        Happened::Settled {
            queue,
            job,
            attempt,
            settlement,
        } => settled(process, *queue, (job, attempt), settlement),
        Happened::Reported(about, notice) => reported(process, *about, notice),
        Happened::Recovered(queue, trace) => {
            process.ids.seen(*trace);
            note(process, EventKind::Recovered, Some(queue), *trace);
        }
        Happened::Lost(queue, trace) => note(process, EventKind::Lost, *queue, *trace),
        Happened::Purged(trace) => note(process, EventKind::Purged, None, *trace),
        Happened::Held(destination, trace, until) => held(process, destination, *trace, *until),
        Happened::Unquarantined(destination, trace, why) => {
            left_quarantine(process, destination, *trace, *why);
        }
        Happened::Stored(..) | Happened::ClockStepped(_) | Happened::LinesStored => {}
    }
}

fn note(process: &Process, kind: EventKind, queue: Option<&str>, trace: TraceId) {
    process.note(&Event {
        queue,
        ..Event::new(kind, trace, clock::now())
    });
}

fn queued(process: &Process, destination: &Destination, envelope: &Envelope) {
    let queue = destination.to_string();
    for recipient in &envelope.mail.recipients {
        process.note(&Event {
            queue: Some(&queue),
            rcpt: Some(&recipient.address),
            ..Event::new(EventKind::Queued, envelope.head.trace, clock::now())
        });
    }
}

fn settled(
    process: &Process,
    queue: Option<&str>,
    (job, attempt): (&Job, &Attempt),
    settlement: &Settlement,
) {
    process.metrics.attempted(attempt, &job.envelope);
    let now = clock::now();
    let rest = settlement.remaining.as_ref();
    let next = rest.and_then(|rest| rest.head.not_before);
    for (recipient, result) in job.envelope.mail.recipients.iter().zip(&attempt.results) {
        let expired = settlement.expired.contains(&recipient.address);
        let kind = match result.disposition {
            Disposition::Delivered => EventKind::Delivered,
            Disposition::Failed => EventKind::Bounced,
            Disposition::Deferred if expired => EventKind::Expired,
            Disposition::Deferred => EventKind::Deferred,
        };
        let local = attempt.remote == "local";
        process.metrics.settled(result.disposition, local, expired);
        let (envelope, came_to) = (&job.envelope, (attempt, result));
        mail_log::settled(
            kind,
            queue,
            envelope,
            &recipient.address,
            came_to,
            settlement,
        );
        process.note(&Event {
            queue,
            rcpt: Some(&recipient.address),
            reply: Some(&result.reply),
            remote: Some(&attempt.remote),
            attempt: Some(u32::from(envelope.head.attempts) + 1),
            next,
            ..Event::new(kind, envelope.head.trace, now)
        });
    }
}

/// Tells of a report that is stored, or that nobody gets.
pub(super) fn reported(process: &Process, about: TraceId, notice: &Notice) {
    let (to, action) = (notice.to.as_str(), notice.kind.action());
    let sent = notice.sent();
    process.note(&Event {
        rcpt: Some(to),
        reply: Some(if sent.is_some() {
            action
        } else {
            "no such address"
        }),
        related: sent,
        ..Event::new(EventKind::Dsn, about, clock::now())
    });
    match sent {
        Some(trace) => {
            process.metrics.notified(notice.kind);
            mail_log::notified(about, trace, to, action);
        }
        None => tracing::warn!(
            queue_id = %about,
            to,
            action,
            "report not sent: its address leads nowhere"
        ),
    }
}

fn held(process: &Process, destination: &Destination, trace: TraceId, until: Option<Timestamp>) {
    let kind = match until {
        Some(_) => EventKind::Held,
        None => EventKind::Released,
    };
    process.note(&Event {
        queue: Some(&destination.to_string()),
        next: until.filter(|until| *until != FOREVER),
        ..Event::new(kind, trace, clock::now())
    });
}

fn left_quarantine(process: &Process, destination: &Destination, trace: TraceId, why: Leaving) {
    process.metrics.left_quarantine(why);
    let kind = match why {
        Leaving::Released => EventKind::Released,
        Leaving::Refused => EventKind::Purged,
        Leaving::Aged => EventKind::Aged,
    };
    note(process, kind, Some(&destination.to_string()), trace);
}
