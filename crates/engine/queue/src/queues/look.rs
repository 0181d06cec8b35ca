//! Inspection of the queues, from counters and entries alone: the cost depends on the rows shown.

use std::time::Duration;

use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use super::Queues;
use super::entries::{Chain, Slot, Standing};
use super::gates::{Gate, GateTotals};
use super::queue::Queue;
use crate::destination::Destination;
use crate::order::FOREVER;
use crate::site::SiteName;

/// A queue as `vere queue list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSummary {
    /// The queue's destination.
    pub destination: Destination,
    /// Messages in the queue.
    pub messages: usize,
    /// Octets of all bodies.
    pub octets: u64,
    /// Messages admitted since this process knows the queue, including messages recovered from the
    /// spool.
    pub came: u64,
    /// Messages that left the queue for good since then.
    pub left: u64,
    /// Number of ready messages per priority, the highest priority first.
    pub priorities: Vec<(i8, usize)>,
    /// Messages waiting for a later attempt.
    pub deferred: usize,
    /// Messages being delivered.
    pub in_flight: usize,
    /// Messages that an operator holds individually.
    pub held: usize,
    /// Messages in the quarantine.
    pub quarantined: usize,
    /// Connections open or opening.
    pub connections: usize,
    /// Maximum of connections now. The connections of other destinations of the site count too.
    pub connections_max: usize,
    /// Whether messages leave one at a time in acceptance order.
    pub in_order: bool,
    /// The hosts that serve the destination, if known.
    pub site: Option<SiteName>,
    /// The average time for a message to this site.
    pub latency: Option<Duration>,
    /// The time of the next attempt at a paused destination.
    pub paused_until: Option<Timestamp>,
    /// The end of the operator's hold on the queue.
    pub held_until: Option<Timestamp>,
    /// The acceptance time of the oldest message outside the quarantine.
    pub oldest: Option<Timestamp>,
    /// The destination's last reply that was no success.
    pub last_reply: Option<String>,
    /// The hosts' last reply about a message, success or not.
    pub last_answer: Option<String>,
}

/// The data of one message that is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSummary {
    /// The message's record.
    pub record: RecordId,
    /// The message's trace id.
    pub trace: TraceId,
    /// The acceptance time.
    pub accepted: Timestamp,
    /// The state of the message in the queue.
    pub standing: Standing,
    /// The due time of a deferred message; for a held message, the due time after its release.
    pub due: Option<Timestamp>,
    /// The end of a message's hold; [`FOREVER`](crate::order::FOREVER): held until released, as in the
    /// quarantine.
    pub held_until: Option<Timestamp>,
    /// Octets of the body.
    pub size: u32,
    /// Attempts so far.
    pub attempts: u16,
    /// The message's priority.
    pub priority: i8,
}

/// All queues together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Destinations that have messages.
    pub destinations: usize,
    /// Messages in all queues.
    pub messages: usize,
    /// Octets of all bodies.
    pub octets: u64,
    /// Messages waiting for a later attempt.
    pub deferred: usize,
    /// Messages being delivered.
    pub in_flight: usize,
    /// Messages that an operator holds individually.
    pub held: usize,
    /// Messages in the quarantine.
    pub quarantined: usize,
    /// Connections open or opening.
    pub connections: usize,
    /// Connections that are open.
    pub established: usize,
    /// Destinations that are paused.
    pub paused: usize,
    /// Messages admitted since the start, including messages recovered from the spool.
    pub came: u64,
    /// Messages that left for good since the start.
    pub left: u64,
}

/// The order of queues when only the first are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopOrder {
    /// Most messages first.
    Messages,
    /// Most deferred messages first.
    Deferred,
    /// Most connections first.
    Connections,
    /// The queue with the oldest message first.
    Oldest,
    /// Alphabetical by name.
    Name,
}

impl Queue {
    /// The destination's last reply that was no success.
    fn last_reply<'a>(&'a self, queues: &'a Queues) -> Option<&'a str> {
        let site = self.site.and_then(|id| queues.gates.get(id));
        let suspended = site.filter(|gate| gate.suspended_until.is_some());
        let said = suspended.and_then(|gate| gate.last_reply.as_deref());
        said.or(self.last_reply.as_deref())
    }

