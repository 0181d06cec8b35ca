//! Crossings: the end of a word, the octets after the word, and the beginning of the next word. Runs alone show that
//! the words of a phrase are in a message; crossings show that the words stand beside each other. A message has a
//! signature: each crossing sets two bits, with about six bits for a crossing. So a search seldom reads a message
//! without the phrase, and always reads a message with the phrase.

use std::ops::Range;

use vere_mime::Zone;

use crate::runs::{in_word, runs};

/// Signature bits for each distinct crossing.
const BITS: usize = 6;
/// The shortest signature, in octets.
const OCTETS_MIN: usize = 4;
/// Octets of the words on either side of a crossing. `NEAR` applies to all words, and a shorter word
/// counts whole. Words of at least `FAR` octets on both sides make a second crossing.
const NEAR: usize = 2;
const FAR: usize = 3;
/// Distinct crossings of a message at most, twice as many while they are gathered. A message with more crossings
/// counts as having every crossing.
const CROSSINGS_MAX: usize = 256 * 1024;
/// The signature of a message with every crossing.
const ALL: [u8; OCTETS_MIN] = [0xFF; OCTETS_MIN];
/// Separates the three parts of a crossing; occurs in no text.
const BETWEEN: u8 = 0xFF;

/// Whether the segment keeps crossings of a zone: other zones have so little text that messages are read instead.
pub(crate) fn are_kept(zone: Zone) -> bool {
    matches!(zone, Zone::Body | Zone::Header)
}

