//! One run: nodes, owners, register and network of a seed, until everything has recovered or something
//! is wrong.

use std::time::Duration;

use vere_owner::{MemberState, Membership};
use vere_spoolwire::Txn;
use vere_units::Timestamp;

use crate::model::Model;
use crate::net::Network;
use crate::node_host::SimNode;
use crate::owner_host::SimOwner;
use crate::random::Random;
use crate::register::Register;
use crate::scenario::{GROUP, Scenario};
use crate::schedule::{Event, MILLI, Micros, SECOND, Schedule};
use crate::trace::Trace;
use crate::{Figures, Outcome};

/// Within so long after the last fault everything must have recovered.
const RECOVERY: Micros = 180 * SECOND;
/// A run with more events than this is an endless loop.
const EVENTS_MAX: u64 = 3_000_000;

/// The initial reading of a clock that was never set, in ms.
pub(crate) const CLOCK_BASE: u64 = 1_000_000_000;

/// A fault that no spool can survive, to test that the checks detect the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Broken {
    /// Nothing is.
    #[default]
    Nothing,
    /// Disks report syncs without performing them.
    LyingDisk,
    /// The register replaces without comparing.
    BlindRegister,
    /// The register reports replacements without performing them.
    ForgetfulRegister,
    /// Connections leave out what a node says now and then, and go on.
    HoleyNetwork,
    /// Owners regard every other owner as dead, and do not wait for its lease.
    HastySuccessor,
}

