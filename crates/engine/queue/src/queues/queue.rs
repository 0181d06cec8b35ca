//! The queue of one destination: waiting messages, attempts, and pauses.

use std::cell::Cell;
use std::collections::VecDeque;

use vere_units::{RecordId, Timestamp};

use super::entries::{Chain, Entries, List, NONE, Slot, Standing};
use super::gates::GateId;
use super::heads::HeadPlace;
use crate::destination::Destination;

/// Messages of one priority, waiting for their turn.
#[derive(Debug)]
struct Lane {
    priority: i8,
    list: List,
    count: usize,
}

/// Length of the rotation of priorities. In every rotation one message is the oldest of any
/// priority, so that low priorities wait long but not forever.
const TURNS: u8 = 8;

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) destination: Destination,
    /// All messages of the queue in acceptance order, without the quarantine.
    pub(super) order: List,
    /// The messages of the quarantine in acceptance order.
    pub(super) quarantine: List,
    pub(super) messages: usize,
    pub(super) octets: u64,
    /// Time of the last admission.
    pub(super) used_at: Timestamp,
    /// Tells the queue apart from earlier queues of the same number; 0 is never used.
    pub(super) serial: u32,
    /// Messages about to be admitted.
    pub(super) expected: u32,
    /// Messages with an end of their own.
    pub(super) dated: u32,
    /// Whether the queue is listed in the ages.
    pub(super) aged: Cell<bool>,
    /// Messages admitted since this process knows the queue, and messages that left the queue for
    /// good.
    pub(super) came: u64,
    pub(super) left: u64,
    /// Ready messages, the highest priority first.
    lanes: Vec<Lane>,
    /// Number of messages taken for an attempt; the count wraps.
    turn: u8,
    pub(super) ready: usize,
    /// Ready messages with their envelope in memory.
    pub(super) ready_at_hand: usize,
    pub(super) deferred: usize,
    pub(super) in_flight: usize,
    /// Messages held individually by an operator.
    pub(super) held: usize,
    /// Messages in the quarantine.
    pub(super) quarantined: usize,
    /// Octets of this queue's envelopes and bodies in memory.
    pub(super) head_octets: usize,
    /// Messages with envelopes in memory, in the order of arrival in memory, and some removed
    /// messages.
    pub(super) heads: VecDeque<HeadPlace>,
    /// Whether a block of records is on the way from the spool.
    pub(super) fetching: bool,
    /// Earliest time of the next request for a block, because the spool failed to supply one.
    pub(super) fetch_after: Option<Timestamp>,
    pub(super) workers: usize,
    pub(super) idle: usize,
    /// The turn in which the first idle worker became idle.
    pub(super) idle_since: u64,
    /// Idle workers that are to end and have not noticed yet.
    pub(super) released: usize,
    /// Workers that end because other queues wait for a connection.
    pub(super) leaving: usize,
    /// Workers opened or woken for a message that have not taken a message yet.
    pub(super) coming: usize,
    /// Whether the queue is in the ring or waits for a connection.
    pub(super) in_ring: bool,
    /// The queue's position in the list of active queues.
    pub(super) active_at: u32,
    /// Consecutive failures to reach the destination.
    pub(super) failures: u16,
    /// The next failure follows an operator's attempt, as for a site.
    pub(super) by_hand: bool,
    pub(super) paused_until: Option<Timestamp>,
    /// The end of the operator's hold on the queue.
    pub(super) held_until: Option<Timestamp>,
    /// The end of the queue's detour.
    pub(super) detour_until: Option<Timestamp>,
    /// The last failure replied by the hosts, or recorded about the hosts.
    pub(super) last_reply: Option<Box<str>>,
    /// The hosts' last reply about a message, success or not. The buffer is reused for the next
    /// reply.
    pub(super) last_answer: String,
    /// The gate of the rule for this destination, if a rule exists.
    pub(super) place: Option<GateId>,
    /// The gate of the destination's hosts, once the hosts are known.
    pub(super) site: Option<GateId>,
    /// Whether the queue waits in a gate's line: for a token, for a connection.
    pub(super) in_line: [bool; 2],
    /// The queue was called from a line.
    pub(super) called: bool,
    /// Open connections of the queue's workers.
    pub(super) established: usize,
    /// Senders of records before this record have been notified of the delay, or will be at an
    /// attempt.
    pub(super) told_before: RecordId,
    /// Earliest time at which senders of further records are due for a delay report.
    pub(super) tell_from: Timestamp,
}

