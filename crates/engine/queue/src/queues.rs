//! The schedule: which message goes to which destination next, over how many connections, and when
//! to try again.
//!
//! A [`Queues`] holds one queue per destination. Records keep acceptance order; what is deferred leaves
//! the ready list until its time and returns behind what is ready then. A destination that cannot be
//! reached at all is paused as a whole, so that a dead host costs one connection attempt per pause,
//! not one per message, and never slows another destination.

mod queue;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use bytes::Bytes;
use vere_units::Timestamp;

use crate::destination::Destination;
use crate::envelope::Envelope;
use crate::policy::Policy;
use crate::settlement::{Attempt, Disposition, RecipientResult, Settlement, settle};

pub use queue::QueueSummary;
use queue::{Entry, Queue};

/// The number of a queue within the gateway's group, as the spool knows it.
pub type QueueNumber = u32;
/// The number of a record within its queue: dense, in acceptance order.
pub type RecordId = u64;

/// What the host has to do for a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// An idle worker of this queue has work: wake one.
    Wake(QueueNumber),
    /// Start one more worker (a connection) for this queue. It counts as running until
    /// [`Queues::worker_ended`].
    Open(QueueNumber),
}

/// A message to deliver.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its record.
    pub record: RecordId,
    /// Its envelope at the time of this attempt.
    pub envelope: Rc<Envelope>,
    /// Its body when memory holds it; otherwise it is fetched from the spool.
    pub body: Option<Bytes>,
}

/// All queues of one gateway.
#[derive(Debug)]
pub struct Queues {
    policy: Policy,
    queues: HashMap<QueueNumber, Queue>,
    numbers: HashMap<Destination, QueueNumber>,
    /// Queues that may have something to do now.
    runnable: BTreeSet<QueueNumber>,
    /// When a queue has something to do again: a deferred message or the end of a pause.
    timers: BTreeSet<(Timestamp, QueueNumber)>,
    body_octets: usize,
}

