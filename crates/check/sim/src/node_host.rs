//! The processes of the nodes: what `vere spool serve` does around the engine.

use std::io::IoSlice;

use vere_owner::MemberState;
use vere_spool::node::{ConnectionId, Node};
use vere_spoolwire::{Incarnation, NodeStat, Txn};
use vere_units::Timestamp;

use crate::damage::{Unstarted, restore};
use crate::disk::{Disk, Trouble};
use crate::net::Chunk;
use crate::scenario::GROUP;
use crate::schedule::{Event, MILLI, Micros, SECOND};
use crate::spill::Spill;
use crate::workload::META_MAX;
use crate::world::{Broken, World};

/// How a node's process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    Process,
    Power,
    Disk,
    Group,
    Rot,
}

/// A node: the machine, and the process while running.
#[derive(Debug)]
pub(crate) struct SimNode {
    pub(crate) name: String,
    pub(crate) synced: bool,
    pub(crate) disk: Disk,
    /// Whether the node has a spill store; a restart then leaves records in the log.
    spills: bool,
    spill: Spill,
    pub(crate) incarnation: Incarnation,
    /// The lost incarnations, with the times of the losses.
    pub(crate) lost: Vec<(Incarnation, Micros)>,
    /// Counts the lives of the process.
    pub(crate) boot: u64,
    pub(crate) process: Option<Node<Disk>>,
    /// Whether its disk holds the group, while the process does not run.
    pub(crate) kept: bool,
    /// The machine is on, and answers for unknown connections.
    pub(crate) powered: bool,
    pub(crate) paused_until: Micros,
    /// A delay added to each turn of the loop.
    pub(crate) slowness: Micros,
    /// Added to each sync.
    pub(crate) sync_slowness: Micros,
    syncing: bool,
    turn_at: Option<Micros>,
    /// When a sync is due.
    due_at: Option<Micros>,
    /// The sum of the clock's jumps, in milliseconds.
    pub(crate) skew: u64,
}

impl SimNode {
    pub(crate) fn new(index: usize, synced: bool, log_segment: u64) -> Self {
        Self {
            name: format!("n{index}"),
            synced,
            disk: Disk::new(log_segment),
            spills: index.is_multiple_of(2),
            spill: Spill::default(),
            incarnation: Incarnation(0),
            lost: Vec::new(),
            boot: 0,
            process: None,
            kept: false,
            powered: true,
            paused_until: 0,
            slowness: 0,
            sync_slowness: 0,
            syncing: false,
            turn_at: None,
            due_at: None,
            skew: 0,
        }
    }
}

impl SimNode {
    pub(crate) fn stat(&self) -> Option<NodeStat> {
        let stats = self.process.as_ref()?.stats();
        let group = stats.into_iter().find(|(name, _)| name == GROUP);
        group.map(|(_, stat)| stat)
    }

    /// Whether the memory, or the disk while the process is down, holds the whole group.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.process {
            Some(process) => {
                let whole = self.stat().is_some_and(|stat| !stat.syncing) && !self.disk.is_rotten();
                // A node with a failed log is useful again after a restart, if the log is complete.
                whole && (process.failure().is_none() || self.is_logged())
            }
            None => self.kept,
        }
    }

    /// Whether the disk holds every record up to a transaction.
    pub(crate) fn has_logged(&self, through: Txn) -> bool {
        let stat = self.stat();
        self.is_logged() && stat.is_none_or(|stat| stat.acknowledged >= through)
    }

    /// Whether the disk alone is sufficient.
    pub(crate) fn is_logged(&self) -> bool {
        match &self.process {
            Some(_) => {
                let logged = self.stat().is_some_and(|stat| stat.synced && !stat.syncing);
                logged && !self.disk.is_rotten()
            }
            None => self.kept,
        }
    }
}

impl World {
    fn node_time(&self, node: usize) -> Timestamp {
        self.clock(self.nodes[node].skew)
    }

