//! Signatures: compressed knowledge of runs too long to be kept. Each gram of one to three octets sets
//! one bit, with about four bits per gram, so that false candidates are rare, for short needles too, and
//! the signature of a text is about half as long as the text, in any script.

use std::collections::BTreeSet;

/// Bits for each distinct gram.
const BITS: usize = 4;
/// The shortest signature, in octets.
const OCTETS_MIN: usize = 8;
/// The most octets of a gram.
const GRAM: usize = 3;

/// The signature that matches any text.
pub(crate) const ANYTHING: [u8; OCTETS_MIN] = [0xFF; OCTETS_MIN];

/// A gram as a number; a leading 1 distinguishes short grams from longer grams.
fn number(gram: &[u8]) -> u32 {
    gram.iter()
        .fold(1, |number, octet| number << 8 | u32::from(*octet))
}

fn bit(gram: u32, octets: usize) -> usize {
    let mixed = u64::from(gram).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    mixed as usize % (octets * 8)
}

/// The grams of long runs.
#[derive(Debug, Default)]
pub(crate) struct Grams(BTreeSet<u32>);

impl Grams {
    pub(crate) fn add(&mut self, run: &[u8]) {
        for octets in 1..=GRAM {
            self.0.extend(run.windows(octets).map(number));
        }
    }

    /// These and others.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// Octets in memory, about.
    pub(crate) fn resident(&self) -> usize {
        self.0.len() * 2 * size_of::<u32>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn signature(&self) -> Vec<u8> {
        let mut octets = vec![0; (self.0.len() * BITS).div_ceil(8).max(OCTETS_MIN)];
        for gram in &self.0 {
            let bit = bit(*gram, octets.len());
            octets[bit / 8] |= 1 << (bit % 8);
        }
        octets
    }
}

/// Whether runs with this signature may contain `what`; never false for a run that does.
pub(crate) fn may_hold(signature: &[u8], what: &[u8]) -> bool {
    what.windows(what.len().clamp(1, GRAM)).all(|gram| {
        let bit = bit(number(gram), signature.len());
        signature[bit / 8] & 1 << (bit % 8) != 0
    })
}

/// Whether a signature belongs to a message with partly unknown texts.
pub(crate) fn is_anything(signature: &[u8]) -> bool {
    signature.iter().all(|octet| *octet == 0xFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_run_may_be_in_it() {
        let run: Vec<u8> = (0..5_000_u32).map(|n| ((n * n) >> 5) as u8 | 1).collect();
        let mut grams = Grams::default();
        assert!(grams.is_empty());
        grams.add(&run);
        let signature = grams.signature();
        assert!(signature.len() <= run.len());
        assert!((0..run.len() - 20).all(|at| may_hold(&signature, &run[at..at + 20])));
        assert!((0..run.len() - 2).all(|at| may_hold(&signature, &run[at..at + 1 + at % 2])));
        let mut line = Grams::default();
        line.add(&[b'-'; 72]);
        assert!(may_hold(&line.signature(), b"--") && !may_hold(&line.signature(), b"ZZ"));
        let absent =
            (0..1_000_u32).filter(|n| may_hold(&signature, format!("ABSENT{n}").as_bytes()));
        assert!(absent.count() < 100);
    }
}
