//! Trace ids: unique per gateway, and increasing, so that they sort by acceptance.

use std::cell::Cell;

use vere_units::{Timestamp, TraceId};

/// Bits below the milliseconds: a million ids per millisecond.
const COUNTER_BITS: u32 = 20;

/// Gives out trace ids: the time in milliseconds and a counter. Stays unique within a run when the
/// clock is set back; a restart within the same millisecond is prevented by process start-up itself.
#[derive(Debug, Default)]
pub(super) struct TraceIds {
    last: Cell<u64>,
}

impl TraceIds {
    /// The next id.
    pub(super) fn next(&self, now: Timestamp) -> TraceId {
        let id = (now.as_millis() << COUNTER_BITS).max(self.last.get() + 1);
        self.last.set(id);
        TraceId::new(id)
    }

    /// Never gives an id up to this one: it was seen in the spool.
    pub(super) fn seen(&self, id: TraceId) {
        self.last.set(self.last.get().max(id.as_u64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_even_when_the_clock_does_not() {
        let ids = TraceIds::default();
        let first = ids.next(Timestamp::from_millis(1_000));
        let second = ids.next(Timestamp::from_millis(1_000));
        let third = ids.next(Timestamp::from_millis(10));
        assert!(first < second && second < third);
        ids.seen(TraceId::new(third.as_u64() + 10));
        assert!(ids.next(Timestamp::from_millis(10)).as_u64() > third.as_u64() + 10);
    }
}
