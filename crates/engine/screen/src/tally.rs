//! Counts of decisions, for metrics.

use crate::decision::{Decision, Reason};

/// Counts since the host took the last tally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Connections that came, those that were turned away included.
    pub arrived: u64,
    /// Recipients that were accepted.
    pub accepted: u64,
    /// Connections that were handed over.
    pub trusted: u64,
    reasons: [u64; Reason::ALL.len()],
    turned_away: [u64; Reason::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            arrived: 0,
            accepted: 0,
            trusted: 0,
            reasons: [0; Reason::ALL.len()],
            turned_away: [0; Reason::ALL.len()],
        }
    }
}

impl Tally {
    /// Number of decisions for a reason about admitted connections.
    #[must_use]
    pub const fn of(&self, reason: Reason) -> u64 {
        self.reasons[reason as usize]
    }

    /// Number of connections turned away for a reason.
    #[must_use]
    pub const fn turned_away(&self, reason: Reason) -> u64 {
        self.turned_away[reason as usize]
    }

    pub(crate) const fn turn_away(&mut self, reason: Reason) {
        self.turned_away[reason as usize] += 1;
    }

    pub(crate) fn count(&mut self, decision: Decision) {
        match decision.reason() {
            Some(reason) => self.reasons[reason as usize] += 1,
            None => self.accepted += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_apart() {
        let mut tally = Tally::default();
        for reason in Reason::ALL {
            tally.count(Decision::Close(*reason));
        }
        tally.count(Decision::Defer(Reason::Evicted));
        tally.count(Decision::Accept);
        tally.turn_away(Reason::Access);
        for reason in Reason::ALL {
            assert_eq!(tally.of(*reason), 1 + u64::from(*reason == Reason::Evicted));
        }
        let away: u64 = Reason::ALL
            .iter()
            .map(|reason| tally.turned_away(*reason))
            .sum();
        assert_eq!((away, tally.turned_away(Reason::Access)), (1, 1));
        assert_eq!((tally.accepted, tally.arrived, tally.trusted), (1, 0, 0));
    }
}
