//! The connections that all destinations share, where they are not enough for all.
//!
//! Hosts that do not answer keep a connection for minutes, and slow ones never give theirs back by
//! themselves. So some connections are spared for destinations that have none; when only those are left,
//! who has more than its share gives way after a message; and only a part of all may be on their way to
//! where none is open yet.

use super::Queues;
use super::queue::Queue;
use crate::destination::Destination;

/// Of the connections one part of so many may be on their way before each destination is tried by one only
/// ...
const PROBES_FREE: usize = 8;
/// ... and all but one part of so many before further destinations wait.
const PROBES_SPARED: usize = 8;
/// With so few connections on their way nobody is limited.
const PROBES_MIN: usize = 16;
/// Of the connections one part of so many is spared for destinations that have none.
const SPARED: usize = 4;
/// Of fewer connections than this none is spared.
const SPARED_FROM: usize = 32;

impl Queues {
    /// Whether mail can leave for a destination: a connection to it, or to its site, is open.
    fn is_proven(&self, queue: &Queue) -> bool {
        queue.destination == Destination::Local
            || queue.established > 0
            || self.gates.of(queue).any(|gate| gate.established > 0)
    }

    /// Connections that are on their way.
    const fn probes(&self) -> usize {
        self.totals
            .connections
            .saturating_sub(self.totals.established)
    }

    /// Whether a queue is to be tried by one connection only, as so many are on their way.
    pub(super) fn probes_alone(&self, queue: &Queue) -> bool {
        let free = (self.policy.connections_max / PROBES_FREE).max(PROBES_MIN);
        self.probes() >= free && !self.is_proven(queue)
    }

    /// Whether the queue waits until fewer connections are on their way.
    pub(super) fn probes_later(&self, queue: &Queue) -> bool {
        !self.may_probe() && !self.is_proven(queue)
    }

    /// Whether another connection to where none is open may begin.
    pub(super) fn may_probe(&self) -> bool {
        let max = self.policy.connections_max;
        self.probes() < (max - max / PROBES_SPARED).max(PROBES_MIN)
    }

    /// The connections that destinations may share.
    const fn shared(&self) -> usize {
        let max = self.policy.connections_max;
        if max < SPARED_FROM {
            return max;
        }
        max - max / SPARED
    }

    /// Whether no more connections are left than are spared for destinations without any.
    const fn is_crowded(&self) -> bool {
        self.totals.connections >= self.shared()
    }

    /// Whether those that are left are for destinations without any. When there is none at all, all wait
    /// in line.
    pub(super) const fn spares(&self) -> bool {
        self.is_crowded() && self.totals.connections < self.policy.connections_max
    }

    /// The connections of a queue while there are hardly any left.
    fn share(&self) -> usize {
        (self.shared() / self.working.max(1)).max(1)
    }

    /// Whether a queue has more than its share of connections while there are hardly any left.
    pub(super) fn gives_way(&self, queue: &Queue) -> bool {
        self.is_crowded() && queue.workers > self.share()
    }

    /// Whether a queue would have to give way with one connection more. Such a one is not begun: it would end
    /// before it carries anything, and the next one begin.
    pub(super) fn would_give_way(&self, queue: &Queue) -> bool {
        let spares_some = self.shared() < self.policy.connections_max;
        let crowded = self.totals.connections + 1 >= self.shared();
        spares_some && crowded && queue.workers + 1 > self.share()
    }

    /// A queue has got or lost a worker, and now has so many.
    pub(super) const fn count_working(&mut self, before: usize, now: usize) {
        match (before, now) {
            (0, 1..) => self.working += 1,
            (1.., 0) => self.working -= 1,
            _ => {}
        }
    }
}
