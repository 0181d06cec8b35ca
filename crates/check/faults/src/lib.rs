//! A disk and a metadata engine in memory that lose, tear and refuse data, for tests of their
//! writers: after a crash of [`MemoryDisk`] any part of the unsynced octets survives, torn or not;
//! after a crash of [`MemoryMeta`] any prefix of the batches applied since the last persist.
//!
//! Both count the writes and can stop at a given number: so a test can cut off the power at every
//! write. [`etcd`] has members of a cluster in processes of their own, [`dovecot`] is a server of mail,
//! [`names`] a name server that lies, [`relay`] a long or broken way to a server, and [`accounts`] mail accounts in
//! memory that a test can lose, fill and damage.

pub mod accounts;
mod disk;
pub mod dovecot;
pub mod etcd;
mod meta;
pub mod names;
mod ports;
pub mod relay;
mod seeds;

pub use disk::{MemoryDisk, MemoryFile};
pub use meta::MemoryMeta;
pub use ports::free_address;
pub use seeds::Seeds;

/// Decides on the data that survives a crash.
pub trait Fate {
    /// A number below `bound`.
    fn pick(&mut self, bound: usize) -> usize;
}

/// Numbers derived from a seed (splitmix64).
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
