//! Faults and their repairs.

use vere_owner::{Link, MemberState, Membership};

use crate::disk::Trouble;
use crate::net::Way;
use crate::node_host::Death;
use crate::schedule::{Event, MILLI, Micros, SECOND};
use crate::world::World;

/// Extra delay of every action of a lame node.
const LAME: Micros = 100 * MILLI;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A node's process dies. Written data stays on the disk.
    KillNode,
    /// A node's machine loses power.
    PowerCut,
    /// All nodes of a machine lose power at once.
    MachinePowerCut,
    /// A node comes back with an empty disk.
    WipeNode,
    /// A node comes back without the group, and has no memory of the loss.
    LoseGroup,
    /// A node comes back and its log is damaged.
    BitRot,
    /// The log of a serving node is damaged. The node notices some time later, or when it reads the
    /// entry.
    LateRot,
    /// A node stops for a while.
    PauseNode,
    /// A node's loop is slow for a while.
    SlowNode,
    /// Syncs take long for a while.
    SlowDisk,
    /// The disk is full for a while, either for new records or for all writes.
    FullDisk,
    /// A sync fails; the operator starts the node again some time later.
    FailedSync,
    /// A connection breaks, and octets on the way are lost.
    CutConnection,
    /// No octets come back from a node, and then the connection breaks.
    LostReply,
    /// One direction or both directions between two addresses are blocked for a while.
    BlockLink,
    /// All ways to a node are blocked.
    BlockNode,
    /// All ways from an owner's machine to the nodes are blocked, and perhaps the way to the
    /// register.
    BlockOwner,
    /// The network is slow for a while.
    SlowNetwork,
    /// An owner stops for a while.
    PauseOwner,
    /// An owner stops while another one takes over.
    PauseOwnerAndReplace,
    /// An owner dies, and another one begins.
    KillOwner,
    /// Another owner takes over from a live one.
    TakeOver,
    /// Two other owners take over at once.
    TakeOverTwice,
    /// The register is unreachable for a while, from each machine with a chance of 70 %.
    CutRegister,
    /// A machine's clock jumps forward.
    ClockJump,
}

impl Kind {
    pub(crate) const ALL: &'static [Self] = &[
        Self::KillNode,
        Self::PowerCut,
        Self::MachinePowerCut,
        Self::WipeNode,
        Self::LoseGroup,
        Self::BitRot,
        Self::LateRot,
        Self::PauseNode,
        Self::SlowNode,
        Self::SlowDisk,
        Self::FullDisk,
        Self::FailedSync,
        Self::CutConnection,
        Self::LostReply,
        Self::BlockLink,
        Self::BlockNode,
        Self::BlockOwner,
        Self::SlowNetwork,
        Self::PauseOwner,
        Self::PauseOwnerAndReplace,
        Self::KillOwner,
        Self::TakeOver,
        Self::TakeOverTwice,
        Self::CutRegister,
        Self::ClockJump,
    ];

    /// Faults after which a node returns unchanged, or without its unsynced data only.
    pub(crate) const ABSENCES: [Self; 4] = [
        Self::KillNode,
        Self::PowerCut,
        Self::PauseNode,
        Self::BlockNode,
    ];

    /// Whether the fault brings another owner.
    pub(crate) const fn is_of_owners(self) -> bool {
        matches!(
            self,
            Self::PauseOwnerAndReplace | Self::KillOwner | Self::TakeOver | Self::TakeOverTwice
        )
    }
}

/// The end of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repair {
    Unblock(Vec<Way>),
    NodeSpeed(usize),
    DiskSpeed(usize),
    DiskRoom(usize),
    NetworkSpeed(Micros),
    Register(usize),
    /// The process is ended and started again.
    Restart(usize, u64),
}

impl World {
    /// Applies a random fault, and schedules the next one.
    pub(crate) fn fault(&mut self) {
        if self.calm {
            return;
        }
        let peace = self.scenario.peace;
        let next = self.random.range(0..2 * peace);
        self.schedule.after(next, Event::Fault);
        let Some(kind) = self.random.pick(&self.scenario.faults) else {
            return;
        };
        self.note(1, || format!("fault {kind:?}"));
        self.break_something(kind);
    }

