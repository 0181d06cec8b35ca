//! Jobs of workers, and their results.

use std::rc::Rc;

use bytes::Bytes;
use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use super::entries::{Chain, Slot, Standing};
use super::{Job, Queues};
use crate::envelope::Envelope;
use crate::settlement::{Attempt, Disposition, RecipientResult, Settlement, settle_aged};

impl Queues {
    /// Gives a worker its next message. Returns `None` if no message is ready, the destination is
    /// paused, or the rate allows no message now. `fresh`: the worker has taken no message since it
    /// was opened or woken.
    pub fn take(&mut self, number: QueueId, fresh: bool, now: Timestamp) -> Option<Job> {
        let turn = self.turn(self.queues.get(number)?);
        let queue = self.queues.get_mut(number)?;
        if fresh {
            queue.coming = queue.coming.saturating_sub(1);
        }
        let suspended = queue.is_suspended(now) || self.gates.suspend(queue, now);
        let ready = turn.filter(|_| !suspended);
        let Some(slot) = ready.filter(|slot| self.entries[*slot].at_hand) else {
            if fresh {
                self.gates.give_back(queue);
            }
            if fresh || ready.is_some() {
                // The queue wakes the worker after its block arrives. Other queues may use the
                // returned token.
                self.make_runnable(number);
            }
            return None;
        };
        if !fresh {
            // Queues in the gate's line come first.
            if self.gates.bar(queue, false, &self.policy, now).is_some() {
                return None;
            }
            self.gates.reserve(queue, false, now);
        }
        queue.unready(&mut self.entries, slot);
        queue.pass_turn();
        if self.heads_low(number) {
            self.make_runnable(number);
        }
        self.fly(slot);
        self.job(slot)
    }

    /// Notes that an opened or woken worker does not take a message.
    pub fn stays_away(&mut self, number: QueueId) {
        if let Some(queue) = self.queues.get_mut(number) {
            queue.coming = queue.coming.saturating_sub(1);
            self.gates.give_back(queue);
            self.make_runnable(number);
        }
    }

    fn heads_low(&self, number: QueueId) -> bool {
        self.queues
            .get(number)
            .is_some_and(|queue| self.wanted(number, queue).is_some())
    }

    /// Marks a message as in flight that is in no list.
    pub(super) fn fly(&mut self, slot: Slot) {
        self.entries[slot].standing = Standing::InFlight;
        if let Some(queue) = self.queues.get_mut(self.entries[slot].queue) {
            queue.in_flight += 1;
            self.totals.in_flight += 1;
        }
    }

    /// Removes a message from its queue, ready, deferred or held, to settle the message without an
    /// attempt. Returns `None` if the message is being delivered, in the quarantine, or gone.
    pub fn claim(
        &mut self,
        number: QueueId,
        record: RecordId,
        envelope: Envelope,
        body: Bytes,
    ) -> Option<Job> {
        let slot = self
            .entries
            .find_record(envelope.head.trace, number, record)?;
        let standing = self.entries[slot].standing;
        if matches!(standing, Standing::InFlight | Standing::Quarantined) {
            return None;
        }
        self.take_out(slot);
        self.fly(slot);
        if !self.entries[slot].at_hand {
            self.keep(number, slot, Rc::new(envelope), Some(body), true);
        }
        self.job(slot)
    }

    /// The oldest message of a queue that has expired by age, and is neither in flight nor held. Messages with an end
    /// of their own are left out ([`overdue`](Self::overdue)).
    #[must_use]
    pub fn first_expired(&self, number: QueueId, now: Timestamp) -> Option<RecordId> {
        let queue = self.queues.get(number)?;
        // A held queue keeps expired messages too. A queue of messages with ends of their own need not be searched.
        let by_age = queue.held_until.is_none() && queue.dated as usize != queue.messages;
        let mut at = queue.order.head().filter(|_| by_age);
        while let Some(slot) = at {
            let entry = &self.entries[slot];
            // Acceptance order is the order of expiry by age, so the first young record ends the search.
            if !self.is_expired(entry.accepted, now) {
                return None;
            }
            let is_busy = matches!(entry.standing, Standing::InFlight | Standing::Held);
            if !is_busy && self.entries.lifetime(slot).is_none() {
                return Some(entry.record);
            }
            at = self.entries.next(Chain::Order, slot);
        }
        None
    }

    /// The first record whose sender may be due for a delay report, because the message waits
    /// behind others. `None` if no report is due. The host reads records from there on, settles
    /// each by [`delay::notice`](crate::delay::notice), and reports its progress with
    /// [`Queues::told`].
    #[must_use]
    pub fn first_untold(&self, number: QueueId, now: Timestamp) -> Option<RecordId> {
        let after = self.policy.delay_notice?;
        let queue = self.queues.get(number)?;
        let oldest = &self.entries[queue.order.head()?];
        let due = queue.tell_from.max(oldest.accepted + after) <= now;
        due.then_some(queue.told_before)
    }

    /// Notes that senders of all records before `before` have had any due delay report. `young` is the
    /// acceptance time of the first message that is not due yet, if there is one.
    pub fn told(&mut self, number: QueueId, before: RecordId, young: Option<Timestamp>) {
        let after = self.policy.delay_notice.unwrap_or_default();
        if let Some(queue) = self.queues.get_mut(number) {
            queue.told_before = queue.told_before.max(before);
            if let Some(accepted) = young {
                queue.tell_from = accepted + after;
            }
        }
    }

    /// Whether a message of this acceptance time, without an end of its own, is given up at its next failure.
    #[must_use]
    pub fn is_expired(&self, accepted: Timestamp, now: Timestamp) -> bool {
        now >= self.spared_until && now.saturating_since(accepted) >= self.policy.expire
    }

