//! Looking into the queues: from counters and entries alone, so that it costs what it shows.

use std::time::Duration;

use vere_units::{Timestamp, TraceId};

use super::entries::{Chain, Slot, Standing};
use super::gates::{Gate, GateTotals};
use super::queue::Queue;
use super::{QueueNumber, Queues, RecordId};
use crate::destination::Destination;
use crate::site::SiteName;

/// What `vere queue list` shows of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSummary {
    /// Its destination.
    pub destination: Destination,
    /// Messages in it.
    pub messages: usize,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages that came since this process knows the queue, those that it took back from the spool too.
    pub came: u64,
    /// Messages that left it for good since then.
    pub left: u64,
    /// How many messages of which priority are ready, the highest first.
    pub priorities: Vec<(i8, usize)>,
    /// Messages waiting for a later attempt.
    pub deferred: usize,
    /// Messages being delivered.
    pub in_flight: usize,
    /// Messages that an operator holds one by one.
    pub held: usize,
    /// Connections open or opening.
    pub connections: usize,
    /// How many there may be now; those of other destinations of the site count too.
    pub connections_max: usize,
    /// Whether its messages leave one at a time, in the order in which they were taken.
    pub in_order: bool,
    /// The hosts that serve it, once they are known.
    pub site: Option<SiteName>,
    /// The average time that a message takes there.
    pub latency: Option<Duration>,
    /// When the destination is tried again, if it is paused.
    pub paused_until: Option<Timestamp>,
    /// Until when an operator lets nothing out.
    pub held_until: Option<Timestamp>,
    /// When its oldest message was accepted.
    pub oldest: Option<Timestamp>,
    /// What the destination last said that was no success.
    pub last_reply: Option<String>,
    /// What its hosts said last about a message, good or bad.
    pub last_answer: Option<String>,
}

/// What memory knows of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSummary {
    /// Its record.
    pub record: RecordId,
    /// Its trace id.
    pub trace: TraceId,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// Where it stands.
    pub standing: Standing,
    /// When it is due, if it is deferred, or is once it is not held any more.
    pub due: Option<Timestamp>,
    /// The end of its hold ([`FOREVER`](crate::order::FOREVER): when it is released), if it is held.
    pub held_until: Option<Timestamp>,
    /// Octets of its body.
    pub size: u32,
    /// Attempts made.
    pub attempts: u16,
    /// Its priority.
    pub priority: i8,
}

/// All queues together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Destinations that have messages.
    pub destinations: usize,
    /// Messages in all queues.
    pub messages: usize,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages waiting for a later attempt.
    pub deferred: usize,
    /// Messages being delivered.
    pub in_flight: usize,
    /// Messages that an operator holds one by one.
    pub held: usize,
    /// Connections open or opening.
    pub connections: usize,
    /// Connections that are open.
    pub established: usize,
    /// Destinations that are paused.
    pub paused: usize,
    /// Messages that came since the start, those that were taken back from the spool too.
    pub came: u64,
    /// Messages that left for good since then.
    pub left: u64,
}

/// Which queues come first when not all are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopOrder {
    /// Those with most messages.
    Messages,
    /// Those with most messages that wait for a later attempt.
    Deferred,
    /// Those with most connections.
    Connections,
    /// Those whose oldest message is the oldest.
    Oldest,
    /// By their names.
    Name,
}

impl Queue {
    fn summary(&self, queues: &Queues) -> QueueSummary {
        let site = self.site.and_then(|id| queues.gates.get(id));
        let suspended = site.and_then(|gate| gate.suspended_until);
        let said = site.filter(|_| suspended.is_some());
        let said = said.and_then(|gate| gate.last_reply.as_deref());
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
            connections: self.workers,
            connections_max: queues.connections_allowed(self),
            in_order: queues.is_in_order(self),
            site: site.and_then(|gate| gate.site().cloned()),
            latency: site.and_then(Gate::latency),
            paused_until: self.paused_until.or(suspended),
            held_until: self.held_until,
            oldest: self.order.head().map(|slot| queues.entries[slot].accepted),
            last_reply: said.or(self.last_reply.as_deref()).map(str::to_owned),
            last_answer: Some(self.last_answer.clone()).filter(|said| !said.is_empty()),
        }
    }
}