impl Queue {
    pub(super) const fn new(destination: Destination, serial: u32, now: Timestamp) -> Self {
        Self {
            destination,
            order: List::EMPTY,
            quarantine: List::EMPTY,
            messages: 0,
            octets: 0,
            used_at: now,
            serial,
            expected: 0,
            dated: 0,
            aged: Cell::new(false),
            came: 0,
            left: 0,
            lanes: Vec::new(),
            turn: 0,
            ready: 0,
            ready_at_hand: 0,
            deferred: 0,
            in_flight: 0,
            held: 0,
            quarantined: 0,
            head_octets: 0,
            heads: VecDeque::new(),
            fetching: false,
            fetch_after: None,
            workers: 0,
            idle: 0,
            idle_since: 0,
            released: 0,
            leaving: 0,
            coming: 0,
            in_ring: false,
            active_at: NONE,
            failures: 0,
            by_hand: false,
            paused_until: None,
            held_until: None,
            detour_until: None,
            last_reply: None,
            last_answer: String::new(),
            place: None,
            site: None,
            in_line: [false; 2],
            called: false,
            established: 0,
            told_before: RecordId(0),
            tell_from: Timestamp::from_millis(0),
        }
    }

    /// The list that has the messages of the quarantine, or all others.
    pub(super) const fn list_of(&mut self, aside: bool) -> &mut List {
        if aside {
            &mut self.quarantine
        } else {
            &mut self.order
        }
    }

    /// The gates that the queue passes.
    pub(super) fn gates(&self) -> impl Iterator<Item = GateId> + use<> {
        [self.place, self.site].into_iter().flatten()
    }

    /// Whether a pause or an operator's hold stops the queue, even with ready messages.
    pub(super) fn is_suspended(&self, now: Timestamp) -> bool {
        let later = |time: Option<Timestamp>| time.is_some_and(|until| until > now);
        later(self.paused_until) || later(self.held_until)
    }

    /// Whether the inspection shows the queue.
    pub(super) const fn is_active(&self) -> bool {
        self.messages > 0 || self.paused_until.is_some() || self.held_until.is_some()
    }

    fn lane(&mut self, priority: i8) -> &mut Lane {
        let place = self.lanes.partition_point(|lane| lane.priority > priority);
        if self
            .lanes
            .get(place)
            .is_none_or(|lane| lane.priority != priority)
        {
            let lane = Lane {
                priority,
                list: List::EMPTY,
                count: 0,
            };
            self.lanes.insert(place, lane);
        }
        &mut self.lanes[place]
    }

    /// Appends an unlisted message to the ready messages of its priority.
    pub(super) fn push_ready(&mut self, entries: &mut Entries, slot: Slot) {
        let priority = entries[slot].priority;
        let lane = self.lane(priority);
        entries.push_back(&mut lane.list, Chain::Place, slot);
        lane.count += 1;
        self.now_ready(entries, slot);
    }

    /// Prepends an unlisted message to the ready messages of its priority.
    pub(super) fn push_ready_front(&mut self, entries: &mut Entries, slot: Slot) {
        let priority = entries[slot].priority;
        let lane = self.lane(priority);
        entries.push_front(&mut lane.list, Chain::Place, slot);
        lane.count += 1;
        self.now_ready(entries, slot);
    }

    fn now_ready(&mut self, entries: &mut Entries, slot: Slot) {
        entries[slot].standing = Standing::Ready;
        self.ready += 1;
        self.ready_at_hand += usize::from(entries[slot].at_hand);
    }

    /// Removes a ready message from its list.
    pub(super) fn unready(&mut self, entries: &mut Entries, slot: Slot) {
        let entry = &entries[slot];
        self.ready -= 1;
        self.ready_at_hand -= usize::from(entry.at_hand);
        let priority = entry.priority;
        let lane = self.lane(priority);
        entries.unlink(&mut lane.list, Chain::Place, slot);
        lane.count -= 1;
    }

    /// The next message: the first of the highest priority, or once a rotation the oldest.
    pub(super) fn first_ready(&self, entries: &Entries) -> Option<Slot> {
        let mut heads = self.lanes.iter().filter_map(|lane| lane.list.head());
        if self.turn % TURNS == TURNS - 1 {
            heads.min_by_key(|slot| (entries[*slot].accepted, entries[*slot].record))
        } else {
            heads.next()
        }
    }

    /// Counts the turn of a message.
    pub(super) const fn pass_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// The priorities with ready messages, the highest first, and their number of messages.
    pub(super) fn priorities(&self) -> impl Iterator<Item = (i8, usize)> {
        let lanes = self.lanes.iter().filter(|lane| lane.count > 0);
        lanes.map(|lane| (lane.priority, lane.count))
    }

    /// The first ready message without an envelope in memory. Reads all entries before that
    /// message.
    pub(super) fn first_missing(&self, entries: &Entries) -> Option<Slot> {
        self.lanes.iter().find_map(|lane| {
            let mut at = lane.list.head();
            while let Some(slot) = at.filter(|slot| entries[*slot].at_hand) {
                at = entries.next(Chain::Place, slot);
            }
            at
        })
    }
}
