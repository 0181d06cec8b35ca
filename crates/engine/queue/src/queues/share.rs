//! The division of the gateway's connections among destinations when there are too few.
//!
//! Unresponsive hosts keep a connection for minutes, and queues for slow hosts never return a
//! connection by themselves. Some connections are therefore reserved for destinations without a
//! connection. When only reserved connections are left, a queue with more than its share ends a
//! connection after a message. Attempts at destinations without an open connection may use only a
//! part of all connections.

use super::Queues;
use super::queue::Queue;
use crate::destination::Place;

/// While this fraction of all connections is being opened, destinations without an open connection
/// get a single attempt (1/8) ...
const PROBES_FREE: usize = 8;
/// ... and while all but this fraction is being opened, further destinations wait (1/8).
const PROBES_SPARED: usize = 8;
/// Fewer opening connections than this cause no restriction.
const PROBES_MIN: usize = 16;
/// The reserved fraction of all connections, for destinations without a connection (1/4).
const SPARED: usize = 4;
/// With a smaller maximum of connections, no connection is reserved.
const SPARED_FROM: usize = 32;

impl Queues {
    /// Whether a connection to the destination or its site is open, so that mail can leave.
    fn is_proven(&self, queue: &Queue) -> bool {
        queue.destination.place == Place::Local
            || queue.established > 0
            || self.gates.of(queue).any(|gate| gate.established > 0)
    }

    /// Connections that are being opened.
    const fn probes(&self) -> usize {
        self.totals
            .connections
            .saturating_sub(self.totals.established)
    }

    /// Whether a queue is limited to a single attempt because too many connections are being
    /// opened.
    pub(super) fn probes_alone(&self, queue: &Queue) -> bool {
        let free = (self.policy.connections_max / PROBES_FREE).max(PROBES_MIN);
        self.probes() >= free && !self.is_proven(queue)
    }

    /// Whether a queue waits until fewer connections are being opened.
    pub(super) fn probes_later(&self, queue: &Queue) -> bool {
        !self.may_probe() && !self.is_proven(queue)
    }

    /// Whether a connection to a destination without an open connection may be opened.
    pub(super) fn may_probe(&self) -> bool {
        let max = self.policy.connections_max;
        self.probes() < (max - max / PROBES_SPARED).max(PROBES_MIN)
    }

    /// Connections that are not reserved.
    const fn shared(&self) -> usize {
        let max = self.policy.connections_max;
        if max < SPARED_FROM {
            return max;
        }
        max - max / SPARED
    }

    /// Whether only reserved connections are left.
    const fn is_crowded(&self) -> bool {
        self.totals.connections >= self.shared()
    }

    /// Whether the free connections are all reserved for destinations without a connection. False
    /// when no connection is free: all queues then wait in line.
    pub(super) const fn spares(&self) -> bool {
        self.is_crowded() && self.totals.connections < self.policy.connections_max
    }

    /// A queue's share of connections while only reserved connections are left.
    fn share(&self) -> usize {
        (self.shared() / self.working.max(1)).max(1)
    }

    /// Whether a queue has to give up a connection, because only reserved ones are left and the
    /// queue exceeds its share.
    pub(super) fn gives_way(&self, queue: &Queue) -> bool {
        self.is_crowded() && queue.workers > self.share()
    }

    /// Whether a further connection would exceed the queue's share. The queue does not open such a
    /// connection: the connection would end without a message, and the next one would be opened.
    pub(super) fn would_give_way(&self, queue: &Queue) -> bool {
        let spares_some = self.shared() < self.policy.connections_max;
        let crowded = self.totals.connections + 1 >= self.shared();
        spares_some && crowded && queue.workers + 1 > self.share()
    }

    /// Counts a queue that got its first worker or lost its last one.
    pub(super) const fn count_working(&mut self, before: usize, now: usize) {
        match (before, now) {
            (0, 1..) => self.working += 1,
            (1.., 0) => self.working -= 1,
            _ => {}
        }
    }
}
