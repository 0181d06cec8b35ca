//! The schedule: the next message for each destination, the number of connections, and the times of
//! retries.
//!
//! A [`Queues`] holds a queue per destination. Records keep acceptance order; a deferred message leaves
//! the ready list until its time and returns behind the messages ready by then. An unreachable
//! destination is paused as a whole, so that a dead host costs one connection attempt per pause instead
//! of one per message. Queues take turns, and so do queues that wait for a connection when all are in
//! use, so that no destination slows another destination.
//!
//! Memory holds a small entry of every message (`entries`), and envelopes and bodies only of the
//! messages next in line (`heads`). No call searches through a queue: every call costs the same with ten
//! messages as with a million, except calls that list messages.

mod ends;
mod entries;
mod gates;
mod heads;
mod held;
mod idle;
mod look;
mod oldest;
mod operate;
mod overdue;
mod passage;
mod quarantine;
mod queue;
mod queue_table;
mod retire;
mod schedule;
mod share;
mod starved;
mod step;
mod wheel;
mod work;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use crate::destination::Destination;
use crate::envelope::{Envelope, ScheduleHead};
use crate::policy::Policy;

use ends::Ends;
use entries::{Chain, Entries, Entry, NONE, Slot};
use gates::{GateId, Gates};
use heads::Heads;
use held::Held;
use idle::Idlers;
use oldest::Ages;
use operate::KeptOrder;
use queue::Queue;
use queue_table::QueueTable;
use starved::Starved;
use wheel::Wheel;

pub use entries::Standing;
pub use gates::{Answered, GateTotals, Sign};
pub use heads::Supplied;
pub use look::{MessageSummary, QueueSummary, TopOrder, Totals};
pub use retire::Expected;
pub use step::Step;

/// A request to the host for a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wake an idle worker of this queue: the queue has work.
    Wake(QueueId),
    /// Wake an idle worker of this queue, which must ask [`Queues::worker_released`]: other queues wait
    /// for its connection.
    Release(QueueId),
    /// Start another worker (a connection) for this queue. The worker counts as running until
    /// [`Queues::worker_ended`].
    Open(QueueId),
    /// Fetch a block of records from the spool and hand it to [`Queues::supply`], or tell
    /// [`Queues::fetch_failed`].
    Fetch(Wanted),
}

/// Records to be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Their queue.
    pub queue: QueueId,
    /// The first one.
    pub from: RecordId,
    /// How many at most.
    pub records: u32,
    /// Approximate octets to fetch; at least one record is fetched.
    pub octets: u32,
    /// The message of the first record.
    trace: TraceId,
}

/// A message to deliver.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its record.
    pub record: RecordId,
    /// The message's envelope at the time of this attempt.
    pub envelope: Rc<Envelope>,
    /// The body if in memory; otherwise the body must be fetched from the spool.
    pub body: Option<Bytes>,
    slot: Slot,
}

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Queue(QueueId),
    Gate(GateId),
}

/// All queues of a gateway.
#[derive(Debug)]
pub struct Queues {
    policy: Policy,
    queues: QueueTable,
    /// The [`serial`](Queue) of the newest queue.
    serial: u32,
    numbers: HashMap<Destination, QueueId>,
    /// Queues with messages or something else to show.
    active: Vec<QueueId>,
    /// How old the first messages of queues are.
    ages: Ages,
    entries: Entries,
    heads: Heads,
    /// Deferred messages of all queues, and messages held for a time.
    wheel: Wheel,
    held: Held,
    /// Messages with an end of their own.
    ends: Ends,
    /// Queues that may have work now, in turn.
    ring: VecDeque<QueueId>,
    /// Queues that wait for a free connection.
    starved: Starved,
    /// Number of queues with workers.
    working: usize,
    /// Queues with idle workers, and the last turn given to an idle worker.
    idlers: Idlers,
    idled: u64,
    /// Queues whose idle worker has to end.
    releases: VecDeque<QueueId>,
    /// Number of workers that end because other queues wait for a connection.
    leaving: usize,
    /// When a queue or a gate has something to do again: the end of a pause, a token.
    timers: BTreeSet<(Timestamp, Timer)>,
    gates: Gates,
    orders: HashMap<Destination, KeptOrder>,
    /// The next queue to be looked at for whether it is needed.
    retire_at: QueueId,
    totals: Totals,
    /// Nothing expires before.
    spared_until: Timestamp,
}

