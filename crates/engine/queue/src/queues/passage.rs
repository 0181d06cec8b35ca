//! Queues at their gates: passing a gate, and learning about the hosts behind the gate.

use vere_units::{QueueId, Timestamp};

use super::entries::{Slot, Standing};
use super::gates::{Answered, Gate, GateId, Key, Line};
use super::queue::Queue;
use super::{Queues, Timer};
use crate::limits::Limits;
use crate::site::SiteName;

impl Queues {
    /// Gives a queue the gate of its place, if a rule applies.
    pub(super) fn assess(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get(number) else {
            return;
        };
        let old = queue.place;
        let limits = self.policy.rules.for_destination(&queue.destination);
        let place = || Key::Place(queue.destination.place.clone());
        let new = limits.map(|limits| self.gates.enter(place(), *limits));
        self.exchange(number, old, new);
        if let Some(queue) = self.queues.get_mut(number) {
            queue.place = new;
        }
    }

    /// Applies new rules to all queues.
    pub(super) fn reassess(&mut self) {
        for number in self.queues.numbers() {
            self.assess(number);
        }
        for number in self.gates.reassess(&self.policy) {
            if let Some(queue) = self.queues.get_mut(number) {
                queue.in_line = [false; 2];
            }
        }
        // Raised limits are used at once.
        for place in 0..self.active.len() {
            self.make_runnable(self.active[place]);
        }
    }