    fn summary(&self, queues: &Queues) -> QueueSummary {
        let site = self.site.and_then(|id| queues.gates.get(id));
        let suspended = site.and_then(|gate| gate.suspended_until);
        QueueSummary {
            destination: self.destination.clone(),
            messages: self.messages,
            octets: self.octets,
            came: self.came,
            left: self.left,
            priorities: self.priorities().collect(),
            deferred: self.deferred,
            in_flight: self.in_flight,
            held: self.held,
            quarantined: self.quarantined,
            connections: self.workers,
            connections_max: queues.connections_allowed(self),
            in_order: queues.is_in_order(self),
            site: site.and_then(|gate| gate.site().cloned()),
            latency: site.and_then(Gate::latency),
            paused_until: self.paused_until.or(suspended),
            held_until: self.held_until,
            oldest: self.order.head().map(|slot| queues.entries[slot].accepted),
            last_reply: self.last_reply(queues).map(str::to_owned),
            last_answer: Some(self.last_answer.clone()).filter(|said| !said.is_empty()),
        }
    }
}

impl Queues {
    /// Non-empty, paused and held queues in the order of their destinations: at most `limit` after
    /// `after`.
    #[must_use]
    pub fn summaries(&self, after: Option<&Destination>, limit: usize) -> Vec<QueueSummary> {
        let queues = self
            .active
            .iter()
            .filter_map(|number| self.queues.get(*number));
        let mut wanted: Vec<_> = queues
            .filter(|queue| after.is_none_or(|after| queue.destination > *after))
            .collect();
        // Avoids sorting queues that are not shown.
        if limit < wanted.len() {
            wanted.select_nth_unstable_by(limit, |a, b| a.destination.cmp(&b.destination));
            wanted.truncate(limit);
        }
        wanted.sort_unstable_by(|a, b| a.destination.cmp(&b.destination));
        wanted.iter().map(|queue| queue.summary(self)).collect()
    }

    /// The first `limit` queues in this order whose names contain `filter`, and the number of all
    /// matching queues.
    #[must_use]
    pub fn top(&self, order: TopOrder, filter: &str, limit: usize) -> (Vec<QueueSummary>, usize) {
        let queues = self
            .active
            .iter()
            .filter_map(|number| self.queues.get(*number));
        let mut wanted: Vec<_> = queues
            .filter(|queue| filter.is_empty() || queue.destination.holds(filter))
            .map(|queue| (self.top_key(order, queue), queue))
            .collect();
        let count = wanted.len();
        let before = |a: &(u64, &Queue), b: &(u64, &Queue)| {
            (a.0, &a.1.destination).cmp(&(b.0, &b.1.destination))
        };
        if limit < count {
            wanted.select_nth_unstable_by(limit, before);
            wanted.truncate(limit);
        }
        wanted.sort_unstable_by(before);
        let rows = wanted.iter().map(|(_, queue)| queue.summary(self));
        (rows.collect(), count)
    }

    /// The sort key of a queue; the first queue has the lowest key.
    fn top_key(&self, order: TopOrder, queue: &Queue) -> u64 {
        let most = |count: usize| u64::MAX - count as u64;
        match order {
            TopOrder::Messages => most(queue.messages),
            TopOrder::Deferred => most(queue.deferred),
            TopOrder::Connections => most(queue.workers),
            TopOrder::Oldest => queue
                .order
                .head()
                .map_or(u64::MAX, |slot| self.entries[slot].accepted.as_millis()),
            TopOrder::Name => 0,
        }
    }

    /// The last reply of a destination that fails: the destination cannot be reached, or the last try failed.
    #[must_use]
    pub fn failure(&self, number: QueueId) -> Option<&str> {
        let queue = self.queues.get(number)?;
        let fails = self.gates.is_probing(queue);
        queue.last_reply(self).filter(|_| fails)
    }

    /// Counters over all queues.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Current counts of limits and sites.
    #[must_use]
    pub const fn gate_totals(&self) -> GateTotals {
        self.gates.totals()
    }