/// FNV-1a, followed by a mixing step so that both halves of the hash are usable.
fn hash(parts: [&[u8]; 3]) -> u64 {
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for part in parts {
        for octet in part.iter().chain(&[BETWEEN]) {
            hash = (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
    (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn last(word: &[u8], octets: usize) -> &[u8] {
    &word[word.len().saturating_sub(octets)..]
}

fn first(word: &[u8], octets: usize) -> &[u8] {
    &word[..word.len().min(octets)]
}

/// The crossings of one message's texts.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    hashes: Vec<u64>,
    /// Whether there are too many crossings, or some crossings are unknown.
    all: bool,
}

impl Crossings {
    /// Adds the crossing from a word to the next word.
    pub(crate) fn add(&mut self, before: &[u8], between: &[u8], behind: &[u8]) {
        self.take(hash([last(before, NEAR), between, first(behind, NEAR)]));
        if before.len() >= FAR && behind.len() >= FAR {
            self.take(hash([last(before, FAR), between, first(behind, FAR)]));
        }
    }

    fn take(&mut self, hash: u64) {
        if self.hashes.len() >= 2 * CROSSINGS_MAX {
            self.hashes.sort_unstable();
            self.hashes.dedup();
            if self.hashes.len() > CROSSINGS_MAX {
                self.take_all();
            }
        }
        if !self.all {
            self.hashes.push(hash);
        }
    }

    /// Counts every crossing as present, because some texts are not indexed.
    pub(crate) fn take_all(&mut self) {
        self.all = true;
        self.hashes = Vec::new();
    }

    /// Sorts the crossings and removes duplicates, after the last text.
    pub(crate) fn settle(&mut self) {
        // Joined crossings mostly are two sorted parts, which a merge sort handles fast.
        self.hashes.sort();
        self.hashes.dedup();
        if self.hashes.len() > CROSSINGS_MAX {
            self.take_all();
        }
        self.hashes.shrink_to_fit();
    }

    /// Returns the crossings of both, not settled.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self {
            hashes: [self.hashes.as_slice(), &other.hashes].concat(),
            all: self.all || other.all,
        }
    }

    /// Octets in memory.
    pub(crate) fn resident(&self) -> usize {
        self.hashes.len() * size_of::<u64>()
    }

    /// Returns the signature of settled crossings; empty if there are no crossings.
    pub(crate) fn signature(&self) -> Vec<u8> {
        if self.all {
            return ALL.to_vec();
        }
        if self.hashes.is_empty() {
            return Vec::new();
        }
        let octets = (self.hashes.len() * BITS).div_ceil(8).max(OCTETS_MIN);
        let mut signature = vec![0; octets];
        for hash in &self.hashes {
            for bit in bits(*hash, octets) {
                signature[bit / 8] |= 1 << (bit % 8);
            }
        }
        signature
    }
}

fn bits(hash: u64, octets: usize) -> [usize; 2] {
    [(hash >> 32) as usize, hash as u32 as usize].map(|half| half % (octets * 8))
}

/// Returns the crossings of every text that contains a needle.
pub(crate) fn of_needle(octets: &[u8]) -> Vec<u64> {
    let cut: Vec<Range<usize>> = runs(octets).collect();
    let mut wanted = Vec::new();
    for (number, three) in cut.windows(3).enumerate() {
        let [before, between, behind] = [0, 1, 2].map(|at| &octets[three[at].clone()]);
        if !in_word(before[0]) {
            continue;
        }
        // At either end of the needle, a word of the text may continue.
        let open = [number == 0, number + 3 == cut.len()];
        let fits = |word: &[u8], open: bool, octets: usize| !open || word.len() >= octets;
        if fits(before, open[0], NEAR) && fits(behind, open[1], NEAR) {
            wanted.push(hash([last(before, NEAR), between, first(behind, NEAR)]));
        }
        if before.len() >= FAR && behind.len() >= FAR {
            wanted.push(hash([last(before, FAR), between, first(behind, FAR)]));
        }
    }
    wanted
}

/// Whether texts with this signature may have all of these crossings; never false if the texts do have them.
pub(crate) fn may_have(signature: &[u8], wanted: &[u64]) -> bool {
    !signature.is_empty()
        && wanted.iter().all(|hash| {
            bits(*hash, signature.len())
                .iter()
                .all(|bit| signature[bit / 8] >> (bit % 8) & 1 == 1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(text: &[u8]) -> Vec<u8> {
        let mut crossings = Crossings::default();
        let cut: Vec<_> = runs(text).map(|run| &text[run]).collect();
        for three in cut.windows(3).filter(|three| in_word(three[0][0])) {
            crossings.add(three[0], three[1], three[2]);
        }
        crossings.settle();
        crossings.signature()
    }

    #[test]
    fn what_stands_in_a_text_may_stand_in_it() {
        let text = b"THIS IS A TEXT, OF WORDS -- AND a signature of 3 words; (no more).";
        let signature = signature(text);
        for start in 0..text.len() {
            for end in start..=text.len() {
                let wanted = of_needle(&text[start..end]);
                assert!(may_have(&signature, &wanted), "{start}..{end}");
            }
        }
        assert!(signature.len() < text.len());
    }

    #[test]
    fn what_does_not_stand_beside_each_other_is_seldom_taken_for_it() {
        let words: Vec<String> = (0..600_u32)
            .map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761)))
            .collect();
        let signature = signature(words.join(" ").as_bytes());
        let apart = words.windows(3).map(|three| [&*three[0], &*three[2]]);
        let taken = apart.filter(|two| may_have(&signature, &of_needle(two.join(" ").as_bytes())));
        assert!(taken.count() < 60, "of 598");
    }

    #[test]
    fn too_many_are_taken_for_all() {
        let mut crossings = Crossings::default();
        for number in 0..CROSSINGS_MAX as u32 * 3 {
            crossings.add(&number.to_le_bytes()[..2], &number.to_le_bytes(), b"A");
        }
        assert!(crossings.hashes.len() <= 2 * CROSSINGS_MAX);
        crossings.settle();
        assert!(may_have(&crossings.signature(), &of_needle(b"ANY, THING")));
        let mut few = Crossings::default();
        few.add(b"NO", b" ", b"MORE");
        few.settle();
        let signature = few.signature();
        assert!(may_have(&signature, &of_needle(b"NO MORE")));
        assert!(!may_have(&signature, &of_needle(b"ANY, THING")));
        let mut both = few.with(&crossings);
        both.settle();
        assert!(may_have(&both.signature(), &of_needle(b"ANY, THING")));
    }

    #[test]
    fn ends_of_a_needle_may_be_ends_of_longer_words() {
        // Nothing is known of one letter that may be the end of any word.
        assert_eq!(of_needle(b"A WORD"), []);
        assert_eq!(of_needle(b"AB WORD").len(), 1);
        assert_eq!(of_needle(b"ABC WORD").len(), 2);
        // Within, the letter is the word.
        assert_eq!(of_needle(b"ABC A WORD").len(), 2);
        assert_eq!(of_needle(b", WORD, ").len(), 0);
        assert!(may_have(&[0xFF], &[]) && !may_have(&[], &[]));
    }
}
