//! Numbers for runs, so that the gist of a message is a list of numbers.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use hashbrown::HashTable;

/// No number.
const NONE: u32 = u32::MAX;

/// Distinct runs, numbered in the order of their first use.
#[derive(Debug)]
pub(crate) struct Words {
    numbers: HashTable<u32>,
    /// The hasher is random, so that the authors of messages cannot provoke collisions.
    hasher: RandomState,
    /// Numbers of runs of a single octet: in most texts every second run has one octet.
    single: [u32; 256],
    octets: Vec<u8>,
    /// The end of each run in `octets`.
    ends: Vec<u32>,
    /// The last pass that took each run.
    taken: Vec<u64>,
    takings: u64,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            numbers: HashTable::new(),
            hasher: RandomState::new(),
            single: [NONE; 256],
            octets: Vec::new(),
            ends: Vec::new(),
            taken: Vec::new(),
            takings: 0,
        }
    }
}

fn run<'a>(octets: &'a [u8], ends: &[u32], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &octets[start as usize..ends[number] as usize]
}

impl Words {
    /// Number of distinct runs.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the run with a number.
    pub(crate) fn run(&self, number: u32) -> &[u8] {
        run(&self.octets, &self.ends, number)
    }

    /// Octets in memory.
    pub(crate) fn resident(&self) -> usize {
        let each = size_of::<u32>() + size_of::<u64>();
        self.octets.capacity() + self.ends.capacity() * each + self.numbers.capacity() * 5
    }

    /// Begins a pass, in which no run counts as taken yet.
    pub(crate) fn begin(&mut self) -> u64 {
        self.takings += 1;
        self.takings
    }

    /// Returns the number of a run the first time that a pass takes the run; `None` for
    /// repetitions.
    pub(crate) fn take(&mut self, taking: u64, run: &[u8]) -> Option<u32> {
        let number = self.number(run);
        let taken = self.taken.get_mut(number as usize)?;
        (std::mem::replace(taken, taking) != taking).then_some(number)
    }

    /// Returns the number of a run; adds a new run.
    pub(crate) fn number(&mut self, wanted: &[u8]) -> u32 {
        if let [octet] = wanted {
            let known = self.single[usize::from(*octet)];
            if known != NONE {
                return known;
            }
            let number = self.push(wanted);
            self.single[usize::from(*octet)] = number;
            return number;
        }
        let hash = self.hasher.hash_one(wanted);
        let (octets, ends) = (&self.octets, &self.ends);
        let same = |number: &u32| run(octets, ends, *number) == wanted;
        if let Some(number) = self.numbers.find(hash, same) {
            return *number;
        }
        let number = self.push(wanted);
        let (octets, ends, hasher) = (&self.octets, &self.ends, &self.hasher);
        let rehash = |number: &u32| hasher.hash_one(run(octets, ends, *number));
        self.numbers.insert_unique(hash, number, rehash);
        number
    }

    fn push(&mut self, run: &[u8]) -> u32 {
        let number = self.ends.len() as u32;
        self.octets.extend_from_slice(run);
        self.ends.push(self.octets.len() as u32);
        self.taken.push(0);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_numbers() {
        let mut words = Words::default();
        let runs: Vec<Vec<u8>> = (0..5_000_u32)
            .map(|n| format!("{:x}", n % 1_000).into_bytes())
            .collect();
        let numbers: Vec<u32> = runs.iter().map(|run| words.number(run)).collect();
        assert_eq!(words.len(), 1_000);
        for (run, number) in runs.iter().zip(&numbers) {
            assert_eq!(words.run(*number), run);
        }
        assert!(words.resident() > words.len() * 12);
    }

    #[test]
    fn each_is_taken_once() {
        let mut words = Words::default();
        for _ in 0..2 {
            let taking = words.begin();
            assert!(words.take(taking, b"a").is_some());
            assert!(words.take(taking, b"a").is_none());
            let (other, word) = (words.begin(), b"word");
            assert_eq!(words.take(other, word), Some(words.number(word)));
            assert!(words.take(taking, word).is_some());
        }
    }
}
