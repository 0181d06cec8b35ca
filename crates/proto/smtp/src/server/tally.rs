//! The counts of a session, for metrics.

/// Replies and ends of authentications since the tally was last taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Replies 2yz, including the greeting.
    pub positive: u32,
    /// Replies 3yz.
    pub intermediate: u32,
    /// Replies 4yz.
    pub transient: u32,
    /// Replies 5yz.
    pub permanent: u32,
    /// Authentications that succeeded.
    pub authenticated: u32,
    /// Authentications that failed.
    pub rejected: u32,
    /// Authentications that could not be decided.
    pub undecided: u32,
}

impl Tally {
    /// Counts a reply by the first digit of the code.
    pub(super) fn reply(&mut self, code: u16) {
        add(match code / 100 {
            2 => &mut self.positive,
            3 => &mut self.intermediate,
            4 => &mut self.transient,
            _ => &mut self.permanent,
        });
    }

    pub(super) fn discard_replies(&mut self) {
        *self = Self {
            authenticated: self.authenticated,
            rejected: self.rejected,
            undecided: self.undecided,
            ..Self::default()
        };
    }

    pub(super) fn authenticated(&mut self) {
        add(&mut self.authenticated);
    }

    pub(super) fn rejected(&mut self) {
        add(&mut self.rejected);
    }

    pub(super) fn undecided(&mut self) {
        add(&mut self.undecided);
    }
}

fn add(count: &mut u32) {
    *count = count.saturating_add(1);
}
