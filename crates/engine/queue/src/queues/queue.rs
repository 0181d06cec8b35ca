//! One destination's queue: what waits, what is being tried, and when it may go on.

use std::cell::Cell;
use std::collections::VecDeque;

use vere_units::Timestamp;

use super::RecordId;
use super::entries::{Chain, Entries, List, NONE, Slot, Standing};
use super::gates::GateId;
use super::heads::Place;
use crate::destination::Destination;

/// Messages of one priority that wait for their turn.
#[derive(Debug)]
struct Lane {
    priority: i8,
    list: List,
    count: usize,
}

/// Of so many messages that leave, one is the oldest, whatever its priority: low ones wait long, and not for
/// ever.
const TURNS: u8 = 8;

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) destination: Destination,
    /// All its messages in acceptance order.
    pub(super) order: List,
    pub(super) messages: usize,
    pub(super) octets: u64,
    /// When it last got a message.
    pub(super) used_at: Timestamp,
    /// Tells it from others that had its number; 0 is nobody's.
    pub(super) serial: u32,
    /// Messages that are on their way into it.
    pub(super) expected: u32,
    /// Whether it is among those whose ages are kept.
    pub(super) aged: Cell<bool>,
    /// Messages that came since this process knows the queue, and those that left it for good.
    pub(super) came: u64,
    pub(super) left: u64,
    /// What is ready, the highest priority first.
    lanes: Vec<Lane>,
    /// Messages that left it for an attempt, counted round and round.
    turn: u8,
    pub(super) ready: usize,
    /// How many of those that are ready have their envelope in memory.
    pub(super) ready_at_hand: usize,
    pub(super) deferred: usize,
    pub(super) in_flight: usize,
    /// Messages that an operator holds one by one.
    pub(super) held: usize,
    /// What envelopes and bodies of this queue take in memory.
    pub(super) head_octets: usize,
    /// Messages with envelopes in memory in the order in which those came, and some that left.
    pub(super) heads: VecDeque<Place>,
    /// A block of records is on its way from the spool.
    pub(super) fetching: bool,
    /// No block is asked for before this time: the spool could not give one.
    pub(super) fetch_after: Option<Timestamp>,
    pub(super) workers: usize,
    pub(super) idle: usize,
    /// The turn in which the first of these became idle.
    pub(super) idle_since: u64,
    /// Idle workers that are to end and do not know it yet.
    pub(super) released: usize,
    /// Workers that end because others wait for a connection.
    pub(super) leaving: usize,
    /// Workers that were opened or woken for a message and have not come for one yet.
    pub(super) coming: usize,
    /// Whether it stands in the ring or among those that wait for a connection.
    pub(super) in_ring: bool,
    /// Its place among the queues that have something to show.
    pub(super) active_at: u32,
    /// Consecutive failures to reach the destination.
    pub(super) failures: u16,
    /// As that of a site.
    pub(super) by_hand: bool,
    pub(super) paused_until: Option<Timestamp>,
    /// An operator lets nothing out before.
    pub(super) held_until: Option<Timestamp>,
    /// Until when its messages go another way.
    pub(super) detour_until: Option<Timestamp>,
    /// The last complaint, of its hosts or about them.
    pub(super) last_reply: Option<Box<str>>,
    /// What its hosts said last about a message, good or bad; its memory is used again for the next.
    pub(super) last_answer: String,
    /// What the settings say of this destination, if they do.
    pub(super) place: Option<GateId>,
    /// The hosts that serve it, once they are known.
    pub(super) site: Option<GateId>,
    /// Whether it stands in a line of one of the two: for a token, for a connection.
    pub(super) in_line: [bool; 2],
    /// It stood in a line and its turn has come.
    pub(super) called: bool,
    /// Connections that are open, of its workers.
    pub(super) established: usize,
    /// The senders of all records before this one were told of their delay, or are told at an attempt.
    pub(super) told_before: RecordId,
    /// Before this time none of the others is to be told.
    pub(super) tell_from: Timestamp,
}

impl Queue {
    pub(super) const fn new(destination: Destination, serial: u32, now: Timestamp) -> Self {
        Self {
            destination,
            order: List::EMPTY,
            messages: 0,
            octets: 0,
            used_at: now,
            serial,
            expected: 0,
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
            told_before: 0,
            tell_from: Timestamp::from_millis(0),
        }
    }

    /// The gates that it passes.
    pub(super) fn gates(&self) -> impl Iterator<Item = GateId> + use<> {
        [self.place, self.site].into_iter().flatten()
    }

    /// Whether no message leaves it now, whatever is ready.
    pub(super) fn is_suspended(&self, now: Timestamp) -> bool {
        let later = |time: Option<Timestamp>| time.is_some_and(|until| until > now);
        later(self.paused_until) || later(self.held_until)
    }

    /// Whether it is to be shown.
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

    /// Puts a message that is in no list behind those of its priority.
    pub(super) fn push_ready(&mut self, entries: &mut Entries, slot: Slot) {
        let priority = entries[slot].priority;
        let lane = self.lane(priority);
        entries.push_back(&mut lane.list, Chain::Place, slot);
        lane.count += 1;
        self.now_ready(entries, slot);
    }

    /// Puts a message that is in no list before those of its priority.
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

    /// Takes a ready message out of its list.
    pub(super) fn unready(&mut self, entries: &mut Entries, slot: Slot) {
        let entry = &entries[slot];
        self.ready -= 1;
        self.ready_at_hand -= usize::from(entry.at_hand);
        let priority = entry.priority;
        let lane = self.lane(priority);
        entries.unlink(&mut lane.list, Chain::Place, slot);
        lane.count -= 1;
    }

    /// The message whose turn it is: the first one of the highest priority, or once in a while the oldest.
    pub(super) fn first_ready(&self, entries: &Entries) -> Option<Slot> {
        let mut heads = self.lanes.iter().filter_map(|lane| lane.list.head());
        if self.turn % TURNS == TURNS - 1 {
            heads.min_by_key(|slot| (entries[*slot].accepted, entries[*slot].record))
        } else {
            heads.next()
        }
    }

    /// A message has had its turn.
    pub(super) const fn pass_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// The priorities that are ready, the highest first, and how many messages of each.
    pub(super) fn priorities(&self) -> impl Iterator<Item = (i8, usize)> {
        let lanes = self.lanes.iter().filter(|lane| lane.count > 0);
        lanes.map(|lane| (lane.priority, lane.count))
    }

    /// The first ready message whose envelope is not in memory. Looks at those that are before it.
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
