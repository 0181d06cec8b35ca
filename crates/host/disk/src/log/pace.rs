//! How long syncs take of late.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Each sync reduces the weight of an earlier slow sync by an eighth ...
const FORGOTTEN: u64 = 8;
/// ... and a sync counts as at most this multiple of the longest tolerable wait: after the hang of a disk,
/// some thirty fast syncs prove the disk fast again.
const REMEMBERED_MAX: u64 = 64;

/// The expected time of a sync.
#[derive(Debug)]
pub(super) struct Pace {
    /// The longest tolerable wait of a thread with other work, in nanoseconds.
    max: u64,
    /// The expected time of a sync, in nanoseconds. No other value depends on the expected time, so relaxed
    /// ordering suffices.
    expected: AtomicU64,
}

impl Pace {
    /// Without measurements the worst time is expected.
    pub(super) fn new(max: Duration) -> Self {
        let max = nanoseconds(max);
        Self {
            max,
            expected: AtomicU64::new(max.saturating_mul(REMEMBERED_MAX)),
        }
    }

    /// Whether a sync may be waited for.
    pub(super) fn is_brisk(&self) -> bool {
        self.max > 0 && self.expected.load(Ordering::Relaxed) <= self.max
    }

    /// Syncs, and records the time taken.
    pub(super) fn time(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let begun = Instant::now();
        let result = sync();
        self.took(begun.elapsed());
        result
    }

    fn took(&self, time: Duration) {
        let before = self.expected.load(Ordering::Relaxed);
        let remembered = before - before / FORGOTTEN;
        let longest = self.max.saturating_mul(REMEMBERED_MAX);
        let now = nanoseconds(time).max(remembered).min(longest);
        self.expected.store(now, Ordering::Relaxed);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(2);

    /// Number of such syncs until a sync is expected to be fast.
    fn until_brisk(pace: &Pace, time: Duration) -> usize {
        let noted = std::iter::repeat_with(|| pace.took(time));
        noted.take_while(|()| !pace.is_brisk()).take(1_000).count()
    }

    #[test]
    fn brisk_syncs_are_waited_for_once_there_were_some_and_long_ones_are_not() {
        let pace = Pace::new(MAX);
        assert!(!pace.is_brisk(), "nothing is known");
        let brisk = Duration::from_micros(100);
        let first = until_brisk(&pace, brisk);
        assert!((20..60).contains(&first), "{first}");
        pace.took(Duration::from_millis(3));
        assert!(!pace.is_brisk());
        assert!(until_brisk(&pace, brisk) < 10);
        // However long the hang was, the expectation is as at the beginning.
        pace.took(Duration::from_secs(3_600));
        assert!(until_brisk(&pace, brisk) <= first);
        assert_eq!(until_brisk(&pace, Duration::from_millis(3)), 1_000);
    }

    #[test]
    fn with_no_time_nothing_is_waited_for() {
        let pace = Pace::new(Duration::ZERO);
        assert_eq!(until_brisk(&pace, Duration::ZERO), 1_000);
    }
}
