//! Homes for new inodes.

use crate::rows::Home;

/// Bits of a block, the part of a home below the writer.
const BLOCK_BITS: u32 = 28;
/// The highest block of a writer.
const BLOCK_MAX: u32 = (1 << BLOCK_BITS) - 1;
/// Below so many homes more are wanted: a quarter of the 1,024 that are reserved at a time.
const SHORT: u32 = 256;

/// The homes that a writer has reserved. No home is given twice, so a home is reserved durably before use.
#[derive(Debug, Clone)]
pub struct Numbers {
    writer: u16,
    next_block: u32,
    reserved_to: u32,
}

impl Numbers {
    /// The blocks from `next_block` to before `reserved_to` of a writer.
    #[must_use]
    pub fn new(writer: u16, next_block: u32, reserved_to: u32) -> Self {
        Self {
            writer,
            next_block,
            reserved_to,
        }
    }

    /// The writer.
    #[must_use]
    pub fn writer(&self) -> u16 {
        self.writer
    }

    /// The first block that is not in use.
    #[must_use]
    pub fn next_block(&self) -> u32 {
        self.next_block
    }

    /// Whether more blocks should be reserved soon.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.reserved_to.saturating_sub(self.next_block) < SHORT
    }

    /// Blocks up to before `reserved_to` are reserved.
    pub fn extend(&mut self, reserved_to: u32) {
        self.reserved_to = self.reserved_to.max(reserved_to);
    }

    /// Takes a home; absent if no block is reserved, or the writer has used all of its blocks.
    pub fn take(&mut self) -> Option<Home> {
        let block = self.next_block;
        if block >= self.reserved_to || block > BLOCK_MAX {
            return None;
        }
        self.next_block = block.saturating_add(1);
        Some((u64::from(self.writer) << BLOCK_BITS) | u64::from(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_given_once_and_up_to_the_reserve() {
        let mut numbers = Numbers::new(3, 5, 7);
        assert!(numbers.is_short());
        assert_eq!(numbers.take(), Some((3 << 28) | 5));
        assert_eq!(numbers.take(), Some((3 << 28) | 6));
        assert_eq!(numbers.take(), None);
        numbers.extend(1024);
        assert!(!numbers.is_short());
        assert_eq!(numbers.take(), Some((3 << 28) | 7));
    }
}