impl Queues {
    /// Makes an empty set.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            queues: QueueTable::default(),
            serial: 0,
            ages: Ages::default(),
            numbers: HashMap::new(),
            active: Vec::new(),
            entries: Entries::default(),
            heads: Heads::default(),
            wheel: Wheel::default(),
            held: Held::default(),
            ends: Ends::default(),
            ring: VecDeque::new(),
            starved: Starved::default(),
            working: 0,
            idlers: Idlers::new(),
            idled: 0,
            releases: VecDeque::new(),
            leaving: 0,
            timers: BTreeSet::new(),
            gates: Gates::default(),
            orders: HashMap::new(),
            retire_at: QueueId(0),
            totals: Totals::default(),
            spared_until: Timestamp::from_millis(0),
        }
    }

    /// The policy in force.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Replaces the policy; times already set stay.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.reassess();
    }

    /// The number of a destination's queue, if the queue exists.
    #[must_use]
    pub fn number(&self, destination: &Destination) -> Option<QueueId> {
        self.numbers.get(destination).copied()
    }

    /// The destination of a queue.
    #[must_use]
    pub fn destination(&self, queue: QueueId) -> Option<&Destination> {
        self.queues.get(queue).map(|queue| &queue.destination)
    }

    /// Registers a queue under the number given by the spool. A repeated call changes nothing.
    pub fn register(&mut self, number: QueueId, destination: Destination, now: Timestamp) {
        let serial = self.serial.wrapping_add(1).max(1);
        let queue = Queue::new(destination.clone(), serial, now);
        if self.queues.insert(number, queue) {
            self.serial = serial;
            let order = self.order(&destination, now);
            self.numbers.insert(destination, number);
            self.assess(number);
            self.hold(number, order.held_until, now);
            if let Some(detour) = order.detour {
                self.go_by(number, Some(detour.until), now);
            }
        }
    }

    /// Adds a message held by the spool. Envelope and body stay in memory while the budget lasts and all
    /// earlier messages of the queue are in memory too. False: the queue is unknown or the record
    /// already known.
    pub fn admit(
        &mut self,
        number: QueueId,
        record: RecordId,
        envelope: Envelope,
        body: Option<Bytes>,
        now: Timestamp,
    ) -> bool {
        let trace = envelope.head.trace;
        if self.entries.find_record(trace, number, record).is_some() {
            return false;
        }
        let accepted = envelope.head.accepted_by(now);
        let not_before = self.next_attempt(&envelope.head, accepted, now);
        let Some(queue) = self.queues.get_mut(number) else {
            return false;
        };
        let mut entry = Entry::new(number, record, trace);
        entry.accepted = accepted;
        entry.size = envelope.head.size;
        entry.priority = envelope.head.priority;
        entry.attempts = envelope.head.attempts;
        entry.due = not_before.unwrap_or(now);
        entry.aside = envelope.head.is_quarantined();
        let slot = self.entries.insert(entry);
        if let Some(lifetime) = envelope.head.lifetime() {
            self.entries.set_lifetime(slot, lifetime);
            queue.dated += 1;
        }
        let list = queue.list_of(entry.aside);
        self.entries.push_back(list, Chain::Order, slot);
        if !entry.aside && !queue.aged.replace(true) {
            self.ages.note(number, accepted);
        }
        queue.used_at = now;
        queue.messages += 1;
        queue.came += 1;
        queue.octets += u64::from(envelope.head.size);
        self.totals.messages += 1;
        self.totals.came += 1;
        self.totals.destinations += usize::from(queue.messages == 1);
        self.totals.octets += u64::from(envelope.head.size);
        if entry.aside {
            self.keep_aside(slot);
        } else if let Some(until) = envelope.head.held_until.filter(|until| *until > now) {
            let due = not_before.unwrap_or(Timestamp::from_millis(0));
            self.keep_held(slot, until, due);
        } else if let Some(due) = not_before.filter(|time| *time > now) {
            self.defer(slot, due);
        } else {
            queue.push_ready(&mut self.entries, slot);
            let suspended = queue.is_suspended(now) || self.gates.suspend(queue, now);
            let first = queue.ready_at_hand + 1 == queue.ready && !suspended;
            if let Some(body) = body.filter(|_| first) {
                self.keep(number, slot, Rc::new(envelope), Some(body), false);
            }
            self.make_runnable(number);
        }
        if self.entries[slot].standing != Standing::Held {
            self.await_end(slot);
        }
        self.note_active(number);
        true
    }

    /// The time of the next attempt at a message of the spool. The stamp may come from a clock that was ahead: no wait
    /// exceeds the longest retry, or the message's own end if the sender has deferred the first attempt.
    fn next_attempt(
        &self,
        head: &ScheduleHead,
        accepted: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let latest = now + self.policy.longest_retry();
        let lifetime = head.lifetime().filter(|_| head.attempts == 0);
        let end = lifetime.map(|lifetime| accepted + lifetime);
        let latest = end.map_or(latest, |end| end.max(latest));
        head.not_before.map(|time| time.min(latest))
    }

    /// Whether a message admitted now would keep its body in memory: all earlier messages do.
    #[must_use]
    pub fn keeps(&self, number: QueueId, now: Timestamp) -> bool {
        self.queues.get(number).is_some_and(|queue| {
            queue.ready_at_hand == queue.ready
                && !queue.is_suspended(now)
                && !self.gates.suspend(queue, now)
                && self.heads.octets() < self.policy.head_memory_max
        })
    }

    /// Lets a message that is in no list wait for a time.
    fn defer(&mut self, slot: Slot, due: Timestamp) {
        let entry = &mut self.entries[slot];
        entry.standing = Standing::Deferred;
        entry.due = due;
        let number = entry.queue;
        self.wheel.insert(&mut self.entries, slot);
        self.totals.deferred += 1;
        if let Some(queue) = self.queues.get_mut(number) {
            queue.deferred += 1;
        }
    }

    /// Removes a message from the schedule, in any state.
    fn forget(&mut self, slot: Slot) {
        self.take_out(slot);
        let dated = self.drop_end(slot);
        let Entry {
            queue: number,
            size,
            aside,
            ..
        } = self.entries[slot];
        if let Some(queue) = self.queues.get_mut(number) {
            let list = queue.list_of(aside);
            self.entries.unlink(list, Chain::Order, slot);
            self.heads.remove(number, queue, slot);
            queue.messages -= 1;
            queue.dated -= u32::from(dated);
            queue.left += 1;
            queue.octets -= u64::from(size);
            self.totals.destinations -= usize::from(queue.messages == 0);
        }
        self.totals.messages -= 1;
        self.totals.left += 1;
        self.totals.octets -= u64::from(size);
        self.entries.remove(slot);
        self.note_active(number);
    }

    /// Removes a message from its place: the turn, a time, or an attempt.
    fn take_out(&mut self, slot: Slot) {
        let Entry {
            queue: number,
            standing,
            ..
        } = self.entries[slot];
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        match standing {
            Standing::Ready => queue.unready(&mut self.entries, slot),
            Standing::InFlight => {
                queue.in_flight -= 1;
                self.totals.in_flight -= 1;
            }
            Standing::Deferred => {
                self.wheel.remove(&mut self.entries, slot);
                queue.deferred -= 1;
                self.totals.deferred -= 1;
            }
            Standing::Held => {
                queue.held -= 1;
                self.totals.held -= 1;
                self.no_longer_held(slot);
            }
            Standing::Quarantined => {
                queue.quarantined -= 1;
                self.totals.quarantined -= 1;
            }
        }
    }

    /// Updates the list of queues shown by inspection.
    fn note_active(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        if queue.is_active() == (queue.active_at != NONE) {
            return;
        }
        if queue.is_active() {
            queue.active_at = u32::try_from(self.active.len()).unwrap_or(NONE);
            self.active.push(number);
            return;
        }
        let place = std::mem::replace(&mut queue.active_at, NONE);
        self.active.swap_remove(place as usize);
        let moved = self.active.get(place as usize).copied();
        if let Some(moved) = moved.and_then(|number| self.queues.get_mut(number)) {
            moved.active_at = place;
        }
    }
}

#[cfg(test)]
mod tests;
