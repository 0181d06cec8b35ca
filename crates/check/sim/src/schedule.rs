//! The schedule: virtual time in microseconds, and a heap of events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::faults::Repair;

/// Virtual time since the run began, in microseconds.
pub(crate) type Micros = u64;

pub(crate) const MILLI: Micros = 1_000;
pub(crate) const SECOND: Micros = 1_000_000;

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A node's loop goes round once.
    NodeTurn { node: usize, boot: u64 },
    /// Something of a node is due.
    NodeDue { node: usize, boot: u64 },
    /// A second has passed for a node.
    NodeTick { node: usize, boot: u64 },
    /// A node's process is started.
    NodeStart { node: usize, boot: u64 },
    /// The disk has completed the syncs requested until then.
    Synced { node: usize, boot: u64 },
    /// The logs of a node are looked through.
    Scrub { node: usize, boot: u64 },
    /// A connection is made, or not.
    Connect { conn: u64 },
    /// The first octets on the way arrive.
    Deliver { conn: u64, up: bool },
    /// An owner's loop goes round once.
    OwnerTurn { owner: usize },
    /// A client submits something.
    Submit { owner: usize },
    /// The register carries out a request, or fails to do so.
    Register { request: u64 },
    /// The register's answer arrives.
    Answer { request: u64 },
    /// Another life of an owner begins on this host.
    NewOwner { host: usize },
    /// Something breaks.
    Fault,
    /// And is repaired.
    Repair(Repair),
    /// No more faults from here on.
    Calm,
    /// Has everything recovered?
    Look,
}

#[derive(Debug, PartialEq, Eq)]
struct Scheduled {
    at: Micros,
    serial: u64,
    event: Event,
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

/// Virtual time.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    now: Micros,
    serial: u64,
    heap: BinaryHeap<Reverse<Scheduled>>,
}

impl Schedule {
    pub(crate) const fn now(&self) -> Micros {
        self.now
    }

    /// Number of events, past and scheduled.
    pub(crate) const fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn at(&mut self, at: Micros, event: Event) {
        self.serial += 1;
        let (at, serial) = (at.max(self.now), self.serial);
        self.heap.push(Reverse(Scheduled { at, serial, event }));
    }

    pub(crate) fn after(&mut self, delay: Micros, event: Event) {
        self.at(self.now + delay, event);
    }

    /// Goes on to the next event.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let Reverse(next) = self.heap.pop()?;
        self.now = next.at;
        Some(next.event)
    }
}
