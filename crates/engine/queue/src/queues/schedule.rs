//! The order of the queues' turns, and the handling of timers.

use vere_units::{QueueId, Timestamp};

use super::entries::Standing;
use super::{Next, Queues, Timer, Wanted};

/// Deferred messages examined per call, so that a million messages due at once do not block the
/// gateway.
const DUE_STEPS: u32 = 2_000;

impl Queues {
    /// The host's next task now, if any. The host calls this function until `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Next> {
        self.pass_time(now);
        loop {
            if let Some(number) = self.releases.pop_front() {
                return Some(Next::Release(number));
            }
            let number = self.next_in_ring()?;
            if let Some(queue) = self.queues.get_mut(number) {
                queue.in_ring = false;
            }
            let next = self.next(number, now);
            self.call_others(number, now);
            if next.is_some() {
                self.make_runnable(number);
                return next;
            }
        }
    }

    /// The time of the next call of [`poll`](Self::poll) if no event comes before.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        let timer = self.timers.first().map(|(time, _)| *time);
        timer.into_iter().chain(self.wheel.wake_at()).min()
    }

    /// Calls the next queues in the lines of all gates of a queue, after that queue's turn.
    fn call_others(&mut self, number: QueueId, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.called = false;
        for gate in queue.gates() {
            self.call_next(gate, now);
        }
    }

    /// Whether [`poll`](Self::poll) may return a task without a further event or timer.
    #[must_use]
    pub fn has_next(&self) -> bool {
        !self.ring.is_empty() || !self.releases.is_empty()
    }

    /// Appends a queue to the ring of queues with possible work.
    pub(super) fn make_runnable(&mut self, number: QueueId) {
        if let Some(queue) = self.queues.get_mut(number)
            && !queue.in_ring
        {
            queue.in_ring = true;
            self.ring.push_back(number);
        }
    }

    /// The queue whose turn it is. A queue that waits for a connection goes first while connections
    /// are free.
    fn next_in_ring(&mut self) -> Option<QueueId> {
        if self.totals.connections < self.policy.connections_max {
            let mut waiting = self.starved.pop();
            if waiting.is_none() && self.may_probe() {
                waiting = self.starved.pop_probing();
            }
            if waiting.is_some() {
                return waiting;
            }
        }
        self.ring.pop_front()
    }

    /// The next task of a queue.
    fn next(&mut self, number: QueueId, now: Timestamp) -> Option<Next> {
        let queue = self.queues.get(number)?;
        let first = self.turn(queue)?;
        if queue.is_suspended(now) {
            return None;
        }
        if self.gates.suspend(queue, now) {
            self.evict_all(number);
            self.must_wait(number, true, now);
            return None;
        }
        if let Some(wanted) = self.wanted(number, queue) {
            self.queues.get_mut(number)?.fetching = true;
            return Some(Next::Fetch(wanted));
        }
        // A worker has nothing to take until the message whose turn it is has been fetched.
        if !self.entries[first].at_hand || queue.ready_at_hand <= queue.coming {
            return None;
        }
        if queue.idle > 0 {
            return self.wake(number, now);
        }
        // Until an attempt proves that the destination works again, one connection probes the
        // destination.
        let limit = if queue.failures > 0 || self.probes_alone(queue) {
            1
        } else {
            self.connections_max(queue)
        };
        // A worker delivers message after message, so another worker pays only when several
        // messages wait per worker.
        let wanted = queue.workers == 0 || queue.ready > queue.workers;
        // Each later message of the queue can try again to open a connection.
        let spared = queue.workers > 0 && (self.spares() || self.would_give_way(queue));
        if queue.workers >= limit || spared || !wanted {
            return None;
        }
        self.open(number, now)
    }

    fn wake(&mut self, number: QueueId, now: Timestamp) -> Option<Next> {
        if self.must_wait(number, false, now) {
            return None;
        }
        self.stirs(number);
        let queue = self.queues.get_mut(number)?;
        self.gates.reserve(queue, false, now);
        queue.coming += 1;
        Some(Next::Wake(number))
    }

    fn open(&mut self, number: QueueId, now: Timestamp) -> Option<Next> {
        if self.must_wait(number, true, now) {
            return None;
        }
        let later = self.probes_later(self.queues.get(number)?);
        let queue = self.queues.get_mut(number)?;
        if self.totals.connections >= self.policy.connections_max {
            queue.in_ring = true;
            self.starved.push(number, self.gates.precedence(queue));
            self.release_any();
            return None;
        }
        if later {
            queue.in_ring = true;
            self.starved.push_probing(number);
            return None;
        }
        self.gates.reserve(queue, true, now);
        queue.workers += 1;
        queue.coming += 1;
        let workers = queue.workers;
        self.count_working(workers - 1, workers);
        self.totals.connections += 1;
        Some(Next::Open(number))
    }

    fn pass_time(&mut self, now: Timestamp) {
        while let Some(&(time, timer)) = self.timers.first() {
            if time > now {
                break;
            }
            self.timers.remove(&(time, timer));
            let number = match timer {
                Timer::Queue(number) => number,
                Timer::Gate(id) => {
                    self.pass_gate_time(id, time, now);
                    continue;
                }
            };
            let Some(queue) = self.queues.get_mut(number) else {
                continue;
            };
            if queue.paused_until.is_some_and(|until| until <= now) {
                queue.paused_until = None;
                self.totals.paused -= 1;
            }
            if queue.held_until.is_some_and(|until| until <= now) {
                queue.held_until = None;
            }
            let detour_over = queue.detour_until.is_some_and(|until| until <= now);
            if queue.fetch_after.is_some_and(|after| after <= now) {
                queue.fetch_after = None;
            }
            if detour_over {
                self.go_by(number, None, now);
            }
            self.note_active(number);
            self.make_runnable(number);
        }
        let mut steps = DUE_STEPS;
        while let Some(slot) = self.wheel.pop_due(&mut self.entries, now, &mut steps) {
            let number = self.entries[slot].queue;
            if self.entries[slot].standing == Standing::Held {
                self.hold_over(slot, now);
                continue;
            }
            if let Some(queue) = self.queues.get_mut(number) {
                queue.deferred -= 1;
                self.totals.deferred -= 1;
                queue.push_ready(&mut self.entries, slot);
            }
            self.make_runnable(number);
        }
    }

    /// Notes that the spool could not supply the wanted block. The next request follows at `again`.
    pub fn fetch_failed(&mut self, wanted: &Wanted, again: Timestamp) {
        if let Some(queue) = self.queues.get_mut(wanted.queue) {
            queue.fetching = false;
            queue.fetch_after = Some(again);
            self.timers.insert((again, Timer::Queue(wanted.queue)));
        }
    }

    /// Notes that the destination answered and can be reached. The connection is open until
    /// [`connection_closed`](Self::connection_closed).
    pub fn destination_reached(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.failures = 0;
        queue.established += 1;
        self.totals.established += 1;
        for id in queue.gates() {
            if let Some(gate) = self.gates.get_mut(id) {
                gate.established += 1;
            }
        }
        if queue.paused_until.take().is_some() {
            self.totals.paused -= 1;
        }
        if let Some(site) = queue.site {
            self.end_suspension(site);
        }
        self.note_active(number);
        self.make_runnable(number);
    }

    /// Pauses a destination to which no mail can be sent, whatever its hosts do for other
    /// destinations (the name cannot be looked up, a policy forbids delivery). Each pause is longer
    /// than the last. The host finds messages that expire meanwhile with
    /// [`first_expired`](Self::first_expired).
    pub fn destination_failed(&mut self, number: QueueId, reply: &str, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.last_reply = Some(reply.into());
        if queue.paused_until.is_some_and(|until| until > now) {
            return;
        }
        let by_hand = std::mem::take(&mut queue.by_hand);
        let step = crate::policy::Policy::step(queue.failures, by_hand);
        let until = now + self.policy.retry_after(step);
        queue.failures = step.saturating_add(1);
        if queue.paused_until.replace(until).is_none() {
            self.totals.paused += 1;
        }
        self.timers.insert((until, Timer::Queue(number)));
        self.evict_all(number);
        self.note_active(number);
    }
}
