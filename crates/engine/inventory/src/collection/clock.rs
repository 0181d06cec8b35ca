//! The time of a volume. Clocks of machines may be wrong by years, in either direction: a clock that is ahead must not end what
//! is kept for a while, and a clock that is behind must not keep garbage for ever.
//!
//! So the age of garbage is told by the time of the volume. Each collection adds the time since the last one, by its own clock,
//! but at most [`STEP_MAX`] and at least nothing; a mount that made the last collection itself adds what its steady clock says.

use std::time::Duration;

use vere_units::Timestamp;

use crate::rows::UpkeepRow;

/// What a collection adds at most on the word of a clock. Collections come once a day.
pub const STEP_MAX: Duration = Duration::from_secs(25 * 3_600);

/// The last collection of this mount: by the steady clock, and as the row has its time.
pub type LastRun = (Timestamp, i64);

/// The time of the volume now, in milliseconds; wall clock and steady clock are the machine's.
pub fn volume_time(
    row: Option<&UpkeepRow>,
    last: Option<LastRun>,
    wall: i64,
    steady: Timestamp,
) -> i64 {
    let Some(row) = row.filter(|row| row.collected_ms != 0) else {
        return wall.max(1);
    };
    let most = i64::try_from(STEP_MAX.as_millis()).unwrap_or(i64::MAX);
    let told = wall.saturating_sub(row.collected_ms).clamp(0, most);
    let lived = last.filter(|(_, collected)| *collected == row.collected_ms);
    let lived = lived.map_or(0, |(since, _)| {
        let lived = steady.saturating_since(since);
        i64::try_from(lived.as_millis()).unwrap_or(i64::MAX)
    });
    row.volume_ms.saturating_add(told.max(lived))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn row(volume_ms: i64, collected_ms: i64) -> UpkeepRow {
        UpkeepRow {
            volume_ms,
            collected_ms,
            ..UpkeepRow::default()
        }
    }

    #[test]
    fn a_wrong_clock_moves_the_time_by_a_day_at_most() {
        let zero = Timestamp::ZERO;
        let at = |wall| volume_time(Some(&row(1_000 * HOUR, 1_000 * HOUR)), None, wall, zero);
        assert_eq!(at(1_024 * HOUR), 1_024 * HOUR);
        assert_eq!(at(99_000 * HOUR), 1_025 * HOUR);
        assert_eq!(at(-5 * HOUR), 1_000 * HOUR);
        assert_eq!(volume_time(None, None, 7, zero), 7);
        // After a clock that was years ahead, a right one goes on from its own time.
        let back = row(1_025 * HOUR, 99_000 * HOUR);
        assert_eq!(
            volume_time(Some(&back), None, 1_050 * HOUR, zero),
            1_025 * HOUR
        );
        let next = row(1_025 * HOUR, 1_050 * HOUR);
        assert_eq!(
            volume_time(Some(&next), None, 1_074 * HOUR, zero),
            1_049 * HOUR
        );
    }

    #[test]
    fn a_mount_that_lives_on_counts_its_own_days() {
        let row = row(0, 1);
        let steady = Timestamp::from_millis(200 * 3_600_000);
        let last = Some((Timestamp::ZERO, 1));
        assert_eq!(volume_time(Some(&row), last, 2, steady), 200 * HOUR);
        let other = Some((Timestamp::ZERO, 5));
        assert_eq!(volume_time(Some(&row), other, 1 + HOUR, steady), HOUR);
    }
}