    /// Moves a queue from an old gate to a new gate, already entered.
    pub(super) fn exchange(&mut self, number: QueueId, old: Option<GateId>, new: Option<GateId>) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        if old != new {
            queue.in_line = [false; 2];
            let idler = (queue.idle > 0).then_some((queue.idle_since, number));
            if let Some(gate) = old.and_then(|id| self.gates.get_mut(id)) {
                gate.connections -= queue.workers;
                gate.established -= queue.established;
                gate.leaving -= queue.leaving;
                if let Some(idler) = &idler {
                    gate.idlers.remove(idler);
                }
                self.totals.paused -= usize::from(gate.suspended_until.is_some());
            }
            if let Some(gate) = new.and_then(|id| self.gates.get_mut(id)) {
                gate.connections += queue.workers;
                gate.established += queue.established;
                gate.leaving += queue.leaving;
                gate.idlers.extend(idler);
                self.totals.paused += usize::from(gate.suspended_until.is_some());
            }
            let gates = queue.gates();
            for id in gates {
                self.gates.step_out(number, id);
            }
            self.make_runnable(number);
        }
        if let Some(id) = old {
            self.gates.leave(id);
        }
    }

    /// Records the hosts of a queue's destination, reported by a worker of the queue. False: the site
    /// accepts no further connection now, so the worker has to end.
    pub fn join_site(&mut self, number: QueueId, site: &SiteName, now: Timestamp) -> bool {
        let Some(queue) = self.queues.get(number) else {
            return true;
        };
        let old = queue.site;
        let known = old.and_then(|id| self.gates.get(id));
        if known.and_then(Gate::site) != Some(site) {
            let limits = self.policy.rules.for_hosts(site.hosts()).copied();
            let limits = limits.unwrap_or_default();
            let new = self.gates.enter(Key::Site(site.clone()), limits);
            self.exchange(number, old, Some(new));
            if let Some(queue) = self.queues.get_mut(number) {
                queue.site = Some(new);
                // Workers that are connecting took no token at this gate.
                self.gates.charge(new, queue.coming, now);
            }
        }
        self.keeps_worker(number, now)
    }

    /// Whether a worker may continue: the site accepts mail over at least the present number of
    /// connections, and no queue waits for a surplus connection of this queue.
    #[must_use]
    pub fn keeps_worker(&self, number: QueueId, now: Timestamp) -> bool {
        let Some(queue) = self.queues.get(number) else {
            return true;
        };
        let passes = self.gates.of(queue).all(|gate| {
            gate.connections <= gate.allowance(&self.policy) && !gate.is_suspended(now)
        });
        passes && !self.gives_way(queue)
    }

    /// Whether a worker may reconnect after its connection ended, or has to end because other queues wait
    /// for the place.
    pub fn may_reopen(&mut self, number: QueueId, now: Timestamp) -> bool {
        let Some(queue) = self.queues.get(number) else {
            return true;
        };
        self.starved.is_empty() && self.gates.reopen(queue, &self.policy, now)
    }

    /// Connections allowed to a queue now, including the connections of other queues at the same gates.
    pub(super) fn connections_allowed(&self, queue: &Queue) -> usize {
        let gates = self
            .gates
            .of(queue)
            .map(|gate| gate.allowance(&self.policy));
        let own = if queue.failures > 0 {
            1
        } else {
            self.connections_max(queue)
        };
        gates.fold(own, usize::min)
    }

    /// Whether a queue's messages are sent one at a time, in acceptance order.
    pub(super) fn is_in_order(&self, queue: &Queue) -> bool {
        let place = queue.place.and_then(|id| self.gates.get(id));
        place.is_some_and(|gate| gate.limits().in_order)
    }

    /// Whether the messages of a queue are sent in acceptance order.
    #[must_use]
    pub fn keeps_order(&self, number: QueueId) -> bool {
        let queue = self.queues.get(number);
        queue.is_some_and(|queue| self.is_in_order(queue))
    }

    /// The ready message whose turn has come: a message of the highest priority, and now and then the
    /// oldest; with strict order always the oldest message, unless the message waits for another attempt.
    pub(super) fn turn(&self, queue: &Queue) -> Option<Slot> {
        if !self.is_in_order(queue) {
            return queue.first_ready(&self.entries);
        }
        let oldest = queue.order.head();
        oldest.filter(|slot| self.entries[*slot].standing == Standing::Ready)
    }

    /// Connections of a queue: the general limit, or the limit of a rule.
    pub(super) fn connections_max(&self, queue: &Queue) -> usize {
        if self.is_in_order(queue) {
            return 1;
        }
        let gates = self.gates.of(queue);
        let mut own = gates.filter_map(|gate| gate.limits().connections_max);
        own.next()
            .unwrap_or(self.policy.connections_per_destination_max)
    }

    /// The most messages over a connection, if a rule has a limit.
    #[must_use]
    pub fn messages_per_connection_max(&self, number: QueueId) -> Option<u32> {
        let gates = self.gates.of(self.queues.get(number)?);
        let own = |limits: &Limits| limits.messages_per_connection_max;
        gates.filter_map(|gate| own(gate.limits())).min()
    }

    /// Records that an established connection was closed.
    pub fn connection_closed(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        if queue.established == 0 {
            return;
        }
        queue.established -= 1;
        self.totals.established -= 1;
        for id in queue.gates() {
            if let Some(gate) = self.gates.get_mut(id) {
                gate.established -= 1;
            }
        }
    }

    /// Records the sign of an attempt for the site's load.
    pub fn answered(&mut self, number: QueueId, answer: &Answered, now: Timestamp) {
        let Some(queue) = self.queues.get(number) else {
            return;
        };
        let Some(id) = queue.site else { return };
        let reply = queue.last_reply.clone().unwrap_or_default();
        let Some(gate) = self.gates.get_mut(id) else {
            return;
        };
        if gate.answered(answer, &self.policy, now) {
            self.suspend_site(id, &reply, now);
        }
        self.make_runnable(number);
    }

    /// Records that no host of the site accepted a connection. True: other connections were accepted, so
    /// the number is too high and will be lowered.
    pub fn refused_beside_others(&mut self, number: QueueId, now: Timestamp) -> bool {
        let site = self.queues.get(number).and_then(|queue| queue.site);
        match site.and_then(|id| self.gates.get_mut(id)) {
            Some(gate) if gate.established > 0 => {
                gate.cap(now);
                true
            }
            _ => false,
        }
    }

    /// Records that no host of the site can be reached: all destinations of the site wait, longer each
    /// time, without attempts in between.
    pub fn site_failed(&mut self, number: QueueId, reply: &str, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        let Some(site) = queue.site else {
            return self.destination_failed(number, reply, now);
        };
        queue.last_reply = Some(reply.into());
        self.suspend_site(site, reply, now);
        self.evict_all(number);
    }

    fn suspend_site(&mut self, id: GateId, reply: &str, now: Timestamp) {
        let Some(gate) = self.gates.get_mut(id) else {
            return;
        };
        // Several workers may detect the failure at the same time.
        if gate.is_suspended(now) {
            return;
        }
        if gate.suspended_until.is_none() {
            self.totals.paused += gate.members;
        }
        self.gates.suspend_site(id, reply, &self.policy, now);
        self.arm(id, now);
    }

    /// Lets queues pass again.
    pub(super) fn end_suspension(&mut self, id: GateId) {
        if self.gates.resume(id) {
            self.totals.paused -= self.gates.get(id).map_or(0, |gate| gate.members);
        }
    }

    /// Queues that wait for a connection to the same site.
    #[must_use]
    pub fn waiting_beside(&self, number: QueueId) -> Vec<QueueId> {
        let site = self.queues.get(number).and_then(|queue| queue.site);
        let gate = site.and_then(|id| self.gates.get(id));
        gate.map_or_else(Vec::new, |gate| gate.waiting(Line::Connection).collect())
    }

    /// Puts a queue into the line of a barring gate, if any. True: the queue has to wait.
    pub(super) fn must_wait(&mut self, number: QueueId, opens: bool, now: Timestamp) -> bool {
        let Some(queue) = self.queues.get_mut(number) else {
            return true;
        };
        let Some((id, line)) = self.gates.bar(queue, opens, &self.policy, now) else {
            return false;
        };
        if !std::mem::replace(&mut queue.in_line[line as usize], true) {
            self.gates.line_up(number, id, line, queue.called);
            if line == Line::Connection {
                self.release_at(id);
            }
        }
        self.arm(id, now);
        true
    }

    /// Calls the queues that the gate can let pass now: the first of each line, the next after the first
    /// has passed.
    pub(super) fn call_next(&mut self, id: GateId, now: Timestamp) {
        for line in [Line::Token, Line::Connection] {
            if let Some(number) = self.gates.call(id, line, &self.policy, now)
                && let Some(queue) = self.queues.get_mut(number)
            {
                queue.in_line[line as usize] = false;
                queue.called = true;
                self.make_runnable(number);
            }
        }
        self.arm(id, now);
    }

    /// Sets the timer of a gate for changes that come with time alone.
    fn arm(&mut self, id: GateId, now: Timestamp) {
        let Some(gate) = self.gates.get_mut(id) else {
            return;
        };
        let wake_at = gate.wake_at(&self.policy, now);
        if let Some(at) = wake_at.filter(|at| gate.timer.is_none_or(|timer| *at < timer)) {
            gate.timer = Some(at);
            self.timers.insert((at, Timer::Gate(id)));
        }
    }

    /// A gate's time has come.
    pub(super) fn pass_gate_time(&mut self, id: GateId, time: Timestamp, now: Timestamp) {
        let Some(gate) = self.gates.get_mut(id) else {
            return;
        };
        if gate.timer == Some(time) {
            gate.timer = None;
        }
        if gate.suspended_until.is_some_and(|until| until <= now) {
            self.end_suspension(id);
        }
        self.call_next(id, now);
    }
}
