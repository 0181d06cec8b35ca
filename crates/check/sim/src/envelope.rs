//! Envelopes of simulated messages.

use vere_queue::Envelope;
use vere_queue::envelope::{BodyType, TlsWish};
use vere_units::{Timestamp, TraceId};

/// An envelope of a message without recipients and sender.
pub(crate) fn blank(trace: TraceId, accepted: Timestamp, size: usize) -> Envelope {
    Envelope {
        trace,
        accepted,
        seen: None,
        not_before: None,
        held_until: None,
        held_since: None,
        attempts: 0,
        delay_noticed: false,
        reverse_path: None,
        envid: None,
        ret: None,
        smtputf8: false,
        body_type: BodyType::SevenBit,
        tls: TlsWish::None,
        priority: 0,
        size: u32::try_from(size).unwrap_or(u32::MAX),
        last_reply: None,
        message_id: None,
        recipients: Vec::new(),
    }
}
