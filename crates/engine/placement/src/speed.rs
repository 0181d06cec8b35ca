//! The speed of uploads, over the last seconds.

use std::collections::VecDeque;

use vere_units::Timestamp;

/// Seconds that count.
const SECONDS: u64 = 10;

/// Octets stored, by second.
#[derive(Debug, Default)]
pub struct Speed {
    /// The second, and octets stored within it; at most one entry a second.
    seconds: VecDeque<(u64, u64)>,
}

impl Speed {
    /// Octets are stored now.
    pub fn add(&mut self, now: Timestamp, octets: u64) {
        let second = now.as_millis() / 1_000;
        match self.seconds.back_mut() {
            Some((last, sum)) if *last == second => *sum = sum.saturating_add(octets),
            _ => self.seconds.push_back((second, octets)),
        }
        while self
            .seconds
            .front()
            .is_some_and(|(first, _)| first.saturating_add(SECONDS) < second)
        {
            self.seconds.pop_front();
        }
    }

    /// Octets a second, over the time since the first upload that counts.
    pub fn of(&self, now: Timestamp) -> u64 {
        let second = now.as_millis() / 1_000;
        let recent = self
            .seconds
            .iter()
            .filter(|(at, _)| at.saturating_add(SECONDS) >= second);
        let (mut first, mut sum) = (second, 0_u64);
        for (at, octets) in recent {
            first = first.min(*at);
            sum = sum.saturating_add(*octets);
        }
        let over = second.saturating_sub(first).saturating_add(1);
        sum.checked_div(over).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Speed;
    use vere_units::Timestamp;

    #[test]
    fn old_uploads_do_not_count() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        let mut speed = Speed::default();
        assert_eq!(speed.of(at(5)), 0);
        speed.add(at(5), 100);
        speed.add(at(5), 200);
        assert_eq!(speed.of(at(5)), 300);
        assert_eq!(speed.seconds.len(), 1, "memory is that of seconds");
        speed.add(at(7), 300);
        assert_eq!(speed.of(at(7)), 200);
        assert_eq!(speed.of(at(16)), 30);
        assert_eq!(speed.of(at(18)), 0);
        speed.add(at(30), 1);
        assert_eq!(speed.seconds.len(), 1);
        // Ten seconds old is not old.
        speed.add(at(40), 10);
        assert_eq!(speed.of(at(40)), 1);
        speed.add(at(41), 1);
        assert_eq!(speed.of(at(41)), 11 / 2);
    }
}
