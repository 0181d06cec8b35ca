//! Queue commands of operators for queues and messages.

use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use super::entries::Standing;
use super::{Queues, Timer};
use crate::destination::Destination;
use crate::order::Order;

/// An order and the record that stores it.
#[derive(Debug, Clone)]
pub(super) struct KeptOrder {
    order: Order,
    record: RecordId,
}

impl Queues {
    /// The current order for a destination, which is empty if an operator ordered nothing.
    #[must_use]
    pub fn order(&self, destination: &Destination, now: Timestamp) -> Order {
        match self.orders.get(destination) {
            Some(kept) => kept.order.clone().at(now),
            None => Order::none(destination.clone()),
        }
    }

    /// The record that stores a destination's order.
    #[must_use]
    pub fn order_record(&self, destination: &Destination) -> Option<RecordId> {
        self.orders.get(destination).map(|kept| kept.record)
    }

    /// Destinations with a current order, including destinations without a queue.
    pub fn orders(&self, now: Timestamp) -> impl Iterator<Item = Order> {
        self.orders
            .values()
            .map(move |kept| kept.order.clone().at(now))
            .filter(|order| !order.is_none())
    }

    /// Applies an order that the spool stores in `record`. An empty order ends the previous order.
    pub fn set_order(&mut self, order: Order, record: RecordId, now: Timestamp) {
        let held = order.held_until;
        let before = self.orders.get(&order.destination);
        let before = before.and_then(|kept| kept.order.detour.clone());
        let after = order.detour.clone();
        let number = self.number(&order.destination);
        if order.is_none() {
            self.orders.remove(&order.destination);
        } else {
            let destination = order.destination.clone();
            self.orders.insert(destination, KeptOrder { order, record });
        }
        if let Some(number) = number {
            self.hold(number, held, now);
            if before != after {
                self.go_by(number, after.map(|detour| detour.until), now);
            }
        }
    }

    /// The current target of a queue's messages: the queue's destination, unless an order sets a
    /// detour.
    #[must_use]
    pub fn way(&self, number: QueueId, now: Timestamp) -> Option<Destination> {
        let own = self.destination(number)?;
        let detour = self
            .orders
            .get(own)
            .and_then(|kept| kept.order.detour.as_ref())
            .filter(|detour| detour.until > now);
        Some(match detour {
            Some(detour) => detour.to.clone().with(own.wish),
            None => own.clone(),
        })
    }

    /// Starts a detour until a time, or ends one. The failures and the site of the previous hosts
    /// are forgotten, as they do not describe the new hosts.
    pub(super) fn go_by(&mut self, number: QueueId, until: Option<Timestamp>, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.detour_until = until.filter(|until| *until > now);
        if let Some(until) = queue.detour_until {
            self.timers.insert((until, Timer::Queue(number)));
        }
        queue.failures = 0;
        if queue.paused_until.take().is_some() {
            self.totals.paused -= 1;
        }
        let site = queue.site;
        self.exchange(number, site, None);
        if let Some(queue) = self.queues.get_mut(number) {
            queue.site = None;
        }
        self.note_active(number);
        self.make_runnable(number);
    }

    /// Pauses delivery of a queue until a time; `None` resumes delivery at once.
    pub(super) fn hold(&mut self, number: QueueId, until: Option<Timestamp>, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.held_until = until.filter(|until| *until > now);
        if let Some(until) = queue.held_until {
            self.timers.insert((until, Timer::Queue(number)));
            self.evict_all(number);
        }
        self.note_active(number);
        self.make_runnable(number);
    }

    /// Whether an order exists for any destination.
    #[must_use]
    pub fn has_orders(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Whether mail for a destination is refused now.
    #[must_use]
    pub fn is_refused(&self, destination: &Destination, now: Timestamp) -> bool {
        let kept = self.orders.get(destination);
        kept.is_some_and(|kept| kept.order.refused_until.is_some_and(|until| until > now))
    }

    /// Ends the pause of a destination and its site. As usual, one connection probes first. If the
    /// probe fails, the next pause is as long as the last.
    pub fn resume(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        if queue.paused_until.take().is_some() {
            self.totals.paused -= 1;
            queue.by_hand = true;
        }
        if let Some(site) = queue.site {
            if let Some(gate) = self.gates.get_mut(site) {
                gate.by_hand |= gate.suspended_until.is_some();
            }
            self.end_suspension(site);
        }
        self.note_active(number);
        self.make_runnable(number);
    }

    /// Makes a deferred message ready now. Returns false if the message is not deferred, or gone.
    pub fn retry(&mut self, number: QueueId, record: RecordId, trace: TraceId) -> bool {
        let Some(slot) = self.entries.find_record(trace, number, record) else {
            return false;
        };
        if self.entries[slot].standing != Standing::Deferred {
            return false;
        }
        self.take_out(slot);
        if let Some(queue) = self.queues.get_mut(number) {
            queue.push_ready(&mut self.entries, slot);
        }
        self.make_runnable(number);
        true
    }

    /// Removes a message without an attempt and a report. Returns false if the message is being
    /// delivered, or gone.
    pub fn discard(&mut self, number: QueueId, record: RecordId, trace: TraceId) -> bool {
        let Some(slot) = self.entries.find_record(trace, number, record) else {
            return false;
        };
        let idle = self.entries[slot].standing != Standing::InFlight;
        if idle {
            self.forget(slot);
        }
        idle
    }

    /// The numbers of the queues that the inspection shows.
    #[must_use]
    pub fn active(&self) -> Vec<QueueId> {
        self.active.clone()
    }

    /// Messages and octets of one destination's queue.
    #[must_use]
    pub fn fill(&self, destination: &Destination) -> (usize, u64) {
        self.number(destination)
            .and_then(|number| self.queues.get(number))
            .map_or((0, 0), |queue| (queue.messages, queue.octets))
    }
}