/// Everything there is.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) broken: Broken,
    pub(crate) schedule: Schedule,
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    pub(crate) nodes: Vec<SimNode>,
    pub(crate) owners: Vec<SimOwner>,
    pub(crate) network: Network,
    pub(crate) register: Register,
    pub(crate) model: Model,
    /// No faults any more.
    pub(crate) calm: bool,
    /// No changes any more.
    pub(crate) quiet: bool,
    /// Everything was read for the last time.
    read_all: bool,
    give_up_at: Micros,
    wrong: Option<String>,
    over: bool,
    pub(crate) blocks: u64,
    pub(crate) opened: u64,
    /// Number of damaged groups that became whole again.
    pub(crate) repaired: u64,
    /// No node holds every record any more.
    lost: bool,
    /// A node lacked space for the records of another node: shared bodies are copied separately.
    pub(crate) cramped: bool,
    /// Number of members that left because of slowness.
    pub(crate) replaced: u64,
    /// Number of absent members that became full again by catching up.
    pub(crate) caught_up: u64,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Broken, traced: bool) -> Self {
        let mut random = Random::new(seed);
        let scenario = Scenario::of(&mut random);
        Self::of(seed, (scenario, random), broken, traced)
    }

    /// A world in which one node is slow, without other faults.
    pub(crate) fn with_a_lame_node(seed: u64, traced: bool) -> Self {
        let mut random = Random::new(seed);
        let scenario = Scenario::with_a_lame_node(&mut random);
        Self::of(seed, (scenario, random), Broken::Nothing, traced)
    }

    /// A world in which nodes are away for a while, and owners live.
    pub(crate) fn with_absences(seed: u64, traced: bool) -> Self {
        let mut random = Random::new(seed);
        let scenario = Scenario::with_absences(&mut random);
        Self::of(seed, (scenario, random), Broken::Nothing, traced)
    }

    fn of(seed: u64, (scenario, random): (Scenario, Random), broken: Broken, traced: bool) -> Self {
        let node =
            |(index, synced): (usize, &bool)| SimNode::new(index, *synced, scenario.log_segment);
        let mut world = Self {
            nodes: scenario.synced.iter().enumerate().map(node).collect(),
            scenario,
            broken,
            schedule: Schedule::default(),
            random,
            trace: Trace::new(traced),
            owners: Vec::new(),
            network: Network::default(),
            register: Register::default(),
            model: Model::default(),
            calm: false,
            quiet: false,
            read_all: false,
            give_up_at: u64::MAX,
            wrong: None,
            over: false,
            blocks: 0,
            opened: 0,
            repaired: 0,
            lost: false,
            cramped: false,
            replaced: 0,
            caught_up: 0,
        };
        world.note(0, || format!("seed {seed}"));
        world.lame_node();
        for node in 0..world.nodes.len() {
            world.schedule.after(0, Event::NodeStart { node, boot: 0 });
        }
        world.schedule.after(MILLI, Event::NewOwner { host: 0 });
        world.schedule.after(world.scenario.peace, Event::Fault);
        world.schedule.after(world.scenario.calm_at, Event::Calm);
        world
    }

    /// The reading of a machine's clock.
    pub(crate) fn clock(&self, skew: u64) -> Timestamp {
        let now = Duration::from_micros(self.schedule.now());
        Timestamp::from_millis(CLOCK_BASE + skew) + now
    }

    /// Notes what happened.
    pub(crate) fn note(&mut self, tag: u64, what: impl FnOnce() -> String) {
        self.trace.note(self.schedule.now(), tag, what);
    }

    /// Something is wrong. The first thing counts.
    pub(crate) fn fail(&mut self, wrong: String) {
        self.note(99, || wrong.clone());
        self.wrong.get_or_insert(wrong);
    }

    pub(crate) fn run(mut self, seed: u64) -> Outcome {
        while self.wrong.is_none() && !self.over {
            let Some(event) = self.schedule.next() else {
                break;
            };
            self.happen(event);
            self.check_leases();
            if self.schedule.serial() > EVENTS_MAX {
                self.fail("there is no end to it".to_owned());
            }
        }
        if self.wrong.is_some() {
            self.note_nodes();
            self.note_contents();
        }
        Outcome {
            seed,
            wrong: self.wrong,
            scenario: format!("{:#?}", self.scenario),
            trace: self.trace.lines(),
            digest: self.trace.digest() ^ self.schedule.serial(),
            figures: Figures {
                acknowledged: self.model.acknowledged,
                refused: self.model.refused,
                owners: self.owners.len() as u64,
                opened: self.opened,
                blocks: self.blocks,
                events: self.schedule.serial(),
                lost: u64::from(self.lost),
                repaired: self.repaired,
                replaced: self.replaced,
                caught_up: self.caught_up,
                seconds: self.schedule.now() / SECOND,
            },
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::NodeTurn { node, boot } => self.node_turn(node, boot),
            Event::NodeDue { node, boot } => {
                if self.nodes[node].boot == boot {
                    self.wake_node(node);
                }
            }
            Event::NodeTick { node, boot } => self.node_tick(node, boot),
            Event::NodeStart { node, boot } => self.start_node(node, boot),
            Event::Synced { node, boot } => self.synced(node, boot),
            Event::Scrub { node, boot } => self.scrub(node, boot),
            Event::Connect { conn } => self.connect(conn),
            Event::Deliver { conn, up } => self.deliver(conn, up),
            Event::OwnerTurn { owner } => self.owner_turn(owner),
            Event::Submit { owner } => self.client_submits(owner),
            Event::Register { request } => self.serve_register(request),
            Event::Answer { request } => self.answer_register(request),
            Event::NewOwner { host } => self.new_owner(host),
            Event::Fault => self.fault(),
            Event::Repair(repair) => self.repair(repair),
            Event::Calm => self.calm_down(),
            Event::Look => self.look(),
        }
    }

    /// No more faults: what is broken is repaired, and everything must recover.
    fn calm_down(&mut self) {
        self.note(30, || "calm from here on".to_owned());
        self.calm = true;
        self.give_up_at = self.schedule.now() + RECOVERY;
        self.network.slowness = 0;
        self.network.unblock_all();
        self.register.cut_off.clear();
        self.calm_nodes();
        self.pump_all();
        for owner in self.alive_owners() {
            let state = &mut self.owners[owner];
            state.paused_until = state.paused_until.min(self.schedule.now());
            self.wake_owner(owner);
        }
        self.schedule.after(SECOND, Event::Look);
    }

    /// Has everything recovered?
    fn look(&mut self) {
        self.schedule.after(SECOND / 2, Event::Look);
        if self.alive_owners().is_empty() {
            self.new_owner(0);
        }
        if self.is_lost() {
            // R5: the group stays closed. A short time is enough to see that.
            if self.schedule.now() > self.give_up_at - RECOVERY + 30 * SECOND {
                (self.lost, self.over) = (true, true);
            }
            return;
        }
        match self.missing() {
            Some(_) if self.cramped && self.schedule.now() > self.give_up_at => self.over = true,
            Some(missing) if self.schedule.now() > self.give_up_at => {
                self.fail(format!("did not recover: {missing}"));
            }
            Some(_) => {}
            None if !self.quiet => {
                // The group accepts changes again; now let all work finish.
                self.quiet = true;
            }
            None if !self.read_all => {
                self.read_all = true;
                for owner in self.alive_owners() {
                    self.client_reads_all(owner);
                }
            }
            None => {
                self.over = true;
                if let Err(wrong) = self.check_replicas() {
                    self.fail(wrong);
                }
            }
        }
    }

    fn note_nodes(&mut self) {
        for node in 0..self.nodes.len() {
            let stats = self.nodes[node]
                .process
                .as_ref()
                .map(vere_spool::node::Node::stats);
            self.note(31, || format!("n{node}: {stats:?}"));
        }
        for owner in self.alive_owners() {
            let table = self.owners[owner].machine.table();
            let conns = self.owners[owner].conns.clone();
            self.note(32, || format!("o{owner}: {table:?} {conns:?}"));
        }
    }

    /// Whether no node holds every record any more, by the membership record. A damaged node does not
    /// know whether it held records of a group that has no members yet.
    fn is_lost(&self) -> bool {
        let damaged = |node: &SimNode| node.stat().is_some_and(|stat| stat.damaged);
        self.register.record().is_some_and(|record| {
            let unknown = record.members.is_empty() && self.nodes.iter().any(damaged);
            unknown || record.full() > 0 && !self.has_copy(&record, None)
        })
    }

    /// The condition that the run still waits for, if any.
    fn missing(&self) -> Option<String> {
        let alive = self.alive_owners();
        let [owner] = *alive.as_slice() else {
            return Some(format!("{} owners are alive", alive.len()));
        };
        let machine = &self.owners[owner].machine;
        let full = machine.membership().full();
        if !machine.is_open() {
            Some(format!("o{owner} is not open"))
        } else if full < self.scenario.owner.replicas {
            Some(format!("{full} full replicas"))
        } else if machine.membership().members.len() > full {
            Some("a node is being rebuilt".to_owned())
        } else if self.waits_for_the_lame(machine.membership()) {
            Some("the slow node is a member".to_owned())
        } else if !self.owners[owner].client.ready {
            Some("not everything was read back".to_owned())
        } else if !self.owners[owner].lease.is_held(self.lease_time(owner)) {
            Some("deliveries may not begin".to_owned())
        } else if self.quiet && !self.is_settled(owner) {
            Some("changes are not settled".to_owned())
        } else if !self.quiet && self.schedule.now() < self.give_up_at - RECOVERY + 5 * SECOND {
            Some("time".to_owned())
        } else {
            None
        }
    }

    /// Whether every change waits for a permanently slow node, although other nodes exist.
    fn waits_for_the_lame(&self, record: &Membership) -> bool {
        let lame = self.scenario.lame.map(|lame| &self.nodes[lame].name);
        lame.is_some_and(|name| record.member(name).is_some())
    }

    /// R1: acknowledged changes are on every full member by the record, and the number of full members
    /// is sufficient.
    pub(crate) fn check_acknowledged(&self, owner: usize, through: Txn) -> Result<(), String> {
        let life = self.owners[owner].life;
        let Some(record) = self.register.record().filter(|record| record.owner == life) else {
            return Ok(());
        };
        let known = self.owners[owner].machine.membership().full();
        if known < self.scenario.owner.replicas_min {
            return Err(format!("acknowledges {through} with {known} full replicas"));
        }
        for node in &self.nodes {
            let stats = node.process.as_ref().map(vere_spool::node::Node::stats);
            let stats = stats.unwrap_or_default();
            let stat = stats.iter().find(|(name, _)| name == GROUP);
            let processed = stat.map_or(Txn(0), |(_, stat)| stat.processed);
            let member = record.member(&node.name);
            let full = member.is_some_and(|member| {
                member.state == MemberState::Full && member.incarnation == node.incarnation.0
            });
            // The node may have lost acknowledged records since.
            if node.process.is_none() || !full || !node.is_whole() {
                continue;
            }
            if processed < through {
                return Err(format!(
                    "acknowledges {through}, but {}, a full replica, has processed {processed}",
                    node.name
                ));
            }
        }
        self.check_logged(&record, through)
    }

    /// With logs, acknowledged changes are in the log of a full member. The log may have been lost
    /// since.
    fn check_logged(&self, record: &Membership, through: Txn) -> Result<(), String> {
        if !self.scenario.owner.durable || self.has_lost(record, u64::MAX) {
            return Ok(());
        }
        let logged = record.members.iter().any(|member| {
            let node = self.nodes.iter().find(|node| node.name == member.node);
            let same = |node: &&SimNode| node.incarnation.0 == member.incarnation;
            member.state == MemberState::Full
                && node.filter(same).is_some_and(|n| n.has_logged(through))
        });
        if logged {
            Ok(())
        } else {
            Err(format!(
                "acknowledges {through}, which is in no full member's log"
            ))
        }
    }

    /// Whether a member lost its records, not longer ago than `ago`.
    fn has_lost(&self, record: &Membership, ago: Micros) -> bool {
        let now = self.schedule.now();
        self.nodes.iter().any(|node| {
            let member = record.member(&node.name);
            node.lost.iter().any(|(incarnation, at)| {
                now - at < ago && member.is_some_and(|m| m.incarnation == incarnation.0)
            })
        })
    }

    /// R5: an owner opens with a full copy, or empty for a new group. The owner may not know yet that
    /// the copy is gone since.
    pub(crate) fn check_opening(&self, owner: usize) -> Result<(), String> {
        let life = self.owners[owner].life;
        let Some(record) = self.register.record() else {
            return Err("opens without a record".to_owned());
        };
        let just_lost = self.has_lost(&record, 5 * SECOND);
        // Undetected damage serves as if the log were sound.
        let rotten = |node: &SimNode| node.process.is_some() && node.disk.is_rotten();
        let unnoticed = self.nodes.iter().any(rotten);
        // Another owner may have taken over the group at this moment.
        if self.has_copy(&record, None) || just_lost || unnoticed || record.owner != life {
            Ok(())
        } else {
            Err("opens without a full replica".to_owned())
        }
    }

    /// R4: two owners never begin deliveries at the same moment.
    fn check_leases(&mut self) {
        let now = self.schedule.now();
        let delivers = |index: &usize| {
            let owner = &self.owners[*index];
            let runs = owner.alive && owner.paused_until <= now;
            runs && owner.lease.is_held(self.lease_time(*index))
        };
        let all: Vec<usize> = (0..self.owners.len()).filter(delivers).collect();
        if all.len() > 1 {
            self.fail(format!("owners {all:?} may deliver at the same time"));
        }
    }

    /// The memory of an owner is bounded.
    pub(crate) fn check_owner(&mut self, owner: usize) {
        let config = &self.scenario.owner;
        let spare = 1 << 20;
        let state = &self.owners[owner];
        if state.machine.pending() > config.pending_max + spare {
            let pending = state.machine.pending();
            self.fail(format!("o{owner} keeps {pending} octets pending"));
        }
    }
}
