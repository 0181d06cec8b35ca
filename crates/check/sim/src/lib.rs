//! Simulates the spool: the production code of nodes and owners in virtual time. Network, disks and
//! register fail as the seed says.
//!
//! [`run`] runs a seed, and equal seeds give equal runs. `docs/internals/simulation.md` describes
//! the simulated parts, the faults, and the checks.

mod check;
mod client;
mod clocks;
mod damage;
mod deliveries;
mod disk;
mod envelope;
mod faults;
mod inspect;
mod model;
mod net;
mod node_host;
mod owner_host;
mod random;
mod register;
mod scenario;
mod schedule;
mod spill;
mod stage;
mod switching;
mod trace;
mod wires;
mod workload;
mod world;

pub use clocks::{BrokenClock, ClockFigures, run_with_clocks};
pub use deliveries::{BrokenDelivery, DeliveryFigures, run_with_deliveries, trace_deliveries};
pub use switching::{
    BrokenSwitching, Cut, Post, Row, Side, Switched, SwitchingFigures, cuts, run_with_cut,
    run_with_switches,
};
pub use world::Broken;

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The run's seed.
    pub seed: u64,
    /// The first violated promise, if any.
    pub wrong: Option<String>,
    /// The seed's choices before the run.
    pub scenario: String,
    /// The last events of the run; empty unless the caller asked for a trace.
    pub trace: Vec<String>,
    /// A hash of the run. Two runs of a seed have equal digests.
    pub digest: u64,
    /// Counts of events in the run.
    pub figures: Figures,
}

/// Counts of events in runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Changes acknowledged.
    pub acknowledged: u64,
    /// Changes refused.
    pub refused: u64,
    /// Lives of owners.
    pub owners: u64,
    /// Lives of owners that opened.
    pub opened: u64,
    /// Blocks read and checked.
    pub blocks: u64,
    /// Events.
    pub events: u64,
    /// Runs in which the last full replica was lost, and no owner opened afterwards.
    pub lost: u64,
    /// Number of times that a node with a damaged log became whole again.
    pub repaired: u64,
    /// Members that left because they were slower than other members.
    pub replaced: u64,
    /// Absent members that became full again by receiving the missed changes.
    pub caught_up: u64,
    /// Virtual seconds.
    pub seconds: u64,
}

impl Figures {
    /// The sums of two figures.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            acknowledged: self.acknowledged + other.acknowledged,
            refused: self.refused + other.refused,
            owners: self.owners + other.owners,
            opened: self.opened + other.opened,
            blocks: self.blocks + other.blocks,
            events: self.events + other.events,
            lost: self.lost + other.lost,
            repaired: self.repaired + other.repaired,
            replaced: self.replaced + other.replaced,
            caught_up: self.caught_up + other.caught_up,
            seconds: self.seconds + other.seconds,
        }
    }
}

/// Runs a seed. `traced`: notes all events, which takes longer.
#[must_use]
pub fn run(seed: u64, broken: Broken, traced: bool) -> Outcome {
    world::World::new(seed, broken, traced).run(seed)
}

/// Runs a group with two replicas on three nodes or more. One node is slow from early on to the
/// end. The run has recovered when the group works without the slow node.
#[must_use]
pub fn run_with_a_lame_node(seed: u64, traced: bool) -> Outcome {
    world::World::with_a_lame_node(seed, traced).run(seed)
}

/// Runs a group whose owners live, so that absent nodes return to the same owner.
#[must_use]
pub fn run_with_absences(seed: u64, traced: bool) -> Outcome {
    world::World::with_absences(seed, traced).run(seed)
}