    fn break_something(&mut self, kind: Kind) {
        let node = self.random.below(self.nodes.len());
        let long = self.random.span(20 * MILLI..15 * SECOND);
        match kind {
            Kind::KillNode => self.kill_node(node, Death::Process),
            Kind::PowerCut => self.kill_node(node, Death::Power),
            Kind::MachinePowerCut => self.cut_machine(self.scenario.machines[node]),
            Kind::WipeNode => self.kill_node(node, Death::Disk),
            Kind::LoseGroup => self.kill_node(node, Death::Group),
            Kind::BitRot => self.kill_node(node, Death::Rot),
            Kind::LateRot => self.rot_under(node),
            Kind::PauseNode => self.pause_node(node, long),
            Kind::SlowNode
            | Kind::SlowDisk
            | Kind::FullDisk
            | Kind::FailedSync
            | Kind::SlowNetwork => self.wear_out(kind, node, long),
            Kind::ClockJump => self.jump_clock(node),
            Kind::CutConnection | Kind::LostReply => self.cut_some(kind == Kind::LostReply),
            Kind::BlockLink | Kind::BlockNode | Kind::BlockOwner => self.block_some(kind, long),
            Kind::PauseOwner | Kind::PauseOwnerAndReplace => {
                let pause = self.random.span(50 * MILLI..20 * SECOND);
                if let Some(owner) = self.some_owner() {
                    self.pause_owner(owner, pause);
                }
                if kind == Kind::PauseOwnerAndReplace {
                    self.new_owner_soon(pause);
                }
            }
            Kind::KillOwner => {
                if let Some(owner) = self.some_owner() {
                    let power = self.random.percent(30);
                    self.kill_owner(owner, power);
                }
                self.new_owner_soon(5 * SECOND);
            }
            Kind::TakeOver => self.new_owner_soon(MILLI),
            Kind::TakeOverTwice => {
                self.new_owner_soon(5 * MILLI);
                self.new_owner_soon(5 * MILLI);
            }
            Kind::CutRegister => {
                for host in 0..self.scenario.hosts {
                    if self.random.percent(70) {
                        *self.register.cut_off.entry(host).or_default() += 1;
                        self.repair_after(long, Repair::Register(host));
                    }
                }
            }
        }
    }

    /// All nodes of a machine lose power at once.
    fn cut_machine(&mut self, machine: usize) {
        let machines = self.scenario.machines.clone();
        let its = machines
            .iter()
            .enumerate()
            .filter(|(_, its)| **its == machine);
        let (logged, others): (Vec<usize>, Vec<usize>) = its
            .map(|(node, _)| node)
            .partition(|node| self.nodes[*node].is_logged());
        // Nodes that keep data in memory only lose power first, so that the remaining copies are
        // known.
        for node in others.into_iter().chain(logged) {
            self.kill_node(node, Death::Power);
        }
    }

    /// Slows a component down, or fills a disk, for a while.
    fn wear_out(&mut self, kind: Kind, node: usize, long: Micros) {
        match kind {
            Kind::SlowNode => {
                self.nodes[node].slowness = self.random.span(MILLI..100 * MILLI);
                self.repair_after(long, Repair::NodeSpeed(node));
            }
            Kind::SlowDisk => {
                self.nodes[node].sync_slowness = self.random.span(10 * MILLI..5 * SECOND);
                self.repair_after(long, Repair::DiskSpeed(node));
            }
            Kind::FullDisk => {
                let full = self.random.percent(50);
                let trouble = if full {
                    Trouble::Full
                } else {
                    Trouble::Reserve
                };
                if self.nodes[node].disk.trouble() == Trouble::None {
                    self.nodes[node].disk.set_trouble(trouble);
                    self.repair_after(long, Repair::DiskRoom(node));
                }
            }
            Kind::FailedSync => {
                self.nodes[node].disk.set_trouble(Trouble::Failed);
                let boot = self.nodes[node].boot;
                self.wake_node(node);
                self.repair_after(long, Repair::Restart(node, boot));
            }
            _ => {
                let slowness = self.random.span(MILLI..800 * MILLI);
                self.network.slowness += slowness;
                self.repair_after(long, Repair::NetworkSpeed(slowness));
            }
        }
    }

    fn repair_after(&mut self, delay: Micros, repair: Repair) {
        self.schedule.after(delay, Event::Repair(repair));
    }

    fn new_owner_soon(&mut self, delay: Micros) {
        let host = self.random.below(self.scenario.hosts);
        let delay = self.random.range(0..delay);
        self.schedule.after(delay, Event::NewOwner { host });
    }

    fn some_owner(&mut self) -> Option<usize> {
        let alive = self.alive_owners();
        self.random.pick(&alive)
    }