    /// Starts a node's process, as the supervisor does after it died.
    pub(crate) fn start_node(&mut self, node: usize, boot: u64) {
        if self.nodes[node].boot != boot || self.nodes[node].process.is_some() {
            return;
        }
        let fresh = Incarnation(self.random.next() | 1);
        let state = &mut self.nodes[node];
        state.powered = true;
        let keeps = state.synced && state.incarnation.0 != 0;
        if !keeps {
            state.incarnation = fresh;
        }
        let config = self.scenario.node.clone();
        let mut process = Node::new(config, state.incarnation, None);
        state.spill = Spill::default();
        if state.spills {
            process.set_spill_store(Box::new(state.spill.clone()));
        }
        if state.synced {
            match restore(&mut process, &state.disk) {
                Ok(()) => {}
                Err(Unstarted::Room(reason)) => {
                    self.note(3, || format!("n{node} does not start: {reason}"));
                    self.schedule.after(SECOND, Event::NodeStart { node, boot });
                    return;
                }
                Err(Unstarted::Log(reason)) => {
                    self.fail(format!("n{node} cannot read its log: {reason}"));
                    return;
                }
            }
        }
        let incarnation = state.incarnation;
        state.process = Some(process);
        self.note(4, || {
            format!("n{node} starts, incarnation {:x}", incarnation.0)
        });
        self.scrub_later(node);
        self.schedule.after(SECOND, Event::NodeTick { node, boot });
        self.wake_node(node);
    }

    /// A node's process ends, and is started again some time later.
    pub(crate) fn kill_node(&mut self, node: usize, death: Death) {
        let synced = self.nodes[node].synced;
        let lasts = matches!(death, Death::Process | Death::Power);
        let keeps = synced && lasts && self.nodes[node].is_logged();
        if !keeps && !self.may_lose(node) {
            return;
        }
        self.note(5, || format!("n{node} dies: {death:?}"));
        let lies = self.broken == Broken::LyingDisk;
        let now = self.schedule.now();
        let state = &mut self.nodes[node];
        if state.incarnation.0 != 0 && !keeps {
            state.lost.push((state.incarnation, now));
        }
        state.process = None;
        state.kept = keeps;
        state.boot += 1;
        (state.turn_at, state.due_at, state.syncing) = (None, None, false);
        state.paused_until = 0;
        state.powered = death == Death::Process;
        match death {
            Death::Process => state.disk.process_died(),
            Death::Power => state.disk.power_failed(&mut self.random, lies),
            Death::Disk => {
                state.disk.wipe();
                state.incarnation = Incarnation(0);
            }
            // The incarnation survives, and the log is gone.
            Death::Group => state.disk.wipe(),
            Death::Rot => {
                state.disk.process_died();
                state.disk.rot(&mut self.random);
            }
        }
        if !synced {
            self.nodes[node].incarnation = Incarnation(0);
        }
        let boot = self.nodes[node].boot;
        self.part_from_node(node, death == Death::Process);
        let delay = if self.calm {
            SECOND
        } else {
            self.random.span(10 * MILLI..20 * SECOND)
        };
        self.schedule.after(delay, Event::NodeStart { node, boot });
    }

