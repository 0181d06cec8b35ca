//! A disk and a metadata engine in memory that lose, tear and refuse, for tests of whatever writes to
//! them: after a crash of [`MemoryDisk`] any part of what was not synced is there, torn or not; after
//! one of [`MemoryMeta`] any beginning of what was applied since it was last made to last.
//!
//! Both count what is written to them and can stop at a number: so a test can cut off the power at
//! every point at which something is written.

mod disk;
mod meta;

pub use disk::{MemoryDisk, MemoryFile};
pub use meta::MemoryMeta;

/// Decides what a crash keeps.
pub trait Fate {
    /// A number below `bound`.
    fn pick(&mut self, bound: usize) -> usize;
}

/// Numbers that follow from a seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Seeded(pub u64);

impl Seeded {
    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Fate for Seeded {
    fn pick(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }
}
