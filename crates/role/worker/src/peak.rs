//! Memory of a worker behind a peak.

/// Octets from which on a peak matters: above one long message.
const PEAK_MIN: usize = 64 << 20;
/// The part of the peak below which the peak is over.
const OVER_DIVISOR: usize = 8;
/// Octets of a session beside its message.
const SESSION: usize = 16 << 10;

/// The most memory needed at once by the sessions of a worker.
///
/// The allocator returns freed pages only while further pages are freed, or when a thread ends, and a worker cannot start threads: only the end of
/// the process returns all pages.
#[derive(Debug, Default)]
pub(crate) struct Peak(usize);

impl Peak {
    /// Notes the present need of the sessions, and says whether a peak is over.
    pub(crate) fn is_over(&mut self, sessions: u32, messages: usize) -> bool {
        let sessions = usize::try_from(sessions).unwrap_or(usize::MAX);
        let now = sessions.saturating_mul(SESSION).saturating_add(messages);
        self.0 = self.0.max(now);
        self.0 >= PEAK_MIN && now < self.0 / OVER_DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_peak_that_is_high_and_over_counts() {
        let mut low = Peak::default();
        assert!(!low.is_over(28, PEAK_MIN / 2));
        assert!(!low.is_over(0, 0));
        let mut high = Peak::default();
        assert!(!high.is_over(28, PEAK_MIN));
        assert!(!high.is_over(28, PEAK_MIN / 2));
        assert!(high.is_over(1, 0));
        let mut crowded = Peak::default();
        assert!(!crowded.is_over(10_000, 0));
        assert!(crowded.is_over(28, 0));
    }
}
