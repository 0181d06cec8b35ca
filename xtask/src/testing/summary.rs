//! What test binaries report.

use std::fmt;
use std::time::Duration;

/// Lines that a panic has at most.
const PANIC_LINES: usize = 6;
/// Lines of all panics.
const PANICS_LINES_MAX: usize = 200;
/// Tests and binaries whose times are told.
const SLOWEST: usize = 20;

/// Tests that passed or failed, and what failed tests said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// Panics, to be said once more at the end.
    panics: Vec<String>,
    /// Lines that still belong to the last panic.
    more: usize,
    /// Test binaries that failed, with their ends.
    failures: Vec<String>,
    /// Tests and whole binaries, with their times.
    times: Vec<(Duration, String)>,
}

impl Summary {
    /// Reads a line of the output of a test binary.
    pub(super) fn add(&mut self, name: &str, line: &str) {
        // Such as `thread 'a::b' (12) panicked at src/c.rs:3:4:`, and what follows.
        if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.more = PANIC_LINES;
        }
        if self.more > 0 && self.panics.len() < PANICS_LINES_MAX {
            self.more -= 1;
            self.panics.push(format!("{name}: {line}"));
        }
        self.add_result(line);
    }

    /// Reads a line such as `test result: ok. 4 passed; 0 failed; 1 ignored; ...`.
    fn add_result(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else {
            return;
        };
        let words: Vec<&str> = rest
            .split([' ', ';'])
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            let [number, what] = pair else { continue };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match *what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Records a test binary that failed.
    pub(super) fn fail(&mut self, failure: String) {
        self.failures.push(failure);
    }

    /// Records how long a test or a binary took.
    pub(super) fn took(&mut self, name: String, time: Duration) {
        self.times.push((time, name));
    }

    /// Adds the summary of another binary; panics of passed tests are left out.
    pub(super) fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        if !other.failures.is_empty() {
            self.panics.extend(other.panics);
        }
        self.failures.extend(other.failures);
        self.times.extend(other.times);
    }

    /// Why the tests as a whole failed, if they did.
    pub(super) fn failure(&self) -> Option<String> {
        match (self.failures.as_slice(), self.passed) {
            ([], 0) => Some("no test ran".to_owned()),
            ([], _) => None,
            (failures, _) => Some(failures.join("; ")),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.panics {
            writeln!(f, "{line}")?;
        }
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by(|one, other| other.cmp(one));
        for (time, name) in times.into_iter().take(SLOWEST) {
            writeln!(f, "{:>6.1} s  {name}", time.as_secs_f32())?;
        }
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.ignored
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed() {
        let mut summary = Summary::default();
        summary.add("a it", "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s");
        let mut other = Summary::default();
        other.add(
            "b it",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        other.fail("b it: exit status: 101".to_owned());
        summary.add("a it", "test a::b ... ok");
        summary.merge(other);
        assert_eq!(summary.to_string(), "6 passed, 3 failed, 1 skipped");
        assert_eq!(summary.failure().unwrap(), "b it: exit status: 101");
        assert_eq!(Summary::default().failure().unwrap(), "no test ran");
    }

    #[test]
    fn the_slowest_are_told_first() {
        let mut summary = Summary::default();
        for number in 1..=30 {
            summary.took(format!("t{number}"), Duration::from_secs(number));
        }
        let said = summary.to_string();
        assert!(said.starts_with("  30.0 s  t30\n  29.0 s  t29\n"), "{said}");
        assert_eq!(said.lines().count(), SLOWEST + 1);
    }

    #[test]
    fn panics_are_kept_with_the_lines_that_follow() {
        let mut summary = Summary::default();
        summary.add("c it", "test a::b ... FAILED");
        summary.add("c it", "thread 'a::b' (12) panicked at src/c.rs:3:4:");
        (1..20).for_each(|number| summary.add("c it", &format!("line {number}")));
        summary.add("c it", "thread 'main' is idle");
        let last = summary.panics.last().map(String::as_str);
        assert_eq!(
            (summary.panics.len(), last),
            (PANIC_LINES, Some("c it: line 5"))
        );
    }
}
