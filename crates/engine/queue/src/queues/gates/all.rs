//! The gates by number, and questions about the gates of a queue.

use std::collections::HashMap;

use vere_units::{QueueId, Timestamp};

use super::super::queue::Queue;
use super::super::step::Step;
use super::{Gate, GateId, GateTotals, Key, Line};
use crate::limits::{Limits, Precedence};
use crate::policy::Policy;

/// All gates.
#[derive(Debug, Default)]
pub(in super::super) struct Gates {
    gates: Vec<Option<Box<Gate>>>,
    free: Vec<GateId>,
    by_key: HashMap<Key, GateId>,
    /// Current counts, updated with every change.
    totals: GateTotals,
}

impl Gates {
    pub(in super::super) fn get(&self, id: GateId) -> Option<&Gate> {
        self.gates.get(id as usize)?.as_deref()
    }

    pub(in super::super) fn get_mut(&mut self, id: GateId) -> Option<&mut Gate> {
        self.gates.get_mut(id as usize)?.as_deref_mut()
    }

    /// Follows a step of the wall clock.
    pub(in super::super) fn step(&mut self, step: Step) {
        let gates = self.gates.iter_mut().flatten();
        gates.for_each(|gate| gate.step(step));
    }

    /// Applies a change to a gate, if the gate exists.
    pub(in super::super) fn with<T>(&mut self, id: GateId, change: impl FnOnce(&mut Gate) -> T) {
        if let Some(gate) = self.get_mut(id) {
            change(gate);
        }
    }

