//! One destination's queue: what waits, what is being tried, and when it may go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use vere_units::Timestamp;

use super::{Next, QueueNumber, RecordId};
use crate::destination::Destination;
use crate::envelope::Envelope;

/// What `vere queue list` shows of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSummary {
    /// Its destination.
    pub destination: Destination,
    /// Messages in it.
    pub messages: usize,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages waiting for a later attempt.
    pub deferred: usize,
    /// Messages being delivered.
    pub in_flight: usize,
    /// Connections open or opening.
    pub connections: usize,
    /// When the destination is tried again, if it is paused.
    pub paused_until: Option<Timestamp>,
    /// When its oldest message was accepted.
    pub oldest: Option<Timestamp>,
    /// What the destination last said that was no success.
    pub last_reply: Option<String>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) envelope: Rc<Envelope>,
    pub(super) body: Option<Bytes>,
    pub(super) in_flight: bool,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) destination: Destination,
    pub(super) entries: BTreeMap<RecordId, Entry>,
    pub(super) ready: VecDeque<RecordId>,
    pub(super) deferred: BTreeSet<(Timestamp, RecordId)>,
    pub(super) octets: u64,
    pub(super) in_flight: usize,
    pub(super) workers: usize,
    pub(super) idle: usize,
    /// Consecutive failures to reach the destination.
    pub(super) failures: u16,
    pub(super) paused_until: Option<Timestamp>,
    pub(super) last_reply: Option<String>,
}

impl Queue {
    pub(super) fn new(destination: Destination) -> Self {
        Self {
            destination,
            entries: BTreeMap::new(),
            ready: VecDeque::new(),
            deferred: BTreeSet::new(),
            octets: 0,
            in_flight: 0,
            workers: 0,
            idle: 0,
            failures: 0,
            paused_until: None,
            last_reply: None,
        }
    }

    pub(super) fn next(
        &mut self,
        number: QueueNumber,
        connections_max: usize,
        now: Timestamp,
    ) -> Option<Next> {
        if self.ready.is_empty() || self.paused_until.is_some_and(|until| until > now) {
            return None;
        }
        if self.idle > 0 {
            self.idle -= 1;
            return Some(Next::Wake(number));
        }
        // While nothing proves that the destination answers again, one connection probes it.
        let limit = if self.failures > 0 {
            1
        } else {
            connections_max
        };
        // A worker takes message after message: one more pays only when several wait for each.
        let wanted = self.workers == 0 || self.ready.len() > self.workers;
        if self.workers >= limit || !wanted {
            return None;
        }
        self.workers += 1;
        Some(Next::Open(number))
    }

    pub(super) fn release_due(&mut self, now: Timestamp) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
        while let Some(&(time, record)) = self.deferred.first() {
            if time > now {
                break;
            }
            self.deferred.remove(&(time, record));
            self.ready.push_back(record);
        }
    }

    pub(super) fn summary(&self) -> QueueSummary {
        QueueSummary {
            destination: self.destination.clone(),
            messages: self.entries.len(),
            octets: self.octets,
            deferred: self.deferred.len(),
            in_flight: self.in_flight,
            connections: self.workers,
            paused_until: self.paused_until,
            oldest: self
                .entries
                .values()
                .next()
                .map(|entry| entry.envelope.accepted),
            last_reply: self.last_reply.clone(),
        }
    }
}