impl Queues {
    /// Makes an empty set.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            queues: HashMap::new(),
            numbers: HashMap::new(),
            runnable: BTreeSet::new(),
            timers: BTreeSet::new(),
            body_octets: 0,
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
    }

    /// The number of a destination's queue, if it has one.
    #[must_use]
    pub fn number(&self, destination: &Destination) -> Option<QueueNumber> {
        self.numbers.get(destination).copied()
    }

    /// The destination of a queue.
    #[must_use]
    pub fn destination(&self, queue: QueueNumber) -> Option<&Destination> {
        self.queues.get(&queue).map(|queue| &queue.destination)
    }

    /// Makes a queue known under the number the spool gave it. Doing it again changes nothing.
    pub fn register(&mut self, number: QueueNumber, destination: Destination) {
        self.numbers.insert(destination.clone(), number);
        self.queues
            .entry(number)
            .or_insert_with(|| Queue::new(destination));
    }

    /// Takes a message that the spool holds. The body stays in memory while the budget lasts. An unknown
    /// queue or a record already known changes nothing.
    pub fn admit(
        &mut self,
        number: QueueNumber,
        record: RecordId,
        envelope: Envelope,
        body: Option<Bytes>,
        now: Timestamp,
    ) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        if queue.entries.contains_key(&record) {
            return;
        }
        let room = self.policy.body_memory_max.saturating_sub(self.body_octets);
        let body = body.filter(|body| body.len() <= room);
        self.body_octets += body.as_ref().map_or(0, Bytes::len);
        queue.octets += u64::from(envelope.size);
        match envelope.not_before {
            Some(time) if time > now => {
                queue.deferred.insert((time, record));
                self.timers.insert((time, number));
            }
            _ => {
                queue.ready.push_back(record);
                self.runnable.insert(number);
            }
        }
        let entry = Entry {
            envelope: Rc::new(envelope),
            body,
            in_flight: false,
        };
        queue.entries.insert(record, entry);
    }

    /// The next thing for the host to do now, if any; to be called until it returns `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Next> {
        self.expire_timers(now);
        while let Some(&number) = self.runnable.first() {
            let next = self
                .queues
                .get_mut(&number)
                .and_then(|queue| queue.next(number, self.policy.connections_max, now));
            if next.is_some() {
                return next;
            }
            self.runnable.remove(&number);
        }
        None
    }

    fn expire_timers(&mut self, now: Timestamp) {
        while let Some(&(time, number)) = self.timers.first() {
            if time > now {
                break;
            }
            self.timers.remove(&(time, number));
            if let Some(queue) = self.queues.get_mut(&number) {
                queue.release_due(now);
                self.runnable.insert(number);
            }
        }
    }

    /// When [`poll`](Self::poll) has something to do again without further events.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Gives a worker its next message; `None`: nothing is ready, or the destination is paused.
    pub fn take(&mut self, number: QueueNumber, now: Timestamp) -> Option<Job> {
        let queue = self.queues.get_mut(&number)?;
        if queue.paused_until.is_some_and(|until| until > now) {
            return None;
        }
        while let Some(record) = queue.ready.pop_front() {
            if let Some(entry) = queue.entries.get_mut(&record) {
                entry.in_flight = true;
                queue.in_flight += 1;
                let envelope = Rc::clone(&entry.envelope);
                return Some(Job {
                    record,
                    envelope,
                    body: entry.body.clone(),
                });
            }
        }
        None
    }

    /// Tells that a worker waits for work; [`Next::Wake`] ends that.
    pub fn worker_idle(&mut self, number: QueueNumber) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.idle += 1;
            self.runnable.insert(number);
        }
    }

    /// Tells that a worker that was idle goes on by itself (to end).
    pub fn worker_resumed(&mut self, number: QueueNumber) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.idle = queue.idle.saturating_sub(1);
        }
    }

    /// Tells that a worker has ended. Its jobs must have been settled or given back.
    pub fn worker_ended(&mut self, number: QueueNumber) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.workers = queue.workers.saturating_sub(1);
            self.runnable.insert(number);
        }
    }

    /// Puts a job back unchanged at the head of its queue: it was not tried.
    pub fn give_back(&mut self, number: QueueNumber, record: RecordId) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        if let Some(entry) = queue
            .entries
            .get_mut(&record)
            .filter(|entry| entry.in_flight)
        {
            entry.in_flight = false;
            queue.in_flight -= 1;
            queue.ready.push_front(record);
            self.runnable.insert(number);
        }
    }

    /// Decides what an attempt's results mean and updates the schedule: a settled record is gone, a
    /// deferred one waits. The host then does in the spool what the settlement says. `None` when the
    /// record is not in flight.
    pub fn settle(
        &mut self,
        number: QueueNumber,
        record: RecordId,
        attempt: &Attempt,
        now: Timestamp,
    ) -> Option<Settlement> {
        let queue = self.queues.get_mut(&number)?;
        let entry = queue
            .entries
            .get_mut(&record)
            .filter(|entry| entry.in_flight)?;
        let settlement = settle(&entry.envelope, attempt, &self.policy, now);
        entry.in_flight = false;
        queue.in_flight -= 1;
        let complaint = attempt
            .results
            .iter()
            .find(|one| one.disposition != Disposition::Delivered);
        match complaint {
            Some(result) => queue.last_reply = Some(result.reply.clone()),
            None => queue.failures = 0,
        }
        if let Some(rest) = &settlement.remaining {
            let time = rest.not_before.unwrap_or(now);
            entry.envelope = Rc::new(rest.clone());
            self.body_octets -= entry.body.take().map_or(0, |body| body.len());
            queue.deferred.insert((time, record));
            self.timers.insert((time, number));
        } else if let Some(entry) = queue.entries.remove(&record) {
            queue.octets -= u64::from(entry.envelope.size);
            self.body_octets -= entry.body.map_or(0, |body| body.len());
        }
        self.runnable.insert(number);
        Some(settlement)
    }

    /// Tells that the destination answered: it can be reached.
    pub fn destination_reached(&mut self, number: QueueNumber) {
        if let Some(queue) = self.queues.get_mut(&number) {
            queue.failures = 0;
            queue.paused_until = None;
        }
    }

    /// Tells that the destination cannot be reached at all: it is paused, longer each time. Messages
    /// whose time is over in the meantime are given out by [`take`](Self::take) after the pause and
    /// expire at their next failure.
    pub fn destination_failed(&mut self, number: QueueNumber, reply: &str, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&number) else {
            return;
        };
        let already_paused = queue.paused_until.is_some_and(|until| until > now);
        queue.last_reply = Some(reply.to_owned());
        if already_paused {
            return;
        }
        let until = now + self.policy.retry_after(queue.failures);
        queue.failures = queue.failures.saturating_add(1);
        queue.paused_until = Some(until);
        self.timers.insert((until, number));
    }

    /// Records of a paused queue that are too old to wait on: each is to be settled with
    /// [`unreachable`](Self::unreachable_attempt) now. At most `limit` at once.
    pub fn take_expired(&mut self, number: QueueNumber, limit: usize, now: Timestamp) -> Vec<Job> {
        let expire = self.policy.expire;
        let Some(queue) = self.queues.get_mut(&number) else {
            return Vec::new();
        };
        let over = |entry: &Entry| now.saturating_since(entry.envelope.accepted) >= expire;
        let mut jobs = Vec::new();
        // Acceptance order is expiry order, so the first young record ends the search.
        for (&record, entry) in &mut queue.entries {
            if jobs.len() >= limit || !over(entry) {
                break;
            }
            if entry.in_flight {
                continue;
            }
            entry.in_flight = true;
            queue.in_flight += 1;
            jobs.push(Job {
                record,
                envelope: Rc::clone(&entry.envelope),
                body: entry.body.clone(),
            });
        }
        for job in &jobs {
            if let Some(time) = job.envelope.not_before {
                queue.deferred.remove(&(time, job.record));
            }
        }
        if !jobs.is_empty() {
            let taken: BTreeSet<_> = jobs.iter().map(|job| job.record).collect();
            queue.ready.retain(|record| !taken.contains(record));
        }
        jobs
    }

    /// The attempt that stands for "the destination cannot be reached".
    #[must_use]
    pub fn unreachable_attempt(envelope: &Envelope, remote: &str, reply: &str) -> Attempt {
        let result = RecipientResult {
            disposition: Disposition::Deferred,
            status: "4.4.1".to_owned(),
            reply: reply.to_owned(),
            from_remote: false,
        };
        Attempt {
            remote: remote.to_owned(),
            reports_taken_over: false,
            results: vec![result; envelope.recipients.len()],
        }
    }

    /// Queues that are paused or hold messages, by destination.
    #[must_use]
    pub fn summaries(&self) -> Vec<QueueSummary> {
        let mut summaries: Vec<_> = self.queues.values().map(Queue::summary).collect();
        summaries.sort_by(|a, b| a.destination.cmp(&b.destination));
        summaries
    }

    /// Messages in all queues.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.queues.values().map(|queue| queue.entries.len()).sum()
    }

    /// The messages of one queue in acceptance order, from `skip` on, at most `limit`.
    pub fn list(
        &self,
        number: QueueNumber,
        skip: usize,
        limit: usize,
    ) -> impl Iterator<Item = (RecordId, &Envelope)> {
        let entries = self
            .queues
            .get(&number)
            .into_iter()
            .flat_map(|queue| &queue.entries);
        entries
            .skip(skip)
            .take(limit)
            .map(|(record, entry)| (*record, entry.envelope.as_ref()))
    }
}

#[cfg(test)]
mod tests;
