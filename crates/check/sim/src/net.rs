//! Connections: two streams of octets each, in order, with delays and blocked directions.
//!
//! Sent octets arrive unless the receiving machine is gone, even after the connection was closed or the
//! sender died: late, if the direction was blocked in the meantime. Different connections overtake each
//! other.

use std::collections::{BTreeMap, VecDeque};

use vere_owner::Link;
use vere_spool::node::ConnectionId;

use crate::schedule::Micros;

/// A direction on the way between a machine with an owner and an address of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    pub(crate) host: usize,
    pub(crate) link: Link,
    /// Towards the node.
    pub(crate) up: bool,
}

/// Octets, or the end of the stream.
#[derive(Debug, Clone)]
pub(crate) enum Chunk {
    Octets(Vec<u8>),
    End,
}

/// A direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Octets on the way, with the time of arrival.
    flying: VecDeque<(Micros, Chunk)>,
    last: Micros,
    /// Octets on the way or not read.
    octets: usize,
    /// Arrived and not read.
    inbox: VecDeque<u8>,
    /// Octets were lost: no later octets may arrive.
    broken: bool,
    /// The stream has ended.
    pub(crate) ended: bool,
    /// Whether an event is scheduled for the first on the way.
    pub(crate) scheduled: bool,
}

impl Pipe {
    /// Octets that fit in.
    pub(crate) fn room(&self, capacity: usize) -> usize {
        capacity.saturating_sub(self.octets)
    }

    /// Sends a chunk, which does not arrive before `at`.
    pub(crate) fn send(&mut self, chunk: Chunk, at: Micros) {
        if let Chunk::Octets(octets) = &chunk {
            if self.broken {
                return;
            }
            self.octets += octets.len();
        }
        self.last = self.last.max(at);
        self.flying.push_back((self.last, chunk));
    }

    pub(crate) fn next_arrival(&self) -> Option<Micros> {
        self.flying.front().map(|(at, _)| *at)
    }

    /// Moves the chunks that have arrived by now to the inbox. True when a chunk arrived.
    pub(crate) fn arrive(&mut self, now: Micros) -> bool {
        let mut arrived = false;
        while self.flying.front().is_some_and(|(at, _)| *at <= now) {
            match self.flying.pop_front() {
                Some((_, Chunk::Octets(octets))) => self.inbox.extend(octets),
                _ => self.ended = true,
            }
            arrived = true;
        }
        arrived
    }

    /// Whether there is something to read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.inbox.is_empty() || self.ended
    }

    pub(crate) fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Reads into a buffer.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.inbox.len());
        for (to, from) in buffer.iter_mut().zip(self.inbox.drain(..count)) {
            *to = from;
        }
        self.octets -= count;
        count
    }

    pub(crate) fn read_all(&mut self) -> Vec<u8> {
        self.octets -= self.inbox.len();
        std::mem::take(&mut self.inbox).into()
    }

    /// Loses all octets on the way.
    pub(crate) fn lose(&mut self) {
        self.broken = true;
        for (_, chunk) in self.flying.drain(..) {
            if let Chunk::Octets(octets) = chunk {
                self.octets -= octets.len();
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.flying.is_empty() && self.inbox.is_empty()
    }
}

/// A connection, with both ends.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) owner: usize,
    pub(crate) host: usize,
    pub(crate) link: Link,
    /// The life of the node's process at the other end.
    pub(crate) boot: u64,
    /// The node's id of the connection; `None` before the connection is made and after the node closed
    /// it.
    pub(crate) id: Option<ConnectionId>,
    /// Whether the owner's end is open.
    pub(crate) owned: bool,
    /// Whether the connection is made; until then the attempt continues.
    pub(crate) made: bool,
    pub(crate) up: Pipe,
    pub(crate) down: Pipe,
}

impl Conn {
    pub(crate) fn pipe(&mut self, up: bool) -> &mut Pipe {
        if up { &mut self.up } else { &mut self.down }
    }

    pub(crate) const fn way(&self, up: bool) -> Way {
        Way {
            host: self.host,
            link: self.link,
            up,
        }
    }
}

/// All connections, and the blocked directions.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) conns: BTreeMap<u64, Conn>,
    next: u64,
    blocked: BTreeMap<Way, u32>,
    /// Added to every delay.
    pub(crate) slowness: Micros,
}

impl Network {
    pub(crate) fn add(&mut self, owner: usize, host: usize, link: Link) -> u64 {
        self.next += 1;
        let conn = Conn {
            owner,
            host,
            link,
            boot: 0,
            id: None,
            owned: true,
            made: false,
            up: Pipe::default(),
            down: Pipe::default(),
        };
        self.conns.insert(self.next, conn);
        self.next
    }

    pub(crate) fn block(&mut self, way: Way) {
        *self.blocked.entry(way).or_default() += 1;
    }

    pub(crate) fn unblock(&mut self, way: Way) {
        if let Some(count) = self.blocked.get_mut(&way) {
            *count -= 1;
            if *count == 0 {
                self.blocked.remove(&way);
            }
        }
    }

    pub(crate) fn unblock_all(&mut self) {
        self.blocked.clear();
    }

    pub(crate) fn is_blocked(&self, way: Way) -> bool {
        self.blocked.contains_key(&way)
    }

    /// Forgets a connection that is closed on both sides and empty.
    pub(crate) fn forget(&mut self, conn: u64) {
        let over = self.conns.get(&conn).is_some_and(|conn| {
            !conn.owned && conn.id.is_none() && conn.up.is_empty() && conn.down.is_empty()
        });
        if over {
            self.conns.remove(&conn);
        }
    }
}
