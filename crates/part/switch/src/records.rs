//! From the decisions about a unit to the records of the queues.

use bytes::{Bytes, BytesMut};
use vere_delivery::Part;
use vere_mta400::{Onward, Outcome};
use vere_queue::{Destination, Envelope, Mail, Notify, Recipient, ScheduleHead};
use vere_units::{Timestamp, TraceId};

/// The parts of a unit, which share their octets.
#[must_use]
pub fn parts(outcome: &Outcome, trace: TraceId, now: Timestamp) -> Vec<Part> {
    if outcome.onward.is_empty() {
        return Vec::new();
    }
    let body = joined(outcome.pieces());
    let part = |onward: &Onward| Part {
        destination: Destination::domain(onward.destination.to_string()),
        envelope: envelope(outcome, onward, (trace, now), body.len()),
        body: body.clone(),
    };
    outcome.onward.iter().map(part).collect()
}

fn envelope(
    outcome: &Outcome,
    onward: &Onward,
    (trace, now): (TraceId, Timestamp),
    octets: usize,
) -> Envelope {
    let record = outcome.record(onward);
    let recipient = |one: vere_mta400::RecordRecipient| Recipient {
        notify: match (one.tell_success, one.tell_failure) {
            (false, false) => Notify::NEVER,
            (success, failure) => Notify::on(success, failure, false),
        },
        orcpt: Some(one.tag()),
        address: one.address,
    };
    let not_before = onward.not_before.map(|time| time.timestamp());
    Envelope {
        head: ScheduleHead {
            priority: onward.mt_priority(),
            not_before: not_before.filter(|time| *time > now),
            expires: Some(onward.expires.timestamp()),
            ..ScheduleHead::new(trace, now, octets)
        },
        mail: Mail {
            reverse_path: record.reverse_path,
            message_id: Some(outcome.facts.identifier.clone()),
            recipients: record.recipients.into_iter().map(recipient).collect(),
            ..Mail::default()
        },
    }
}

/// Pieces as one.
#[must_use]
fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() < 2 {
        return pieces.pop().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in &pieces {
        whole.extend_from_slice(piece);
    }
    whole.freeze()
}