    /// Notes that a worker has ended. `fresh`: the worker took no message since it was opened or
    /// woken. The worker's jobs must have been settled or given back.
    pub fn worker_ended(&mut self, number: QueueId, fresh: bool) {
        if fresh {
            self.stays_away(number);
        }
        self.has_left(number);
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        let workers = queue.workers;
        if workers > 0 {
            queue.workers -= 1;
            for id in queue.gates() {
                if let Some(gate) = self.gates.get_mut(id) {
                    gate.connections -= 1;
                }
            }
        }
        self.count_working(workers, workers.saturating_sub(1));
        self.totals.connections = self.totals.connections.saturating_sub(1);
        self.make_runnable(number);
    }

    /// Whether the job is still in flight.
    fn in_flight(&self, number: QueueId, job: &Job) -> bool {
        let found = self
            .entries
            .find_record(job.envelope.head.trace, number, job.record);
        found == Some(job.slot) && self.entries[job.slot].standing == Standing::InFlight
    }

    /// Puts an untried job back unchanged at the head of its queue.
    pub fn give_back(&mut self, number: QueueId, job: &Job) {
        if !self.in_flight(number, job) {
            return;
        }
        self.take_out(job.slot);
        if let Some(queue) = self.queues.get_mut(number) {
            queue.push_ready_front(&mut self.entries, job.slot);
        }
        self.make_runnable(number);
    }

    /// Forgets a job whose record is missing in the spool. The queue would otherwise retry the job
    /// forever and block later messages. Returns false if the job is not in flight.
    pub fn lose(&mut self, number: QueueId, job: &Job) -> bool {
        let is_ours = self.in_flight(number, job);
        if is_ours {
            self.forget(job.slot);
            self.make_runnable(number);
        }
        is_ours
    }

    /// Decides the outcome of an attempt and updates the schedule. A finished message leaves the
    /// queue. A remaining message stays in flight until its record is written
    /// ([`Queues::written`]), because an earlier reader would see the envelope before the attempt.
    /// The host carries out the settlement in the spool. Returns `None` if the record is not in
    /// flight.
    pub fn settle(
        &mut self,
        number: QueueId,
        job: &Job,
        attempt: &Attempt,
        now: Timestamp,
    ) -> Option<Settlement> {
        if !self.in_flight(number, job) {
            return None;
        }
        let queue = self.queues.get_mut(number)?;
        let complaint = attempt
            .results
            .iter()
            .find(|one| one.disposition != Disposition::Delivered);
        match complaint {
            Some(result) => queue.last_reply = Some(result.reply.as_str().into()),
            None => queue.failures = 0,
        }
        let said = complaint.or(attempt.results.last());
        if let Some(result) = said.filter(|result| result.from_remote) {
            queue.last_answer.clear();
            queue.last_answer.push_str(&result.reply);
        }
        let settlement = self.settle_by_clock(job, attempt, now);
        if settlement.remaining.is_none() {
            self.forget(job.slot);
        }
        self.make_runnable(number);
        Some(settlement)
    }

    /// Settles by the times in memory, because the record's times are by the clock at the time of
    /// writing.
    fn settle_by_clock(&self, job: &Job, attempt: &Attempt, now: Timestamp) -> Settlement {
        let (entry, recorded) = (&self.entries[job.slot], &job.envelope);
        let over = self.is_over(job.slot, now);
        // The message is due by the clock in memory, whatever the record says. By the record's
        // time, the attempt would look like an operator's retry.
        let was_due = entry.due <= now && recorded.head.not_before.is_some_and(|due| due > now);
        if entry.accepted == recorded.head.accepted && !was_due {
            return settle_aged(recorded, attempt, &self.policy, now, over);
        }
        let mut envelope = Envelope::clone(recorded);
        if was_due {
            envelope.head.not_before = None;
        }
        if entry.accepted != recorded.head.accepted {
            envelope.head.accept_at(entry.accepted);
            envelope.head.seen = None;
        }
        let mut settlement = settle_aged(&envelope, attempt, &self.policy, now, over);
        // After a step of the clock, the remaining envelope is written with the times of the new
        // clock. A clock read at a start is unverified, so the recorded times are kept.
        let rest = settlement.remaining.as_mut();
        if let Some(rest) = rest.filter(|_| recorded.head.seen == Some(entry.accepted)) {
            (rest.head.accepted, rest.head.seen) = (recorded.head.accepted, recorded.head.seen);
            rest.head.expires = recorded.head.expires;
        }
        settlement
    }

    /// Notes that the remaining envelope of a settled message is in its record, or will be before
    /// any later request for that record. The message then waits for its next attempt.
    pub fn written(&mut self, number: QueueId, job: &Job, rest: &Envelope, now: Timestamp) {
        if !self.in_flight(number, job) {
            return;
        }
        let slot = job.slot;
        self.take_out(slot);
        if let Some(queue) = self.queues.get_mut(number) {
            self.heads.remove(number, queue, slot);
        }
        let entry = &mut self.entries[slot];
        entry.at_hand = false;
        entry.attempts = rest.head.attempts;
        self.defer(slot, rest.head.not_before.unwrap_or(now));
        self.make_runnable(number);
    }

    /// The result for all recipients when the destination cannot be reached.
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
            results: vec![result; envelope.mail.recipients.len()],
        }
    }

    /// Queues and records that contain a message.
    pub fn places(&self, trace: TraceId) -> impl Iterator<Item = (QueueId, RecordId)> {
        self.entries
            .find(trace)
            .map(|slot| (self.entries[slot].queue, self.entries[slot].record))
    }
}