    fn jump_clock(&mut self, node: usize) {
        let jump = self.random.span(SECOND..3_600 * SECOND) / MILLI;
        if self.random.percent(50) {
            self.nodes[node].skew += jump;
            self.wake_node(node);
        } else if let Some(owner) = self.some_owner() {
            self.owners[owner].skew += jump;
            self.wake_owner(owner);
        }
    }

    fn cut_some(&mut self, reply_lost: bool) {
        let conns: Vec<u64> = self.network.conns.keys().copied().collect();
        let Some(conn) = self.random.pick(&conns) else {
            return;
        };
        self.cut(conn, reply_lost);
    }

    fn block_some(&mut self, kind: Kind, long: Micros) {
        let (up, down) = match self.random.below(3) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        let node = self.random.below(self.nodes.len());
        let address = self.random.below(self.scenario.addresses[node]);
        let host = self.random.below(self.scenario.hosts);
        let mut ways = Vec::new();
        for way_host in 0..self.scenario.hosts {
            for (way_node, addresses) in self.scenario.addresses.iter().enumerate() {
                for way_address in 0..*addresses {
                    let chosen = match kind {
                        Kind::BlockLink => {
                            (way_host, way_node, way_address) == (host, node, address)
                        }
                        Kind::BlockNode => way_node == node,
                        _ => way_host == host,
                    };
                    let link = Link {
                        node: way_node,
                        address: way_address,
                    };
                    let both = [(true, up), (false, down)];
                    let blocked = both.iter().filter(|(_, blocked)| *blocked && chosen);
                    ways.extend(blocked.map(|(up, _)| Way {
                        host: way_host,
                        link,
                        up: *up,
                    }));
                }
            }
        }
        for way in &ways {
            self.network.block(*way);
        }
        self.repair_after(long, Repair::Unblock(ways));
        if kind == Kind::BlockOwner && self.random.percent(50) {
            *self.register.cut_off.entry(host).or_default() += 1;
            self.repair_after(long, Repair::Register(host));
        }
    }

    /// Ends a fault.
    pub(crate) fn repair(&mut self, repair: Repair) {
        self.note(2, || format!("repair {repair:?}"));
        match repair {
            Repair::Unblock(ways) => {
                for way in ways {
                    self.network.unblock(way);
                }
                self.pump_all();
            }
            Repair::NodeSpeed(node) => self.nodes[node].slowness = self.lameness(node),
            Repair::DiskSpeed(node) => self.nodes[node].sync_slowness = 0,
            Repair::DiskRoom(node) => {
                let disk = &self.nodes[node].disk;
                if matches!(disk.trouble(), Trouble::Full | Trouble::Reserve) {
                    disk.set_trouble(Trouble::None);
                }
                self.wake_node(node);
            }
            Repair::NetworkSpeed(slowness) => {
                self.network.slowness = self.network.slowness.saturating_sub(slowness)
            }
            Repair::Register(host) => {
                if let Some(count) = self.register.cut_off.get_mut(&host) {
                    *count = count.saturating_sub(1);
                }
            }
            Repair::Restart(node, boot) => {
                if self.nodes[node].boot == boot && !self.calm {
                    self.kill_node(node, Death::Process);
                }
            }
        }
    }

    /// The delay of a node without a fault.
    pub(crate) fn lameness(&self, node: usize) -> Micros {
        if self.scenario.lame == Some(node) {
            LAME
        } else {
            0
        }
    }

    /// Makes the node lame once the group has its members. A node that is slow earlier does not
    /// become a member.
    pub(crate) fn lame_node(&mut self) {
        if let Some(node) = self.scenario.lame {
            self.repair_after(2 * SECOND, Repair::NodeSpeed(node));
        }
    }

    /// Whether a full copy by a membership record remains, with the data of the node `without`
    /// lost.
    pub(crate) fn has_copy(&self, record: &Membership, without: Option<usize>) -> bool {
        record.members.iter().any(|member| {
            let place = self.nodes.iter().position(|node| node.name == member.node);
            let holds = place.is_some_and(|place| {
                let node = &self.nodes[place];
                let same = node.incarnation.0 == member.incarnation;
                Some(place) != without && same && node.is_whole()
            });
            member.state == MemberState::Full && holds
        })
    }

    /// Whether a node may lose its data: another full member has all records.
    pub(crate) fn may_lose(&self, node: usize) -> bool {
        let possible = self.register.possible();
        let matters = |record: &&Membership| self.has_copy(record, None);
        self.scenario.reckless
            || possible
                .iter()
                .filter(matters)
                .all(|record| self.has_copy(record, Some(node)))
    }
}