    pub(in super::super) fn of<'a>(&'a self, queue: &Queue) -> impl Iterator<Item = &'a Gate> {
        queue.gates().filter_map(|id| self.get(id))
    }

    /// Returns the gate of a key, creating a missing gate, and counts one more member.
    pub(in super::super) fn enter(&mut self, key: Key, limits: Limits) -> GateId {
        let id = match self.by_key.get(&key) {
            Some(id) => *id,
            None => {
                let id = self.free.pop().unwrap_or_else(|| {
                    self.gates.push(None);
                    u32::try_from(self.gates.len() - 1).unwrap_or(u32::MAX)
                });
                self.by_key.insert(key.clone(), id);
                let gate = Gate::new(key, limits);
                self.totals.sites += usize::from(gate.site().is_some());
                self.gates[id as usize] = Some(Box::new(gate));
                id
            }
        };
        if let Some(gate) = self.get_mut(id) {
            gate.members += 1;
            gate.set_limits(limits);
        }
        id
    }

    /// Counts one member less, and removes a gate without members.
    pub(in super::super) fn leave(&mut self, id: GateId) {
        let Some(gate) = self.get_mut(id) else { return };
        gate.members -= 1;
        if gate.members == 0 {
            let key = gate.key.clone();
            let suspended = gate.suspended_until.is_some();
            self.totals.sites_suspended -= usize::from(suspended);
            self.totals.sites -= usize::from(matches!(key, Key::Site(_)));
            self.by_key.remove(&key);
            self.gates[id as usize] = None;
            self.free.push(id);
        }
    }

    /// Counts of sites, and of waiting destinations.
    pub(in super::super) const fn totals(&self) -> GateTotals {
        self.totals
    }

    /// The counts of [`totals`](Self::totals), computed from all gates.
    #[cfg(test)]
    pub(in super::super) fn counted(&self) -> GateTotals {
        let mut totals = GateTotals::default();
        for gate in self.gates.iter().flatten() {
            totals.sites += usize::from(gate.site().is_some());
            totals.sites_suspended += usize::from(gate.suspended_until.is_some());
            let [tokens, connections] = &gate.lines;
            totals.waiting_rate += tokens.len();
            totals.waiting_connection += connections.len();
        }
        totals
    }

    const fn waiting(&mut self, line: Line) -> &mut usize {
        match line {
            Line::Token => &mut self.totals.waiting_rate,
            Line::Connection => &mut self.totals.waiting_connection,
        }
    }

    /// Bars new connections for a pause that grows with the failures so far. A single connection
    /// then probes the site.
    pub(in super::super) fn suspend_site(
        &mut self,
        id: GateId,
        reply: &str,
        policy: &Policy,
        now: Timestamp,
    ) {
        if let Some(gate) = self.get_mut(id) {
            let first = gate.suspended_until.is_none();
            gate.suspend(reply, policy, now);
            self.totals.sites_suspended += usize::from(first);
        }
    }

    /// Ends the suspension of a gate. Returns false if the gate was not suspended.
    pub(in super::super) fn resume(&mut self, id: GateId) -> bool {
        let gate = self.get_mut(id);
        let was = gate.and_then(|gate| gate.suspended_until.take()).is_some();
        self.totals.sites_suspended -= usize::from(was);
        was
    }

    /// Removes the next queue from a line if the queue can proceed now.
    pub(in super::super) fn call(
        &mut self,
        id: GateId,
        line: Line,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<QueueId> {
        let called = self.get_mut(id)?.call(line, policy, now)?;
        *self.waiting(line) -= 1;
        Some(called)
    }

    /// Applies the current rules to all sites and empties all lines. Returns the queues that
    /// waited.
    pub(in super::super) fn reassess(&mut self, policy: &Policy) -> Vec<QueueId> {
        let mut called = Vec::new();
        for gate in self.gates.iter_mut().flatten() {
            if let Key::Site(site) = &gate.key {
                let limits = policy.rules.for_hosts(site.hosts());
                gate.set_limits(limits.copied().unwrap_or_default());
            }
            called.extend(gate.lines.iter_mut().flat_map(std::mem::take));
        }
        (self.totals.waiting_rate, self.totals.waiting_connection) = (0, 0);
        called
    }

    /// Whether a gate of the queue is suspended now.
    pub(in super::super) fn suspend(&self, queue: &Queue, now: Timestamp) -> bool {
        self.of(queue).any(|gate| gate.is_suspended(now))
    }

    /// Whether the destination or a site of the queue still has to prove that it works.
    pub(in super::super) fn is_probing(&self, queue: &Queue) -> bool {
        queue.failures > 0 || self.of(queue).any(|gate| gate.failures > 0)
    }

    /// The gate that bars a queue now, if any, and the line in which the queue has to wait.
    pub(in super::super) fn bar(
        &self,
        queue: &Queue,
        opens: bool,
        policy: &Policy,
        now: Timestamp,
    ) -> Option<(GateId, Line)> {
        queue.gates().find_map(|id| {
            let line = self.get(id)?.bars(opens, queue.called, policy, now)?;
            Some((id, line))
        })
    }

    /// Puts a queue at the end of a line. A queue that had been called, but found no room, goes to
    /// the front.
    pub(in super::super) fn line_up(
        &mut self,
        number: QueueId,
        id: GateId,
        line: Line,
        called: bool,
    ) {
        let Some(gate) = self.get_mut(id) else { return };
        let those = &mut gate.lines[line as usize];
        if called {
            those.push_front(number);
        } else {
            those.push_back(number);
        }
        *self.waiting(line) += 1;
    }

    /// Takes a queue out of all lines of a gate.
    pub(in super::super) fn step_out(&mut self, number: QueueId, id: GateId) {
        for line in [Line::Token, Line::Connection] {
            let Some(gate) = self.get_mut(id) else { return };
            let those = &mut gate.lines[line as usize];
            let before = those.len();
            those.retain(|other| *other != number);
            let left = before - those.len();
            *self.waiting(line) -= left;
        }
    }

    /// Takes tokens of a gate, even tokens that the gate does not have.
    pub(in super::super) fn charge(&mut self, id: GateId, tokens: usize, now: Timestamp) {
        if let Some(bucket) = self.get_mut(id).and_then(|gate| gate.bucket.as_mut()) {
            for _ in 0..tokens {
                bucket.take(now);
            }
        }
    }

    /// Takes a token of each gate, and counts a connection if one is opened.
    pub(in super::super) fn reserve(&mut self, queue: &Queue, opens: bool, now: Timestamp) {
        for id in queue.gates() {
            if let Some(gate) = self.get_mut(id) {
                gate.reserve(opens, now);
            }
        }
    }

    /// Returns a token to each gate.
    pub(in super::super) fn give_back(&mut self, queue: &Queue) {
        for id in queue.gates() {
            if let Some(bucket) = self.get_mut(id).and_then(|gate| gate.bucket.as_mut()) {
                bucket.give_back();
            }
        }
    }

    /// Whether a worker may reconnect after its connection ended. If so, the new connection is
    /// counted as made.
    pub(in super::super) fn reopen(
        &mut self,
        queue: &Queue,
        policy: &Policy,
        now: Timestamp,
    ) -> bool {
        let free = self.of(queue).all(|gate| {
            let [_, line] = &gate.lines;
            line.is_empty()
                && gate.next_open <= now
                && !gate.is_suspended(now)
                && gate.connections <= gate.allowance(policy)
        });
        if free {
            for id in queue.gates() {
                if let Some(gate) = self.get_mut(id) {
                    gate.opens(now);
                }
            }
        }
        free
    }

    /// The order of queues when all connections are in use. The rule of the place comes before the
    /// rule of its hosts.
    pub(in super::super) fn precedence(&self, queue: &Queue) -> Precedence {
        let mut named = self.of(queue).map(|gate| gate.limits.precedence);
        named
            .find(|one| *one != Precedence::Normal)
            .unwrap_or_default()
    }
}
