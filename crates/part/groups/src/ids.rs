//! Trace ids: unique over all gateways that share a cluster, and increasing, so that they sort by
//! acceptance.
//!
//! ```text
//! bits 20 to 63   ms since the Unix epoch
//!       8 to 19   the gateway: a hash of its name
//!       0 to  7   counts within the millisecond
//! ```
//! Messages of several gateways meet in one Maildir, where the id names the file.

use std::cell::Cell;

use vere_units::{Timestamp, TraceId};

/// Bits below the milliseconds.
const LOW_BITS: u32 = 20;
/// Bits of the counter.
const COUNTER_BITS: u32 = 8;
/// The gateway's bits.
const GATEWAY_MASK: u64 = (1 << LOW_BITS) - (1 << COUNTER_BITS);

/// Gives out trace ids. Stays unique within a run when the clock is set back; a restart within the
/// same millisecond is prevented by process start-up itself.
#[derive(Debug, Default)]
pub struct TraceIds {
    gateway: u64,
    last: Cell<u64>,
}

impl TraceIds {
    /// Those of the gateway of this name.
    #[must_use]
    pub fn of(gateway: &str) -> Self {
        // FNV-1a, folded: names that differ give other bits, but for one pair in 4096.
        let hash = gateway
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
                (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
            });
        let folded = hash ^ (hash >> 12) ^ (hash >> 24) ^ (hash >> 36) ^ (hash >> 48);
        Self {
            gateway: (folded << COUNTER_BITS) & GATEWAY_MASK,
            last: Cell::new(0),
        }
    }

    /// The next id.
    pub fn next(&self, now: Timestamp) -> TraceId {
        let last = self.last.get();
        let after = last + 1;
        // One more of the same millisecond, or, when there are none or the last one was another
        // gateway's, the first of the next.
        let after = if after & GATEWAY_MASK == self.gateway && after & ((1 << COUNTER_BITS) - 1) > 0
        {
            after
        } else {
            (((last >> LOW_BITS) + 1) << LOW_BITS) | self.gateway
        };
        let id = after.max((now.as_millis() << LOW_BITS) | self.gateway);
        self.last.set(id);
        TraceId::new(id)
    }

    /// Never gives an id up to this one: it was seen in the spool.
    pub fn seen(&self, id: TraceId) {
        self.last.set(self.last.get().max(id.as_u64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_even_when_the_clock_does_not() {
        let ids = TraceIds::of("gateway");
        let first = ids.next(Timestamp::from_millis(1_000));
        let second = ids.next(Timestamp::from_millis(1_000));
        let third = ids.next(Timestamp::from_millis(10));
        assert!(first < second && second < third);
        ids.seen(TraceId::new(third.as_u64() + 10));
        assert!(ids.next(Timestamp::from_millis(10)).as_u64() > third.as_u64() + 10);
    }

    #[test]
    fn two_gateways_never_give_the_same_id() {
        let (one, another) = (TraceIds::of("gateway"), TraceIds::of("gw2"));
        let mut given = std::collections::BTreeSet::new();
        // More than fit into a millisecond, and clocks that differ and are set back.
        for step in 0..3_000_u64 {
            let now = Timestamp::from_millis(50_000 + step / 700);
            assert!(given.insert(one.next(now)));
            assert!(given.insert(another.next(Timestamp::from_millis(50_000 - step / 900))));
            if step % 500 == 0 {
                // What one left in the spool, the other one takes over.
                another.seen(one.next(now));
            }
        }
    }
}