    /// Removes the node's ends of connections; the kernel tells the peers if the machine is on.
    fn part_from_node(&mut self, node: usize, told: bool) {
        let conns = self.network.conns.iter();
        let its = conns.filter(|(_, conn)| conn.link.node == node && conn.id.is_some());
        for id in its.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some(conn) = self.network.conns.get_mut(&id) {
                conn.id = None;
                conn.up.read_all();
            }
            if told {
                self.send(id, false, Chunk::End);
            }
            self.network.forget(id);
        }
    }

    pub(crate) fn pause_node(&mut self, node: usize, long: Micros) {
        let until = self.schedule.now() + long;
        let state = &mut self.nodes[node];
        state.paused_until = state.paused_until.max(until);
        state.turn_at = None;
        self.wake_node(node);
    }

    /// Schedules a turn of a node.
    pub(crate) fn wake_node(&mut self, node: usize) {
        let now = self.schedule.now();
        let pause = 20 + self.random.range(0..60);
        let state = &mut self.nodes[node];
        if state.process.is_none() || state.turn_at.is_some() {
            return;
        }
        let at = (now + pause + state.slowness).max(state.paused_until);
        state.turn_at = Some(at);
        let boot = state.boot;
        self.schedule.at(at, Event::NodeTurn { node, boot });
    }

    /// The node's loop goes round once.
    pub(crate) fn node_turn(&mut self, node: usize, boot: u64) {
        let now = self.schedule.now();
        let time = self.node_time(node);
        let state = &mut self.nodes[node];
        if state.boot != boot || state.turn_at != Some(now) {
            return;
        }
        state.turn_at = None;
        let mut again = false;
        for conn in self.conns_of_node(node) {
            again |= self.node_reads(node, conn);
        }
        let Some(process) = &mut self.nodes[node].process else {
            return;
        };
        process.end_turn(time);
        self.take_notices(node);
        self.serve_touched(node);
        self.turn_when_due(node, time);
        if self.nodes[node].disk.begin_syncs() || self.nodes[node].syncing {
            self.sync_later(node);
        }
        let Some(process) = &self.nodes[node].process else {
            return;
        };
        let state = &self.nodes[node];
        let read = state.disk.is_reading() || state.spill.is_busy();
        if again || read || process.is_busy() {
            self.wake_node(node);
        }
    }

    /// Schedules another turn when a sync is due.
    fn turn_when_due(&mut self, node: usize, time: Timestamp) {
        let now = self.schedule.now();
        let state = &mut self.nodes[node];
        let due = state.process.as_ref().and_then(Node::deadline);
        let Some(due) = due else { return };
        let wait = due.saturating_since(time).as_micros() as Micros;
        if state.due_at.is_none_or(|at| at <= now || at > now + wait) {
            state.due_at = Some(now + wait);
            let boot = state.boot;
            self.schedule.after(wait, Event::NodeDue { node, boot });
        }
    }

    fn conns_of_node(&self, node: usize) -> Vec<u64> {
        let conns = self.network.conns.iter();
        let its = conns.filter(|(_, conn)| conn.link.node == node && conn.id.is_some());
        its.map(|(id, _)| *id).collect()
    }

    /// Reads once from a connection. True when there is more.
    fn node_reads(&mut self, node: usize, conn: u64) -> bool {
        let now = self.node_time(node);
        let (Some(link), Some(process)) = (
            self.network.conns.get_mut(&conn),
            &mut self.nodes[node].process,
        ) else {
            return false;
        };
        let Some(id) = link.id else { return false };
        if link.up.waiting() == 0 {
            if link.up.ended {
                link.id = None;
                process.closed(id);
                self.send(conn, false, Chunk::End);
                self.network.forget(conn);
            } else {
                self.node_writes(node, conn);
            }
            return false;
        }
        let buffer = process.buffer(id);
        if buffer.is_empty() {
            return false;
        }
        let count = link.up.read(buffer);
        let more = link.up.is_readable();
        process.received(id, count, now);
        self.node_writes(node, conn);
        self.owner_may_write(conn);
        more
    }

    fn serve_touched(&mut self, node: usize) {
        loop {
            let Some(process) = &mut self.nodes[node].process else {
                return;
            };
            let Some(id) = process.next_touched() else {
                return;
            };
            let takes = process.takes_input(id);
            let conns = self.network.conns.iter();
            let mut its = conns.filter(|(_, conn)| conn.link.node == node && conn.id == Some(id));
            let Some(conn) = its.next().map(|(id, _)| *id) else {
                continue;
            };
            self.node_writes(node, conn);
            let readable = self
                .network
                .conns
                .get(&conn)
                .is_some_and(|c| c.up.is_readable());
            if takes && readable {
                self.wake_node(node);
            }
        }
    }

    /// Writes pending octets, as far as the connection accepts them.
    fn node_writes(&mut self, node: usize, conn: u64) {
        let capacity = self.scenario.capacity;
        loop {
            let Some(link) = self.network.conns.get(&conn) else {
                return;
            };
            let (Some(id), Some(process)) = (link.id, &mut self.nodes[node].process) else {
                return;
            };
            let room = link.down.room(capacity);
            let octets = output(process, id, room);
            if octets.is_empty() {
                if process.is_finished(id) {
                    process.closed(id);
                    if let Some(link) = self.network.conns.get_mut(&conn) {
                        link.id = None;
                        link.up.read_all();
                    }
                    self.send(conn, false, Chunk::End);
                    self.network.forget(conn);
                }
                return;
            }
            process.sent(id, octets.len());
            self.send(conn, false, Chunk::Octets(octets));
        }
    }

    fn sync_later(&mut self, node: usize) {
        if std::mem::replace(&mut self.nodes[node].syncing, true) {
            return;
        }
        let usual = self.random.range(50..2 * self.scenario.sync);
        let delay = usual + self.nodes[node].sync_slowness;
        let boot = self.nodes[node].boot;
        self.schedule.after(delay, Event::Synced { node, boot });
    }

    /// Completes the syncs of the disk.
    pub(crate) fn synced(&mut self, node: usize, boot: u64) {
        if self.nodes[node].boot != boot {
            return;
        }
        self.nodes[node].syncing = false;
        self.nodes[node].disk.syncs_done();
        if self.nodes[node].disk.begin_syncs() {
            self.sync_later(node);
        }
        self.wake_node(node);
    }

    fn is_full_member(&self, node: usize) -> bool {
        let record = self.register.record();
        let member = record
            .as_ref()
            .and_then(|record| record.member(&self.nodes[node].name));
        member.is_some_and(|member| member.state == MemberState::Full)
    }

    pub(crate) fn node_tick(&mut self, node: usize, boot: u64) {
        if self.nodes[node].boot != boot {
            return;
        }
        self.schedule.after(SECOND, Event::NodeTick { node, boot });
        if self.nodes[node].paused_until > self.schedule.now() {
            return;
        }
        let now = self.node_time(node);
        let Some(process) = &mut self.nodes[node].process else {
            return;
        };
        process.tick(now);
        if let Some(stat) = self.nodes[node].stat() {
            // A batch that ends something may go an eighth beyond, and new metadata is never refused.
            let budget = self.scenario.owner.bytes_max;
            let spare = budget / 8 + stat.records * META_MAX;
            // A node being filled stores shared bodies separately, and is not a full member because of
            // that.
            if self.is_full_member(node) && stat.bytes > budget.saturating_add(spare) {
                let held = stat.bytes;
                self.fail(format!(
                    "n{node} holds {held} octets, over the group's {budget}"
                ));
            }
            // Another segment for the tail and another for kept records, of the length of their frames.
            let spare = 2 * u64::from(self.scenario.node.frame_max) + (128 << 10);
            if stat.memory_used > stat.memory_max + spare {
                let used = stat.memory_used;
                self.fail(format!(
                    "n{node} uses {used} octets of memory, over its limit"
                ));
            }
        }
        self.serve_touched(node);
        self.wake_node(node);
    }

    /// Repairs every fault of nodes.
    pub(crate) fn calm_nodes(&mut self) {
        for node in 0..self.nodes.len() {
            let slowness = self.lameness(node);
            let state = &mut self.nodes[node];
            (state.slowness, state.sync_slowness) = (slowness, 0);
            state.paused_until = state.paused_until.min(self.schedule.now());
            state.turn_at = None;
            if state.disk.trouble() == Trouble::Failed {
                self.kill_node(node, Death::Process);
            }
            self.nodes[node].disk.set_trouble(Trouble::None);
            self.nodes[node].disk.scrub();
            let boot = self.nodes[node].boot;
            if self.nodes[node].process.is_none() {
                self.schedule.after(SECOND, Event::NodeStart { node, boot });
            }
            self.wake_node(node);
        }
    }
}

/// Up to `most` octets of a connection's output.
pub(crate) fn output(node: &Node<Disk>, id: ConnectionId, most: usize) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); 16];
    let count = node.output(id, &mut slices);
    let mut octets = Vec::new();
    for slice in slices.iter().take(count) {
        let left = most - octets.len();
        octets.extend(slice.iter().take(left));
    }
    octets
}
