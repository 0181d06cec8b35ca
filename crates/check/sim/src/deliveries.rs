//! Deliveries in a separate world: the production code of a queue group ([`vere_delivery::Group`]) above a spool that
//! keeps its promise, with next hops that answer, defer, refuse, cut and hang.
//!
//! The seed kills gateways between any two steps, stops them beyond their lease, and lets others take the group over,
//! while mail arrives and operators hold, release, retry, return and remove it. The promise is checked for every
//! recipient of every message: delivered, reported or removed on order, and twice only for a reason.
//!
//! The spool here is a model: what was acknowledged stays, changes take effect in order and whole. The other world of
//! this crate checks that nodes and owners keep that promise.

mod account;
mod author;
mod faults;
mod gateways;
mod hops;
mod mail;
mod operator;
mod requests;
mod world;

use std::rc::Rc;

/// A promise to the deliveries that the world breaks, to test that the checks notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenDelivery {
    /// No promise is broken.
    Nothing,
    /// The spool acknowledges some changes without making them.
    ForgetfulSpool,
    /// The spool acknowledges new metadata without storing them.
    ForgetfulReplace,
    /// Of a change that a crash cuts off, some operations take effect.
    TornBatch,
    /// A record ends when its body is read for an attempt.
    EagerEnd,
    /// Lines for other systems get lost on the way to the spool.
    LostLines,
    /// Every gateway believes to have the lease, also when another has the group.
    LyingLease,
    /// The spool acknowledges changes before they are done, and a crash loses them.
    EarlyAcknowledgement,
}

/// Counts of events in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryFigures {
    /// Messages accepted.
    pub accepted: u64,
    /// Copies that next hops took, one per recipient.
    pub taken: u64,
    /// Copies that were taken again, each for a reason.
    pub again: u64,
    /// Recipients reported as failed.
    pub failed: u64,
    /// Reports of a delay.
    pub delayed: u64,
    /// Recipients that ended because the message's own end had come.
    pub overdue: u64,
    /// Recipients that ended by order of an operator.
    pub ordered: u64,
    /// Gateways killed.
    pub kills: u64,
    /// Groups taken over from a gateway that lived.
    pub takeovers: u64,
    /// Messages held by operators.
    pub held: u64,
    /// Messages released from the quarantine.
    pub released: u64,
    /// Steps of tasks.
    pub steps: u64,
}

impl DeliveryFigures {
    /// The sums of two figures.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            taken: self.taken + other.taken,
            again: self.again + other.again,
            failed: self.failed + other.failed,
            delayed: self.delayed + other.delayed,
            overdue: self.overdue + other.overdue,
            ordered: self.ordered + other.ordered,
            kills: self.kills + other.kills,
            takeovers: self.takeovers + other.takeovers,
            held: self.held + other.held,
            released: self.released + other.released,
            steps: self.steps + other.steps,
        }
    }
}

/// Runs a seed. Equal seeds give equal runs.
///
/// # Errors
/// The broken promise.
pub fn run_with_deliveries(seed: u64, broken: BrokenDelivery) -> Result<DeliveryFigures, String> {
    world::run(seed, broken, false).0
}

/// Runs a seed, and returns the last events of the run as well.
pub fn trace_deliveries(
    seed: u64,
    broken: BrokenDelivery,
) -> (Result<DeliveryFigures, String>, Vec<String>) {
    world::run(seed, broken, true)
}

/// The shared state of a run.
type Shared = Rc<world::World>;
