//! Work for a share of the time.

use std::time::Duration;

/// The longest pause between two steps.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Returns the pause after an amount of work, so that work takes its share of the time.
pub(super) fn pause(worked: Duration, share: u32) -> Duration {
    let share = share.clamp(1, 100);
    (worked * (100 - share) / share).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_make_the_share() {
        let worked = Duration::from_millis(10);
        assert_eq!(pause(worked, 20), Duration::from_millis(40));
        assert_eq!(pause(worked, 100), Duration::ZERO);
        assert_eq!(pause(Duration::from_secs(9), 1), PAUSE_MAX);
    }
}
