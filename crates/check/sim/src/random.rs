//! Numbers that look random and follow from a seed, on every machine and with every version of every
//! library: a seed is a bug report.

use std::ops::Range;

/// `SplitMix64` (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A further sequence: draws from the fork do not shift draws from the original.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of a range; its start when the range is empty.
    pub(crate) fn range(&mut self, range: Range<u64>) -> u64 {
        let len = range.end.saturating_sub(range.start).max(1);
        range.start + self.next() % len
    }

    /// A place below `len`; 0 for an empty range.
    pub(crate) fn below(&mut self, len: usize) -> usize {
        self.range(0..len as u64) as usize
    }

    /// True so many times of a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.range(0..100) < percent
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).copied()
    }

    /// A span between the ends of a range, with every order of magnitude as likely as another.
    pub(crate) fn span(&mut self, range: Range<u64>) -> u64 {
        let (low, high) = (range.start.max(1), range.end.max(2));
        let doublings = u64::from((high / low).max(1).ilog2());
        let base = low << self.range(0..doublings + 1);
        base.saturating_add(self.range(0..base)).min(high)
    }

    pub(crate) fn octets32(&mut self) -> [u8; 32] {
        let mut octets = [0; 32];
        for part in octets.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes());
        }
        octets
    }
}
