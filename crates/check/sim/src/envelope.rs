//! Envelopes of simulated messages.

use vere_queue::{Envelope, Mail, ScheduleHead};
use vere_units::{Timestamp, TraceId};

/// An envelope of a message without recipients and sender.
pub(crate) fn blank(trace: TraceId, accepted: Timestamp, size: usize) -> Envelope {
    Envelope {
        head: ScheduleHead::new(trace, accepted, size),
        mail: Mail::default(),
    }
}
