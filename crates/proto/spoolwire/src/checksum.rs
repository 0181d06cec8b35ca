//! The checksum of frames: CRC-32C, supported by instructions of common processors.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli; RFC 3720 section 12.1) of the octets.
#[inline]
#[must_use]
pub fn checksum(octets: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(octets)
}

/// The checksum of octets in several pieces.
#[derive(Debug)]
pub struct Checksum(Digest);

impl Checksum {
    /// Of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds octets.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// The checksum of all octets so far.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "32 bits; other algorithms of the library have more"
    )]
    pub fn finish(&self) -> u32 {
        self.0.finalize() as u32
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720 appendix B.4, and the checksum of a whole in several pieces.
    #[test]
    fn known_values() {
        assert_eq!(checksum(&[0; 32]), 0x8A91_36AA);
        assert_eq!(checksum(&[0xFF; 32]), 0x62A8_AB43);
        let counted: Vec<u8> = (0..32).collect();
        assert_eq!(checksum(&counted), 0x46DD_794E);
        assert_eq!(checksum(b""), 0);
        for cut in 0..=counted.len() {
            let mut parts = Checksum::new();
            parts.update(&counted[..cut]);
            parts.update(&counted[cut..]);
            assert_eq!(parts.finish(), 0x46DD_794E);
        }
    }

    /// Every code path of the library for a length agrees with the definition.
    #[test]
    fn long_and_unaligned_octets() {
        let octets: Vec<u8> = (0..5_000_u32).map(|at| (at * 7 + at / 256) as u8).collect();
        for len in (0..300).chain([511, 512, 1023, 1024, 1100, 2047, 4097, 4900]) {
            for from in [0, 1, 3, 8] {
                let part = &octets[from..from + len];
                assert_eq!(checksum(part), by_bit(part), "{len} octets from {from} on");
            }
        }
    }

    fn by_bit(octets: &[u8]) -> u32 {
        let step = |sum: u32, _| sum >> 1 ^ (0x82F6_3B78 & (sum & 1).wrapping_neg());
        !octets.iter().fold(u32::MAX, |sum, octet| {
            (0..8).fold(sum ^ u32::from(*octet), step)
        })
    }
}
