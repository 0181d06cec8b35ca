//! Speeds of accounts: round trip and octets a second, for each direction, measured by requests of the mount.
//!
//! A request's time includes the wait behind other requests of the account: a busy account counts as a slow one.

use std::collections::BTreeMap;
use std::time::Duration;

use vere_ports::mail_accounts::Request;
use vere_units::Timestamp;

/// The newest measurement counts for a quarter.
const WEIGHT: u64 = 4;
/// Octets up to which a request measures the round trip, and above which the rate.
const SHORT: u64 = 16 << 10;
/// A measurement older than this does not count: the account is tried again.
const OLD: Duration = Duration::from_secs(60);
/// Picoseconds.
const MILLISECOND: u64 = 1_000_000_000;
/// Octets of a typical request: a chunk.
const TYPICAL: u64 = 512 << 10;

/// Whether octets go to an account or come from the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To an account.
    Up,
    /// From an account.
    Down,
}

/// A request under way: when it began, and its octets.
#[derive(Debug, Clone, Copy)]
pub struct Began {
    /// When the request began.
    pub at: Timestamp,
    /// The octets of its mail.
    pub octets: u64,
}

impl Began {
    /// A request that begins now.
    pub fn of(request: &Request, at: Timestamp) -> Self {
        let octets = match request {
            Request::Append { mail, .. } => mail.len() as u64,
            _ => 0,
        };
        Self { at, octets }
    }
}

/// The measurements of all accounts.
#[derive(Debug, Default)]
pub struct Rates {
    by_account: BTreeMap<(u16, Direction), Rate>,
}

/// The measurements of an account in one direction; 0 is none.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    round_trip_ms: u64,
    /// Picoseconds for an octet: a mean of times follows a loss of speed sooner than a mean of rates.
    per_octet: u64,
    measured: Timestamp,
}

impl Rates {
    /// A request with so many octets of content took this time.
    pub fn measured(
        &mut self,
        (account, direction): (u16, Direction),
        octets: u64,
        took: Duration,
        now: Timestamp,
    ) {
        let rate = self.by_account.entry((account, direction)).or_default();
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        if octets <= SHORT {
            rate.round_trip_ms = mean(rate.round_trip_ms, took);
        } else {
            // At least a quarter of the time is that of the octets: the round trip was measured at another moment.
            let moving = took.saturating_sub(rate.round_trip_ms).max(took / 4).max(1);
            let per_octet = moving.saturating_mul(MILLISECOND).checked_div(octets);
            rate.per_octet = mean(rate.per_octet, per_octet.unwrap_or(0).max(1));
        }
        rate.measured = now;
    }

    /// The time of a chunk; absent for an account without a fresh measurement: worth a try.
    pub fn expected(&self, account: u16, direction: Direction, now: Timestamp) -> Option<Duration> {
        let rate = self.by_account.get(&(account, direction))?;
        if rate.measured + OLD < now || rate.per_octet == 0 {
            return None;
        }
        let moving = TYPICAL.saturating_mul(rate.per_octet).div_ceil(MILLISECOND);
        Some(Duration::from_millis(
            rate.round_trip_ms.saturating_add(moving),
        ))
    }

    /// Octets a second of an account, as last measured.
    pub fn octets_per_second(&self, account: u16, direction: Direction) -> Option<u64> {
        let rate = self.by_account.get(&(account, direction))?;
        MILLISECOND
            .saturating_mul(1_000)
            .checked_div(rate.per_octet)
    }
}

/// The mean with a new value; the first value counts whole.
const fn mean(before: u64, new: u64) -> u64 {
    if before == 0 {
        return new;
    }
    let rest = before.saturating_mul(WEIGHT.saturating_sub(1));
    rest.saturating_add(new) / WEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_account_is_expected_to_be_faster() {
        let at = |ms| Timestamp::from_millis(ms);
        let ms = Duration::from_millis;
        let mut rates = Rates::default();
        assert_eq!(rates.expected(1, Direction::Up, at(0)), None);
        for (account, took) in [(1, 100), (2, 400)] {
            rates.measured((account, Direction::Up), 100, ms(20), at(0));
            assert_eq!(rates.expected(account, Direction::Up, at(0)), None);
            rates.measured((account, Direction::Up), 512 << 10, ms(took), at(10));
        }
        let expected = |account| rates.expected(account, Direction::Up, at(10));
        assert_eq!(expected(1), Some(ms(100)));
        assert_eq!(expected(2), Some(ms(400)));
        assert_eq!(rates.expected(1, Direction::Down, at(10)), None);
        // Old news are none.
        assert_eq!(rates.expected(1, Direction::Up, at(61_000)), None);
        let speed = rates.octets_per_second(1, Direction::Up).unwrap();
        assert!(speed.abs_diff((512 << 10) * 1_000 / 80) < 100, "{speed}");
    }

    #[test]
    fn a_change_of_speed_is_noticed() {
        let now = Timestamp::from_millis(0);
        let mut rates = Rates::default();
        let mut measure = |took| {
            let took = Duration::from_millis(took);
            rates.measured((1, Direction::Down), 1 << 20, took, now);
            rates.octets_per_second(1, Direction::Down).unwrap()
        };
        let fast = measure(100);
        let mut speed = fast;
        for _ in 0..12 {
            let next = measure(1_000);
            assert!(next < speed);
            speed = next;
        }
        assert!(speed < fast / 8, "{speed}");
    }
}
