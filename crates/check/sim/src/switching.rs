//! MTAs of X.400 in a row, A to B to C: the production code of decisions ([`vere_mta400`]), queues ([`vere_delivery::Group`]) and
//! associations ([`vere_associations`]) over connections in memory, with cuts at any protocol data unit.
//!
//! The spool, the surroundings of the queues and the order of tasks are shared with the deliveries (`stage`). The row has a purpose: each
//! message that the first MTA has accepted reaches the user or is reported, no transfer is repeated without a promised reason, and a
//! transfer that broke off behind a checkpoint continues there.
//!
//! Clocks of associations do not run here: bounds of waits are tested in `vere-associations`.

mod account;
mod answering;
mod courier;
mod intake;
mod lives;
mod mtas;
mod network;
mod process;
mod rest;
mod stream;
mod users;
mod world;

pub use network::{Cut, Side};

/// A promise that the world breaks, to test that the checks notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenSwitching {
    /// No promise is broken.
    Nothing,
    /// Receivers confirm a unit before the unit is stored.
    EarlyConfirmation,
    /// Receivers forget transfers that broke off, and confirmed transfers.
    ForgetfulHistory,
    /// Receivers do not note that a transfer is being received or stored.
    BlindHistory,
    /// Senders take a transfer in doubt for a transfer.
    TrustingSender,
    /// Senders send a transfer in doubt once more, and do not ask.
    HastySender,
    /// Senders begin a transfer anew that broke off behind a checkpoint.
    WastefulSender,
}

/// Mail of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Post {
    /// A single recipient and a single checkpoint.
    Short,
    /// A single recipient and several checkpoints.
    Long,
    /// Several recipients of all MTAs behind the first, with an unknown recipient; reports about all recipients.
    Several,
}

/// A row of MTAs, and the mail of a user of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The number of MTAs: 2 or 3.
    pub mtas: usize,
    /// The mail.
    pub post: Post,
}

/// Counts of events in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchingFigures {
    /// Messages accepted by the first MTA.
    pub accepted: u64,
    /// Recipients that users received mail for.
    pub delivered: u64,
    /// Recipients reported as failed to the originator.
    pub failed: u64,
    /// Protocol data units of all connections.
    pub pdus: u64,
    /// Connections cut.
    pub cuts: u64,
    /// Transfers in doubt.
    pub doubts: u64,
    /// Transfers that continued behind a checkpoint.
    pub resumed: u64,
    /// Transfers that the receiver had confirmed before.
    pub reconfirmed: u64,
    /// Questions about transfers that the receiver was still storing.
    pub busy: u64,
    /// Units that an MTA took twice, each for a promised reason.
    pub again: u64,
    /// MTAs killed.
    pub kills: u64,
    /// Steps of tasks.
    pub steps: u64,
}

impl SwitchingFigures {
    /// The sums of two figures.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            delivered: self.delivered + other.delivered,
            failed: self.failed + other.failed,
            pdus: self.pdus + other.pdus,
            cuts: self.cuts + other.cuts,
            doubts: self.doubts + other.doubts,
            resumed: self.resumed + other.resumed,
            reconfirmed: self.reconfirmed + other.reconfirmed,
            busy: self.busy + other.busy,
            again: self.again + other.again,
            kills: self.kills + other.kills,
            steps: self.steps + other.steps,
        }
    }
}

/// The result of a run, and the last events if the caller asked for them.
pub type Switched = (Result<SwitchingFigures, String>, Vec<String>);

/// Runs a message through a row without faults, but for at most one cut. The seed chooses the order of tasks; an odd
/// seed chooses the mode of X.410.
pub fn run_with_cut(
    row: Row,
    cut: Option<Cut>,
    (seed, broken): (u64, BrokenSwitching),
    traced: bool,
) -> Switched {
    world::run(world::World::with_cut(row, cut, (seed, broken), traced))
}

/// Every cut of an undisturbed run: before, within and behind each protocol data unit of each direction.
///
/// # Errors
/// The broken promise of the run.
pub fn cuts(row: Row, seed: u64) -> Result<Vec<Cut>, String> {
    let world = world::World::with_cut(row, None, (seed, BrokenSwitching::Nothing), false);
    let network = world.network();
    world::run(world).0?;
    let network = network::locked(&network);
    Ok(network.all_cuts())
}

/// Runs a seed: mail of all kinds, cuts, MTAs that die and start again with their spools, spools that stand still. Equal seeds give equal
/// runs.
pub fn run_with_switches(seed: u64, broken: BrokenSwitching, traced: bool) -> Switched {
    world::run(world::World::of_seed(seed, broken, traced))
}