    /// Destinations that have a queue.
    #[must_use]
    pub const fn destinations_known(&self) -> usize {
        self.queues.len()
    }

    /// Octets of envelopes and bodies in memory.
    #[must_use]
    pub const fn head_octets(&self) -> usize {
        self.heads.octets()
    }

    /// Messages in all queues.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.entries.len()
    }

    /// A message, if the queue contains it.
    #[must_use]
    pub fn message(
        &self,
        number: QueueId,
        record: RecordId,
        trace: TraceId,
    ) -> Option<MessageSummary> {
        let slot = self.entries.find_record(trace, number, record)?;
        Some(self.message_at(slot))
    }

    /// The messages of a queue outside the quarantine, in acceptance order: at most `limit` messages
    /// after `after`.
    pub fn list(
        &self,
        number: QueueId,
        after: Option<TraceId>,
        limit: usize,
    ) -> impl Iterator<Item = MessageSummary> {
        let first = match after {
            None => self.queues.get(number).and_then(|queue| queue.order.head()),
            Some(after) => match self
                .entries
                .find(after)
                .find(|slot| self.is_in_order_of(number, *slot))
            {
                Some(slot) => self.entries.next(Chain::Order, slot),
                None => self.first_after(number, after),
            },
        };
        self.messages_from(first, limit)
    }

    /// Like [`list`](Self::list), after a message given by record and trace id. If that message has
    /// left, the list starts with the next later record.
    pub fn list_behind(
        &self,
        number: QueueId,
        after: Option<(RecordId, TraceId)>,
        limit: usize,
    ) -> impl Iterator<Item = MessageSummary> {
        let head = || self.queues.get(number).and_then(|queue| queue.order.head());
        let first = match after {
            None => head(),
            Some((record, trace)) => match self
                .entries
                .find_record(trace, number, record)
                .filter(|slot| self.is_in_order_of(number, *slot))
            {
                Some(slot) => self.entries.next(Chain::Order, slot),
                None => {
                    std::iter::successors(head(), |slot| self.entries.next(Chain::Order, *slot))
                        .find(|slot| self.entries[*slot].record > record)
                }
            },
        };
        self.messages_from(first, limit)
    }

    /// Whether an entry is in the acceptance order of a queue.
    fn is_in_order_of(&self, number: QueueId, slot: Slot) -> bool {
        let entry = &self.entries[slot];
        entry.queue == number && !entry.aside
    }

    /// The last admitted message of a queue.
    #[must_use]
    pub fn newest(&self, number: QueueId) -> Option<MessageSummary> {
        let last = self.queues.get(number)?.order.tail()?;
        Some(self.message_at(last))
    }

    pub(super) fn messages_from(
        &self,
        first: Option<Slot>,
        limit: usize,
    ) -> impl Iterator<Item = MessageSummary> {
        std::iter::successors(first, |slot| self.entries.next(Chain::Order, *slot))
            .take(limit)
            .map(|slot| self.message_at(slot))
    }

    /// The first message of a queue with a trace id after `after`. Scans from the head, as most
    /// messages before a departed message have left too.
    fn first_after(&self, number: QueueId, after: TraceId) -> Option<Slot> {
        let first = self.queues.get(number)?.order.head();
        std::iter::successors(first, |slot| self.entries.next(Chain::Order, *slot))
            .find(|slot| self.entries[*slot].trace > after)
    }

    pub(super) fn message_at(&self, slot: Slot) -> MessageSummary {
        let entry = &self.entries[slot];
        MessageSummary {
            record: entry.record,
            trace: entry.trace,
            accepted: entry.accepted,
            standing: entry.standing,
            due: match entry.standing {
                Standing::Deferred => Some(entry.due),
                Standing::Held => self.held.due(slot),
                Standing::Ready | Standing::InFlight | Standing::Quarantined => None,
            },
            held_until: match entry.standing {
                Standing::Held => Some(entry.due),
                Standing::Quarantined => Some(FOREVER),
                Standing::Ready | Standing::InFlight | Standing::Deferred => None,
            },
            size: entry.size,
            attempts: entry.attempts,
            priority: entry.priority,
        }
    }
}
