//! Copies of packs that accounts lack.

use std::collections::BTreeSet;

use vere_units::Timestamp;

/// Copies made at once.
pub const COPIES_MAX: usize = 4;
/// Rows of packs that are looked at before other events have their turn.
pub const SCAN_ROWS: usize = 2_000;

/// Copies that are missing.
#[derive(Debug, Default)]
pub struct Replicas {
    /// Account and pack.
    pub missing: BTreeSet<(u16, u64)>,
    /// Account and pack of copies on the way.
    pub copying: BTreeSet<(u16, u64)>,
    /// The key behind which the search for missing copies goes on; absent when all rows were seen.
    pub scan: Option<Vec<u8>>,
    /// The first pack of this mount.
    pub own_from: u64,
    /// When the search goes on by itself.
    pub scan_at: Option<Timestamp>,
}

impl Replicas {
    /// An account lacks a pack of its group.
    pub fn lacks(&mut self, account: u16, pack: u64) {
        self.missing.insert((account, pack));
    }

    /// Copies on the way.
    pub fn copying(&self) -> usize {
        self.copying.len()
    }

    /// Copies that are missing or on the way.
    pub fn waiting(&self) -> usize {
        self.missing.len().saturating_add(self.copying.len())
    }
}
