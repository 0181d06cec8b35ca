//! Simulates the spool: the nodes and owners that run in production, under virtual time, on a network,
//! disks and a register that fail as a seed says.
//!
//! [`run`] makes one run of a seed, the same one every time. `docs/internals/simulation.md` says what is
//! simulated, which faults there are, and what is checked.

mod check;
mod client;
mod clocks;
mod damage;
mod disk;
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
mod trace;
mod wires;
mod workload;
mod world;

pub use clocks::{BrokenClock, ClockFigures, run_with_clocks};
pub use world::Broken;

/// How a run went.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// What was wrong, if anything.
    pub wrong: Option<String>,
    /// What the seed decided before it began.
    pub scenario: String,
    /// The last things that happened; empty unless it was asked for.
    pub trace: Vec<String>,
    /// Two runs of a seed have the same one.
    pub digest: u64,
    /// How much happened.
    pub figures: Figures,
}

/// How much happened in runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Changes acknowledged.
    pub acknowledged: u64,
    /// Changes refused.
    pub refused: u64,
    /// Lives of owners.
    pub owners: u64,
    /// Of them that opened.
    pub opened: u64,
    /// Blocks read and checked.
    pub blocks: u64,
    /// Events.
    pub events: u64,
    /// Runs in which the last full replica was lost, and nothing opened afterwards.
    pub lost: u64,
    /// Times that a node with a damaged log became whole again.
    pub repaired: u64,
    /// Members that left because they were slower than the others.
    pub replaced: u64,
    /// Members that were away and became full again by what they missed.
    pub caught_up: u64,
    /// Virtual seconds.
    pub seconds: u64,
}

impl Figures {
    /// Both together.
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

/// Makes the run of a seed. `traced`: notes what happens, which takes longer.
#[must_use]
pub fn run(seed: u64, broken: Broken, traced: bool) -> Outcome {
    world::World::new(seed, broken, traced).run(seed)
}

/// Makes a run of three nodes or more for two replicas, one of which is slow from early on to the end.
/// It has recovered when the group does without that one.
#[must_use]
pub fn run_with_a_lame_node(seed: u64, traced: bool) -> Outcome {
    world::World::with_a_lame_node(seed, traced).run(seed)
}

/// Makes a run in which owners live, so that nodes which were away come back to the one that they left.
#[must_use]
pub fn run_with_absences(seed: u64, traced: bool) -> Outcome {
    world::World::with_absences(seed, traced).run(seed)
}
