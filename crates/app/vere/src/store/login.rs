//! Passwords, and who tries too many of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vere_directory::{Directory, Login};
use vere_imap::server::{LoginOutcome, ScramLookup};
use vere_sasl::server::PasswordAttempt;

use crate::role::places::Client;

/// The wait after the first failure of a client; it doubles with each.
const WAIT_MIN: Duration = Duration::from_millis(250);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(8);
/// After so long without a failure a client begins anew.
const FORGET: Duration = Duration::from_secs(600);
/// Clients remembered; beyond it the oldest are forgotten.
const CLIENTS_MAX: usize = 10_000;

/// Slows down guessing by client: each failure makes the next attempt from there wait longer, and
/// nobody else.
#[derive(Debug, Default, Clone)]
pub(super) struct Throttle(Rc<RefCell<HashMap<Client, Failures>>>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Throttle {
    /// How long the next attempt from a client has to wait.
    pub(super) fn wait(&self, client: Client, now: Instant) -> Duration {
        match self.0.borrow().get(&client) {
            Some(failures) if now.duration_since(failures.last) < FORGET => {
                let doubled =
                    WAIT_MIN.saturating_mul(1 << failures.count.saturating_sub(1).min(16));
                doubled.min(WAIT_MAX)
            }
            _ => Duration::ZERO,
        }
    }

    /// Takes note of a failure.
    pub(super) fn failed(&self, client: Client, now: Instant) {
        let mut all = self.0.borrow_mut();
        if all.len() >= CLIENTS_MAX {
            all.retain(|_, failures| now.duration_since(failures.last) < FORGET);
        }
        if all.len() >= CLIENTS_MAX {
            let oldest = all.iter().min_by_key(|(_, failures)| failures.last);
            if let Some(oldest) = oldest.map(|(client, _)| *client) {
                all.remove(&oldest);
            }
        }
        let failures = all.entry(client).or_insert(Failures {
            count: 0,
            last: now,
        });
        if now.duration_since(failures.last) >= FORGET {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
    }

    /// Takes note of a success: the client is somebody's who knows a password.
    pub(super) fn succeeded(&self, client: Client) {
        self.0.borrow_mut().remove(&client);
    }
}

/// Checks a password.
pub(super) async fn password(directory: &Arc<Directory>, attempt: PasswordAttempt) -> LoginOutcome {
    let other = attempt
        .authzid
        .as_ref()
        .is_some_and(|authzid| !authzid.eq_ignore_ascii_case(&attempt.authcid));
    if other {
        return LoginOutcome::Rejected;
    }
    let directory = Arc::clone(directory);
    // Argon2id takes tens of milliseconds on purpose: not on the thread that serves everybody.
    let checked = tokio::task::spawn_blocking(move || {
        directory.verify_password(&attempt.authcid, &attempt.password)
    });
    match checked.await {
        Ok(Ok(Login::Accepted(account))) => LoginOutcome::Accepted {
            account: account.to_string(),
        },
        Ok(Ok(Login::Rejected)) => LoginOutcome::Rejected,
        Ok(Err(error)) => {
            tracing::error!(%error, "password cannot be checked");
            LoginOutcome::Unavailable
        }
        Err(_) => LoginOutcome::Unavailable,
    }
}

/// Finds the keys of a user.
pub(super) fn scram_keys(directory: &Directory, username: &str) -> ScramLookup {
    match directory.scram_keys(username) {
        Ok(Some((account, keys))) => ScramLookup::Found {
            account: account.to_string(),
            keys,
        },
        Ok(None) => ScramLookup::Unknown,
        Err(error) => {
            tracing::error!(%error, "keys cannot be looked up");
            ScramLookup::Unavailable
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: [u8; 4]) -> Client {
        Client::at(address.into())
    }

    #[test]
    fn only_the_guesser_waits() {
        let throttle = Throttle::default();
        let (one, other) = (client([192, 0, 2, 1]), client([192, 0, 2, 2]));
        let now = Instant::now();
        let waits: Vec<Duration> = (0..8)
            .map(|_| {
                throttle.failed(one, now);
                throttle.wait(one, now)
            })
            .collect();
        assert_eq!(waits[0], WAIT_MIN);
        assert_eq!(waits[1], WAIT_MIN * 2);
        assert_eq!(waits[7], WAIT_MAX);
        assert_eq!(throttle.wait(other, now), Duration::ZERO);
        assert_eq!(throttle.wait(one, now + FORGET), Duration::ZERO);
        throttle.succeeded(one);
        assert_eq!(throttle.wait(one, now), Duration::ZERO);
    }

    #[test]
    fn memory_is_bounded() {
        let throttle = Throttle::default();
        let now = Instant::now();
        for number in 0..20_000_u32 {
            throttle.failed(
                client(number.to_be_bytes()),
                now + Duration::from_micros(number.into()),
            );
        }
        assert_eq!(throttle.0.borrow().len(), CLIENTS_MAX);
    }
}
