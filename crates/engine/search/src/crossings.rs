//! Crossings: where a word ends, what stands behind it, and how the next word begins. What of a phrase is
//! known by its runs alone says that its words are in a message; its crossings say that they stand beside
//! each other there. A message has a signature of them: each crossing sets two of about six bits a
//! crossing, so that a message without the phrase is seldom looked into, and one with it always.

use std::ops::Range;

use vere_mime::Zone;

use crate::runs::{in_word, runs};

/// Bits for each crossing that is different from the others.
const BITS: usize = 6;
/// The shortest signature, in octets.
const OCTETS_MIN: usize = 4;
/// Octets of the words on either side that make a crossing: of all words, as far as they are so long, and
/// once more of those that are longer.
const NEAR: usize = 2;
const FAR: usize = 3;
/// The most crossings of a message that are told apart, twice as many while they are gathered; one with
/// more is taken to have all.
const CROSSINGS_MAX: usize = 256 * 1024;
/// The signature of what has all.
const ALL: [u8; OCTETS_MIN] = [0xFF; OCTETS_MIN];
/// Stands between the three parts; in no text.
const BETWEEN: u8 = 0xFF;

/// Whether crossings are kept of a kind of text: of the others there is so little that it is read.
pub(crate) fn are_kept(zone: Zone) -> bool {
    matches!(zone, Zone::Body | Zone::Header)
}

/// FNV-1a, and then mixed so that both halves are of use.
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

/// The crossings of texts of one message.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    hashes: Vec<u64>,
    /// Whether they are too many, or not all known.
    all: bool,
}

impl Crossings {
    /// Takes in a word, what stands behind it, and the next word.
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

    /// Takes all in: not every text is looked at.
    pub(crate) fn take_all(&mut self) {
        self.all = true;
        self.hashes = Vec::new();
    }

    /// Ends it: nothing more comes.
    pub(crate) fn settle(&mut self) {
        // Mostly two sorted parts, when they are of two.
        self.hashes.sort();
        self.hashes.dedup();
        if self.hashes.len() > CROSSINGS_MAX {
            self.take_all();
        }
        self.hashes.shrink_to_fit();
    }

    /// These and others, not settled.
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

    /// The signature of those that are settled; nothing when there are none.
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

/// The crossings that every text with something in it has.
pub(crate) fn of_needle(octets: &[u8]) -> Vec<u64> {
    let cut: Vec<Range<usize>> = runs(octets).collect();
    let mut wanted = Vec::new();
    for (number, three) in cut.windows(3).enumerate() {
        let [before, between, behind] = [0, 1, 2].map(|at| &octets[three[at].clone()]);
        if !in_word(before[0]) {
            continue;
        }
        // At its ends a word of the text may go on.
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

/// Whether texts of this signature may have all of these crossings; never false when they do.
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
