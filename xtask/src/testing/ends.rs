//! How long each test took.
//!
//! A test binary prints a line when a test ends and none when a test begins, and tells times to unstable options only.
//! Tests begin in the order of their names, each when another one ends: the ends tell the beginnings.

use std::time::{Duration, Instant};

/// The ends of the tests of one binary.
#[derive(Debug)]
pub(super) struct Ends {
    /// Tests that run at the same time.
    threads: usize,
    begun: Instant,
    /// Tests that ended since `begun`, in the order of their ends.
    ended: Vec<(String, Duration)>,
}

impl Ends {
    pub(super) fn new(threads: usize, begun: Instant) -> Self {
        Self {
            threads,
            begun,
            ended: Vec::new(),
        }
    }

    /// Reads a line of the output, such as `running 3 tests` or `test a::b ... ok`.
    pub(super) fn add(&mut self, line: &str, now: Instant) {
        if line.starts_with("running ") && line.trim_end_matches('s').ends_with(" test") {
            self.begun = now;
            self.ended.clear();
        }
        let test = line.strip_prefix("test ");
        if let Some((name, _)) = test.and_then(|test| test.rsplit_once(" ... ")) {
            let after = now.saturating_duration_since(self.begun);
            self.ended.push((name.to_owned(), after));
        }
    }

    /// The time that each test took.
    pub(super) fn took(&self) -> Vec<(String, Duration)> {
        let mut by_name: Vec<&(String, Duration)> = self.ended.iter().collect();
        by_name.sort();
        let begins = std::iter::repeat_n(Duration::ZERO, self.threads);
        let begins = begins.chain(self.ended.iter().map(|(_, end)| *end));
        let times = by_name.into_iter().zip(begins);
        times
            .map(|((name, end), begin)| (name.clone(), end.saturating_sub(begin)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_begins_when_an_earlier_one_ends() {
        let begun = Instant::now();
        let mut ends = Ends::new(2, begun);
        let lines = [
            (9, "test of::another_binary ... ok"),
            (10, "running 4 tests"),
            (10, "skipped: the disk is full"),
            (13, "test b ... FAILED"),
            (14, "test c - should panic ... ok"),
            (17, "test a has been running for over 60 seconds"),
            (18, "test d ... ignored"),
            (19, "test a ... ok"),
            (19, "test result: FAILED. 3 passed; 1 failed"),
        ];
        for (second, line) in lines {
            ends.add(line, begun + Duration::from_secs(second));
        }
        let took: Vec<_> = ends.took();
        let took: Vec<(&str, u64)> = took
            .iter()
            .map(|(name, time)| (name.as_str(), time.as_secs()))
            .collect();
        assert_eq!(
            took,
            [("a", 9), ("b", 3), ("c - should panic", 1), ("d", 4)]
        );
    }
}
