//! Copies of packs that accounts lack.

use std::collections::BTreeSet;

/// Copies made at once.
pub(crate) const COPIES_MAX: usize = 4;

/// Copies that are missing.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    /// Account and pack.
    pub(crate) missing: BTreeSet<(u16, u64)>,
    pub(crate) copying: BTreeSet<(u16, u64)>,
}

impl Replicas {
    /// An account lacks a pack of its group.
    pub(crate) fn lacks(&mut self, account: u16, pack: u64) {
        self.missing.insert((account, pack));
    }

    /// Copies on their way.
    pub(crate) fn copying(&self) -> usize {
        self.copying.len()
    }

    /// Copies that are missing or on their way.
    pub(crate) fn waiting(&self) -> usize {
        self.missing.len().saturating_add(self.copying.len())
    }
}
