//! Who tries too many passwords.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::role::places::Client;

/// The wait after the first failure of a client; it doubles with each.
const WAIT_MIN: Duration = Duration::from_millis(250);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(8);
/// After so long without a failure a client begins anew.
const FORGET: Duration = Duration::from_secs(600);
/// Clients remembered; beyond it the oldest are forgotten.
const CLIENTS_MAX: usize = 10_000;
/// Attempts of one client at the same time: programs open several connections at once. After a failure there
/// is one.
const PARALLEL_MAX: usize = 8;
/// How long a password takes to be checked, at most: it is not forgotten before.
pub(super) const PASSWORD_PATIENCE: Duration = Duration::from_secs(60);
/// How long an exchange in several steps may stay without an end before it counts as failed.
pub(super) const EXCHANGE_PATIENCE: Duration = Duration::from_secs(10);

/// Slows down guessing by client: each failure makes the next attempt from there wait longer, an attempt
/// whose outcome is open holds back the others, and nobody else waits.
#[derive(Debug, Default, Clone)]
pub(super) struct Throttle(Rc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    clients: RefCell<HashMap<Client, Attempts>>,
    /// An attempt has ended.
    ended: Notify,
    last: std::cell::Cell<u64>,
}

#[derive(Debug)]
struct Attempts {
    failures: u32,
    /// When the last one failed.
    last: Instant,
    /// Those without an outcome, and when they count as failed.
    open: Vec<(u64, Instant)>,
}

impl Attempts {
    /// What has ended without a word has failed; what failed long ago is forgotten.
    fn look(&mut self, now: Instant) {
        let before = self.open.len();
        self.open.retain(|(_, until)| *until > now);
        for _ in self.open.len()..before {
            self.fail(now);
        }
        if now.duration_since(self.last) >= FORGET {
            self.failures = 0;
        }
    }

    fn fail(&mut self, now: Instant) {
        if now.duration_since(self.last) >= FORGET {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.last = now;
    }

    /// How long the next attempt has to wait, as far as is known now.
    fn wait(&self, now: Instant) -> Duration {
        let max = if self.failures == 0 { PARALLEL_MAX } else { 1 };
        if self.open.len() >= max {
            let first = self.open.iter().map(|(_, until)| *until).min();
            return first.map_or(WAIT_MAX, |until| until.duration_since(now));
        }
        if self.failures == 0 {
            return Duration::ZERO;
        }
        let doubled = WAIT_MIN.saturating_mul(1 << (self.failures - 1).min(16));
        (self.last + doubled.min(WAIT_MAX)).saturating_duration_since(now)
    }
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The client is somebody's who knows a password.
    Succeeded,
    Failed,
    /// It could not be found out.
    Unknown,
}

/// An attempt under way. Dropped without an outcome it has failed.
#[derive(Debug)]
pub(super) struct Attempt {
    throttle: Throttle,
    client: Client,
    id: u64,
    settled: bool,
}

impl Attempt {
    /// Takes note of its outcome.
    pub(super) fn settle(mut self, outcome: Outcome) {
        self.settled = true;
        self.throttle
            .settle(self.client, self.id, outcome, Instant::now());
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.settled {
            let now = Instant::now();
            self.throttle
                .settle(self.client, self.id, Outcome::Failed, now);
        }
    }
}

impl Throttle {
    /// Waits until a client may make its next attempt, which counts as failed when it has no outcome for
    /// `patience`.
    pub(super) async fn begin(&self, client: Client, patience: Duration) -> Attempt {
        loop {
            let ended = self.0.ended.notified();
            let now = Instant::now();
            match self.try_begin(client, now, now + patience) {
                Ok(id) => {
                    return Attempt {
                        throttle: self.clone(),
                        client,
                        id,
                        settled: false,
                    };
                }
                Err(wait) => {
                    // Whichever is first; then it is looked at anew.
                    let _ = tokio::time::timeout(wait, ended).await;
                }
            }
        }
    }

    /// Begins an attempt, or says how long it has to wait.
    fn try_begin(&self, client: Client, now: Instant, until: Instant) -> Result<u64, Duration> {
        let mut clients = self.0.clients.borrow_mut();
        if !clients.contains_key(&client) {
            make_room(&mut clients, now);
        }
        let attempts = clients.entry(client).or_insert_with(|| Attempts {
            failures: 0,
            last: now,
            open: Vec::new(),
        });
        attempts.look(now);
        let wait = attempts.wait(now);
        if !wait.is_zero() {
            return Err(wait);
        }
        let id = self.0.last.get() + 1;
        self.0.last.set(id);
        attempts.open.push((id, until));
        Ok(id)
    }

