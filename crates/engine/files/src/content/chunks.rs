//! Where octets are cut into chunks.
//!
//! Octets written in sequence are cut by content (FastCDC): a cut depends on the octets nearby alone. Equal content has equal
//! chunks for this reason, also behind an insertion. A range in the middle of a file is cut by length.

use bytes::Bytes;
use fastcdc::v2020::FastCDC;

/// Octets of a chunk of a sequence, at least: a file up to here is one chunk.
const CHUNK_MIN: usize = 128 << 10;
/// Octets of a chunk of a sequence, on average.
const CHUNK_AVERAGE: usize = 512 << 10;
/// Octets of a chunk, at most: the content of a frame.
pub const CHUNK_MAX: usize = 2 << 20;
/// Octets of a chunk of a range in the middle of a file.
const RANGE_MAX: usize = 256 << 10;
/// Used octets of the window dropped at once: each octet is moved once at most.
const DROPPED: usize = 2 * CHUNK_MAX;

/// The lengths of the chunks of a sequence, in order. With `whole_only`, a cut at the end is left out: more octets may move the cut.
#[must_use]
pub fn sequence_lengths(parts: impl IntoIterator<Item = Bytes>, whole_only: bool) -> Vec<usize> {
    let mut parts = parts.into_iter().fuse();
    let mut window: Vec<u8> = Vec::new();
    let mut from = 0;
    let mut lengths = Vec::new();
    loop {
        while window.len().saturating_sub(from) < CHUNK_MAX
            && let Some(part) = parts.next()
        {
            if from >= DROPPED {
                window.drain(..from);
                from = 0;
            }
            window.extend_from_slice(&part);
        }
        let left = window.get(from..).unwrap_or_default();
        if left.is_empty() {
            return lengths;
        }
        let length = first_cut(left);
        if whole_only && length == left.len() && length < CHUNK_MAX {
            return lengths;
        }
        lengths.push(length);
        from = from.saturating_add(length);
    }
}

/// The length of the first chunk of octets; not 0.
fn first_cut(octets: &[u8]) -> usize {
    if octets.len() <= CHUNK_MIN {
        return octets.len();
    }
    let cutter = FastCDC::new(octets, CHUNK_MIN, CHUNK_AVERAGE, CHUNK_MAX);
    let (_, length) = cutter.cut(0, octets.len());
    length.clamp(1, octets.len())
}

/// The lengths of the chunks of a range of so many octets, in order.
#[must_use]
pub fn range_lengths(octets: u64, whole_only: bool) -> Vec<usize> {
    let mut left = octets;
    let mut lengths = Vec::new();
    while left > 0 {
        let length = left.min(RANGE_MAX as u64);
        if whole_only && length < RANGE_MAX as u64 {
            break;
        }
        lengths.push(usize::try_from(length).unwrap_or(RANGE_MAX));
        left = left.saturating_sub(length);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use vere_faults::Seeded;

    use super::*;

    fn noise(seed: u64, octets: usize) -> Vec<u8> {
        let mut seeded = Seeded(seed);
        let words = std::iter::repeat_with(|| seeded.next_u64().to_le_bytes());
        words.flatten().take(octets).collect()
    }

    fn in_parts(octets: &[u8], part: usize) -> Vec<Bytes> {
        octets.chunks(part).map(Bytes::copy_from_slice).collect()
    }

    #[test]
    fn cuts_do_not_depend_on_the_parts() {
        let octets = noise(1, 9_000_001);
        let whole = sequence_lengths(in_parts(&octets, octets.len()), false);
        assert_eq!(whole.iter().sum::<usize>(), octets.len());
        let (_, inner) = whole.split_last().unwrap();
        let bounds = CHUNK_MIN..=CHUNK_MAX;
        assert!(inner.iter().all(|length| bounds.contains(length)));
        assert!((8..40).contains(&whole.len()), "{}", whole.len());
        for part in [64 << 10, 1_000_003] {
            assert_eq!(sequence_lengths(in_parts(&octets, part), false), whole);
        }
    }

    /// An upload during the writes has the chunks of an upload behind the last write.
    #[test]
    fn a_growing_sequence_has_the_cuts_of_the_whole() {
        let octets = noise(2, 6_000_000);
        let whole = sequence_lengths(in_parts(&octets, 1 << 20), false);
        let mut lengths = Vec::new();
        let mut from = 0;
        for end in (500_000..=6_000_000).step_by(500_000) {
            for length in sequence_lengths(in_parts(&octets[from..end], 100_000), true) {
                lengths.push(length);
                from += length;
            }
        }
        lengths.extend(sequence_lengths(in_parts(&octets[from..], 100_000), false));
        assert_eq!(lengths, whole);
    }

    #[test]
    fn chunks_come_back_behind_an_insertion() {
        let octets = noise(3, 8_000_000);
        let mut longer = noise(4, 1_000);
        longer.extend_from_slice(&octets);
        let ends = |octets: &[u8]| {
            let mut left = octets.len();
            let lengths = sequence_lengths(in_parts(octets, 1 << 20), false);
            let from_end = lengths.into_iter().map(move |length| {
                left -= length;
                left
            });
            from_end.collect::<Vec<_>>()
        };
        let (before, after) = (ends(&octets), ends(&longer));
        let same = before.iter().filter(|end| after.contains(end)).count();
        assert!(same + 4 >= before.len(), "{same} of {}", before.len());
    }

    #[test]
    fn equal_octets_are_cut_at_the_longest() {
        let lengths = sequence_lengths(in_parts(&vec![0; 5 << 20], 1 << 20), true);
        assert_eq!(lengths, [CHUNK_MAX, CHUNK_MAX]);
    }

    #[test]
    fn ranges_are_cut_by_length() {
        assert_eq!(range_lengths(RANGE_MAX as u64 + 1, false), [RANGE_MAX, 1]);
        assert_eq!(range_lengths(RANGE_MAX as u64 + 1, true), [RANGE_MAX]);
        assert_eq!(range_lengths(0, false), [0_usize; 0]);
    }
}
