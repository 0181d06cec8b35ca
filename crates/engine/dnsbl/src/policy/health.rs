//! Whether a list answers: a silent list is asked only now and then.

use std::time::Duration;

use vere_units::Timestamp;

/// Failures in a row from which a list rests.
const FAILURES_MAX: u32 = 5;
/// The first rest; each further rest is twice as long.
const REST_MIN: Duration = Duration::from_secs(1);
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(60);

/// The state of a list. After 5 failures in a row the list rests; then a single query is the trial, while other questions still leave the
/// list out. A failed trial means a rest twice as long, up to a minute.
#[derive(Debug, Clone, Default)]
pub struct Health {
    failures: u32,
    rest: Option<Rest>,
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    until: Timestamp,
    length: Duration,
    /// Whether the trial is under way.
    is_tried: bool,
}

impl Health {
    /// Whether the list may be asked now. Each admitted query has to end by [`succeeded`](Self::succeeded) or
    /// [`failed`](Self::failed).
    pub fn may_ask(&mut self, now: Timestamp) -> bool {
        let is_ready = self.is_ready(now);
        if is_ready && let Some(rest) = &mut self.rest {
            rest.is_tried = true;
        }
        is_ready
    }

    /// Whether [`may_ask`](Self::may_ask) would admit a query now.
    #[must_use]
    pub fn is_ready(&self, now: Timestamp) -> bool {
        self.rest
            .is_none_or(|rest| !rest.is_tried && now >= rest.until)
    }

    /// The list has answered. Returns whether this ends a rest.
    pub fn succeeded(&mut self) -> bool {
        self.failures = 0;
        self.rest.take().is_some()
    }

    /// The list has not answered. Returns whether a rest begins with this failure, the first of its kind.
    pub fn failed(&mut self, now: Timestamp) -> bool {
        self.failures = self.failures.saturating_add(1);
        let length = match self.rest {
            // Queries from before the rest end late, and say nothing new.
            Some(rest) if !rest.is_tried => return false,
            Some(rest) => (rest.length * 2).min(REST_MAX),
            None if self.failures < FAILURES_MAX => return false,
            None => REST_MIN,
        };
        let begins = self.rest.is_none();
        self.rest = Some(Rest {
            until: now + length,
            length,
            is_tried: false,
        });
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_dead_list_is_asked_now_and_then() {
        let mut health = Health::default();
        for _ in 1..FAILURES_MAX {
            assert!(health.may_ask(at(0)));
            assert!(!health.failed(at(0)));
        }
        assert!(health.failed(at(0)), "the rest begins");
        let mut asked = Vec::new();
        for second in 0..600 {
            if health.may_ask(at(second)) {
                assert!(!health.may_ask(at(second)), "one trial");
                asked.push(second);
                assert!(!health.failed(at(second)), "one line in the log");
            }
        }
        assert_eq!(asked[..6], [1, 3, 7, 15, 31, 63]);
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= 60));
        assert!(asked.len() < 20, "{asked:?}");
    }

    #[test]
    fn an_answer_ends_rest_and_count() {
        let mut health = Health::default();
        for _ in 0..10 {
            for _ in 1..FAILURES_MAX {
                assert!(!health.failed(at(0)));
            }
            assert!(!health.succeeded());
        }
        for _ in 0..FAILURES_MAX {
            health.failed(at(0));
        }
        assert!(!health.is_ready(at(0)) && health.is_ready(at(1)));
        assert!(!health.failed(at(0)), "of a query before the rest");
        assert!(health.may_ask(at(1)));
        assert!(health.succeeded(), "the rest ends");
        assert!(health.may_ask(at(1)) && health.may_ask(at(1)));
    }
}