    fn settle(&self, client: Client, id: u64, outcome: Outcome, now: Instant) {
        let mut clients = self.0.clients.borrow_mut();
        if let Some(attempts) = clients.get_mut(&client) {
            let open = attempts.open.len();
            attempts.open.retain(|(own, _)| *own != id);
            // One that took too long has failed already.
            let was_open = attempts.open.len() < open;
            match outcome {
                Outcome::Succeeded => attempts.failures = 0,
                Outcome::Failed if was_open => attempts.fail(now),
                Outcome::Failed | Outcome::Unknown => {}
            }
            if attempts.failures == 0 && attempts.open.is_empty() {
                clients.remove(&client);
            }
        }
        drop(clients);
        self.0.ended.notify_waiters();
    }
}

/// Forgets clients when there are too many: those without a failure of late, then the oldest.
fn make_room(clients: &mut HashMap<Client, Attempts>, now: Instant) {
    if clients.len() >= CLIENTS_MAX {
        clients.retain(|_, one| !one.open.is_empty() || now.duration_since(one.last) < FORGET);
    }
    if clients.len() >= CLIENTS_MAX {
        let oldest = clients.iter().min_by_key(|(_, one)| one.last);
        if let Some(oldest) = oldest.map(|(client, _)| *client) {
            clients.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: [u8; 4]) -> Client {
        Client::at(address.into())
    }

    fn begin(throttle: &Throttle, client: Client, now: Instant) -> Result<u64, Duration> {
        throttle.try_begin(client, now, now + EXCHANGE_PATIENCE)
    }

    #[test]
    fn only_the_guesser_waits() {
        let throttle = Throttle::default();
        let (one, other) = (client([192, 0, 2, 1]), client([192, 0, 2, 2]));
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..8 {
            let id = begin(&throttle, one, now).expect("it has waited");
            throttle.settle(one, id, Outcome::Failed, now);
            let wait = begin(&throttle, one, now).expect_err("it has to wait");
            waits.push(wait);
            now += wait;
        }
        assert_eq!(waits[..2], [WAIT_MIN, WAIT_MIN * 2]);
        assert_eq!(waits[7], WAIT_MAX);
        assert!(begin(&throttle, other, now).is_ok());
        let id = begin(&throttle, one, now).expect("it has waited");
        throttle.settle(one, id, Outcome::Succeeded, now);
        assert!(begin(&throttle, one, now).is_ok());
    }

    #[test]
    fn guesses_at_the_same_time_are_bounded_and_one_after_a_failure() {
        let throttle = Throttle::default();
        let one = client([192, 0, 2, 1]);
        let now = Instant::now();
        let open: Vec<_> = std::iter::from_fn(|| begin(&throttle, one, now).ok()).collect();
        assert_eq!(open.len(), PARALLEL_MAX);
        throttle.settle(one, open[0], Outcome::Failed, now);
        assert!(
            begin(&throttle, one, now + WAIT_MAX).is_err(),
            "seven are open"
        );
        for id in &open[1..] {
            throttle.settle(one, *id, Outcome::Unknown, now);
        }
        assert_eq!(begin(&throttle, one, now), Err(WAIT_MIN));
        let next = now + WAIT_MIN;
        assert!(begin(&throttle, one, next).is_ok());
        assert!(
            begin(&throttle, one, next + WAIT_MAX).is_err(),
            "one is open"
        );
    }

    #[test]
    fn who_leaves_an_exchange_open_has_failed_and_holds_nobody_back_for_long() {
        let throttle = Throttle::default();
        let one = client([192, 0, 2, 1]);
        let now = Instant::now();
        let open: Vec<_> = std::iter::from_fn(|| begin(&throttle, one, now).ok()).collect();
        assert_eq!(begin(&throttle, one, now), Err(EXCHANGE_PATIENCE));
        let later = now + EXCHANGE_PATIENCE;
        assert_eq!(
            begin(&throttle, one, later),
            Err(WAIT_MAX),
            "eight failures"
        );
        throttle.settle(one, open[0], Outcome::Failed, later);
        assert!(begin(&throttle, one, later + WAIT_MAX).is_ok());
        let idle = later + WAIT_MAX + FORGET + EXCHANGE_PATIENCE;
        assert_eq!(begin(&throttle, one, idle), Err(WAIT_MIN), "the last one");
        assert!(begin(&throttle, one, idle + FORGET).is_ok(), "forgotten");
    }

    #[test]
    fn memory_is_bounded() {
        let throttle = Throttle::default();
        let now = Instant::now();
        for number in 0..20_000_u32 {
            let (one, now) = (
                client(number.to_be_bytes()),
                now + Duration::from_micros(number.into()),
            );
            let id = begin(&throttle, one, now).expect("a new client");
            throttle.settle(one, id, Outcome::Failed, now);
        }
        assert_eq!(throttle.0.clients.borrow().len(), CLIENTS_MAX);
    }
}
