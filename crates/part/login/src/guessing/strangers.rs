//! Who guesses at one account from many addresses.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Failures at an account that slow nobody: people mistype, and a device tries its old password from wherever it is.
const FREE: u32 = 16;
/// The wait between two attempts behind these; it doubles with each failure.
const GAP_MIN: Duration = Duration::from_millis(250);
/// The longest one: some 21,600 guesses a day at one account, however many addresses make them. An honest stranger
/// waits for as many gaps as there are guessers before it, not for a lock to end.
const GAP_MAX: Duration = Duration::from_secs(4);
/// Failures that are counted: those that make the longest gap.
const FAILURES_MAX: u32 = FREE + 5;
/// After so long one failure is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);
/// Accounts remembered; beyond it those with the fewest failures are forgotten, so that failures at many other names
/// do not make anybody forget the account that is guessed at.
const ACCOUNTS_MAX: usize = 10_000;
/// How many are kept then.
const ACCOUNTS_KEPT: usize = ACCOUNTS_MAX / 10 * 9;

/// The hash of an account's name.
pub(super) type Account = u64;

/// The failures at each account of clients that it was not used from of late.
///
/// A bound by address alone lets a thousand addresses guess a thousand times as fast. Attempts of strangers
/// at one account follow each other with a gap once many of them failed. Clients from which the account was used
/// within a day neither wait for them nor are counted: nobody can shut out whose devices are where they always are.
#[derive(Debug, Default)]
pub(super) struct Strangers(HashMap<Account, Failures>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    /// When the last one was counted or forgiven.
    since: Instant,
    /// When the next attempt may begin.
    next: Instant,
}

impl Failures {
    /// Forgives what has to be forgiven by now.
    fn look(&mut self, now: Instant) {
        while self.count > 0 && now.duration_since(self.since) >= FORGIVEN_AFTER {
            self.count -= 1;
            self.since += FORGIVEN_AFTER;
        }
    }

    fn gap(&self) -> Duration {
        match self.count.checked_sub(FREE) {
            None | Some(0) => Duration::ZERO,
            Some(over) => GAP_MIN.saturating_mul(1 << (over - 1).min(8)).min(GAP_MAX),
        }
    }
}

impl Strangers {
    /// Begins an attempt of a stranger, or says how long it has to wait; the next one has to keep its distance.
    pub(super) fn begin(&mut self, account: Account, now: Instant) -> Result<(), Duration> {
        let Some(failures) = self.0.get_mut(&account) else {
            return Ok(());
        };
        failures.look(now);
        let gap = failures.gap();
        if gap.is_zero() {
            return Ok(());
        }
        let wait = failures.next.saturating_duration_since(now);
        if !wait.is_zero() {
            return Err(wait);
        }
        failures.next = now + gap;
        Ok(())
    }

    /// Counts a failed attempt of a stranger.
    pub(super) fn fail(&mut self, account: Account, now: Instant) {
        if self.0.len() >= ACCOUNTS_MAX && !self.0.contains_key(&account) {
            self.make_room(now);
        }
        let failures = self.0.entry(account).or_insert(Failures {
            count: 0,
            since: now,
            next: now,
        });
        failures.look(now);
        failures.count = (failures.count + 1).min(FAILURES_MAX);
        failures.since = now;
        failures.next = failures.next.max(now + failures.gap());
    }

    fn make_room(&mut self, now: Instant) {
        self.0.retain(|_, failures| {
            failures.look(now);
            failures.count > 0
        });
        let Some(over) = self.0.len().checked_sub(ACCOUNTS_KEPT).filter(|n| *n > 0) else {
            return;
        };
        let rank = |failures: &Failures| (failures.count, failures.since);
        let mut ranks: Vec<_> = self.0.values().map(rank).collect();
        let (_, &mut last, _) = ranks.select_nth_unstable(over - 1);
        let mut left = over;
        self.0.retain(|_, failures| {
            let goes = left > 0 && rank(failures) <= last;
            left -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_at_one_account_keep_their_distance_whoever_makes_them() {
        let mut strangers = Strangers::default();
        let begun = Instant::now();
        let mut now = begun;
        let mut guesses = 0;
        while now < begun + Duration::from_secs(24 * 3_600) {
            match strangers.begin(1, now) {
                Ok(()) => {
                    guesses += 1;
                    strangers.fail(1, now);
                }
                Err(wait) => now += wait,
            }
        }
        let most = 24 * 3_600 / GAP_MAX.as_secs() + u64::from(FAILURES_MAX);
        assert!(guesses <= most, "{guesses} in a day");
        assert!(guesses > most - 20, "{guesses}: it is a gap, not a lock");
        // Another account is not held back.
        assert_eq!(strangers.begin(2, now), Ok(()));
    }

    #[test]
    fn a_few_failures_slow_nobody_and_time_forgives() {
        let mut strangers = Strangers::default();
        let mut now = Instant::now();
        for _ in 0..FREE {
            assert_eq!(strangers.begin(1, now), Ok(()));
            strangers.fail(1, now);
        }
        assert_eq!(strangers.begin(1, now), Ok(()));
        strangers.fail(1, now);
        assert_eq!(strangers.begin(1, now), Err(GAP_MIN));
        now += GAP_MIN;
        assert_eq!(strangers.begin(1, now), Ok(()), "once");
        assert_eq!(strangers.begin(1, now), Err(GAP_MIN), "each by itself");
        now += FORGIVEN_AFTER;
        assert_eq!(strangers.begin(1, now), Ok(()));
        assert_eq!(strangers.begin(1, now), Ok(()), "one was forgiven");
    }

    #[test]
    fn failures_at_other_names_do_not_make_it_forget_whom_they_guess_at() {
        let mut strangers = Strangers::default();
        let now = Instant::now();
        for _ in 0..FAILURES_MAX {
            strangers.fail(1, now);
        }
        for other in 2..50_000 {
            strangers.fail(other, now);
            assert!(strangers.0.len() <= ACCOUNTS_MAX);
        }
        assert_eq!(strangers.begin(1, now), Err(GAP_MAX));
    }
}