impl Queues {
    /// Queues that are paused or hold messages, in the order of their destinations: those behind `after`
    /// if it is given, at most `limit`.
    #[must_use]
    pub fn summaries(&self, after: Option<&Destination>, limit: usize) -> Vec<QueueSummary> {
        let queues = self
            .active
            .iter()
            .filter_map(|number| self.queues.get(*number));
        let mut wanted: Vec<_> = queues
            .filter(|queue| after.is_none_or(|after| queue.destination > *after))
            .collect();
        // Only as many are put in order as are shown.
        if limit < wanted.len() {
            wanted.select_nth_unstable_by(limit, |a, b| a.destination.cmp(&b.destination));
            wanted.truncate(limit);
        }
        wanted.sort_unstable_by(|a, b| a.destination.cmp(&b.destination));
        wanted.iter().map(|queue| queue.summary(self)).collect()
    }

    /// The first `limit` queues in this order of those whose names hold `filter`, and how many do.
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

    /// What comes first has the lowest.
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

    /// Counters over all queues.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// What limits and sites do now.
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

    /// One message, if the queue holds it.
    #[must_use]
    pub fn message(
        &self,
        number: QueueNumber,
        record: RecordId,
        trace: TraceId,
    ) -> Option<MessageSummary> {
        let slot = self.entries.find_record(trace, number, record)?;
        Some(self.message_at(slot))
    }

    /// The messages of one queue in acceptance order, those behind `after` if it is given, at most
    /// `limit`.
    pub fn list(
        &self,
        number: QueueNumber,
        after: Option<TraceId>,
        limit: usize,
    ) -> impl Iterator<Item = MessageSummary> {
        let first = match after {
            None => self.queues.get(number).and_then(|queue| queue.order.head()),
            Some(after) => match self
                .entries
                .find(after)
                .find(|slot| self.entries[*slot].queue == number)
            {
                Some(slot) => self.entries.next(Chain::Order, slot),
                None => self.first_after(number, after),
            },
        };
        self.messages_from(first, limit)
    }

    /// The same behind a message that is named by its record too. Where that has left, the next ones have later
    /// records.
    pub fn list_behind(
        &self,
        number: QueueNumber,
        after: Option<(RecordId, TraceId)>,
        limit: usize,
    ) -> impl Iterator<Item = MessageSummary> {
        let head = || self.queues.get(number).and_then(|queue| queue.order.head());
        let first = match after {
            None => head(),
            Some((record, trace)) => match self.entries.find_record(trace, number, record) {
                Some(slot) => self.entries.next(Chain::Order, slot),
                None => {
                    std::iter::successors(head(), |slot| self.entries.next(Chain::Order, *slot))
                        .find(|slot| self.entries[*slot].record > record)
                }
            },
        };
        self.messages_from(first, limit)
    }

    /// The message that came last into a queue.
    #[must_use]
    pub fn newest(&self, number: QueueNumber) -> Option<MessageSummary> {
        let last = self.queues.get(number)?.order.tail()?;
        Some(self.message_at(last))
    }

    fn messages_from(
        &self,
        first: Option<Slot>,
        limit: usize,
    ) -> impl Iterator<Item = MessageSummary> {
        std::iter::successors(first, |slot| self.entries.next(Chain::Order, *slot))
            .take(limit)
            .map(|slot| self.message_at(slot))
    }

    /// The first message of a queue behind one that has left. Most of those before it have left as well.
    fn first_after(&self, number: QueueNumber, after: TraceId) -> Option<Slot> {
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
                Standing::Ready | Standing::InFlight => None,
            },
            held_until: (entry.standing == Standing::Held).then_some(entry.due),
            size: entry.size,
            attempts: entry.attempts,
            priority: entry.priority,
        }
    }
}
