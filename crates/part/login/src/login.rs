//! Verifies logins by password or SCRAM keys, for every protocol with passwords.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vere_directory::{Directory, Login};
use vere_ports::directory::{Account, AccountName, StoreError};
use vere_sasl::server::{PasswordAttempt, PasswordOutcome, ScramLookup};

use super::guessing::{Attempt, EXCHANGE_PATIENCE, Outcome, PASSWORD_PATIENCE, Throttle};
use vere_process::places::Client;

/// Passwords checked in parallel, at most, and never more than there are cores: each check takes 19 MiB and a core.
const CHECKS_MAX: usize = 8;
/// Passwords waiting for a check; further attempts get a temporary failure at once. At some 50 ms a password, the
/// last attempt in the queue waits for a few seconds.
const WAITING_MAX: usize = 256;

/// Fingerprint of an account's credentials. A session whose fingerprint no longer matches was opened with an old
/// password and loses its rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Print(u64);

impl Print {
    fn of(account: &Account) -> Self {
        let mut hasher = DefaultHasher::new();
        if let Some(credentials) = &account.credentials {
            credentials.password_hash.expose().hash(&mut hasher);
            credentials.scram_sha_256.expose().hash(&mut hasher);
        }
        Self(hasher.finish())
    }

    /// Returns the fingerprint for the account that a client names, if the account exists.
    pub fn of_user(directory: &Directory, username: &str) -> Option<Self> {
        let account = AccountName::parse(username).ok()?;
        Self::look_up(directory, &account).ok()?
    }

    /// Returns the present fingerprint of an account; `None` for an unknown account.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn look_up(
        directory: &Directory,
        account: &AccountName,
    ) -> Result<Option<Self>, StoreError> {
        let found = directory.store().account(account)?;
        Ok(found.as_ref().map(Self::of))
    }

    /// A fingerprint of this value.
    pub const fn new(print: u64) -> Self {
        Self(print)
    }
}

/// Logins of all sessions in one process. Guessing is slowed per client, and a limited number of passwords is checked
/// in parallel, in order of arrival.
#[derive(Debug, Clone)]
pub struct Logins {
    throttle: Throttle,
    turns: Turns,
}

impl Default for Logins {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            throttle: Throttle::default(),
            turns: Turns::new(cores.min(CHECKS_MAX), WAITING_MAX),
        }
    }
}

impl Logins {
    /// Checks a password, on another thread.
    pub async fn password(
        &self,
        client: Client,
        directory: Directory,
        attempt: PasswordAttempt,
    ) -> PasswordOutcome {
        let begun = self
            .throttle
            .begin(client, &attempt.authcid, PASSWORD_PATIENCE);
        let begun = begun.await;
        let checked = self.check(directory, attempt).await;
        begun.settle(match checked {
            PasswordOutcome::Accepted { .. } => Outcome::Succeeded,
            PasswordOutcome::Rejected => Outcome::Failed,
            PasswordOutcome::Unavailable => Outcome::Unknown,
        });
        checked
    }

    /// Begins an exchange in several steps. It has failed unless it is settled otherwise.
    pub async fn exchange(&self, client: Client, username: &str) -> Attempt {
        self.throttle
            .begin(client, username, EXCHANGE_PATIENCE)
            .await
    }

    async fn check(&self, directory: Directory, attempt: PasswordAttempt) -> PasswordOutcome {
        if !acts_as_itself(&attempt) {
            return PasswordOutcome::Rejected;
        }
        let Some(turn) = self.turns.next().await else {
            tracing::warn!("too many passwords wait to be checked");
            return PasswordOutcome::Unavailable;
        };
        // Argon2id takes tens of milliseconds on purpose: not on the thread that serves everybody.
        let checked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            directory.verify_password(&attempt.authcid, &attempt.password)
        });
        match checked.await {
            Ok(Ok(Login::Accepted(account))) => PasswordOutcome::Accepted {
                account: account.to_string(),
            },
            Ok(Ok(Login::Rejected)) => PasswordOutcome::Rejected,
            Ok(Err(error)) => {
                tracing::error!(%error, "password cannot be checked");
                PasswordOutcome::Unavailable
            }
            Err(_) => PasswordOutcome::Unavailable,
        }
    }
}

/// Limits concurrent password checks (`turns`) and the attempts in total, waiting ones included (`places`).
#[derive(Debug, Clone)]
struct Turns {
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Turns {
    fn new(turns: usize, waiting: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(turns)),
            places: Arc::new(Semaphore::new(turns + waiting)),
        }
    }

    /// Waits for a turn, behind those who came before; `None` when too many wait already.
    async fn next(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        Some((turn, place))
    }
}

/// Whether nobody else is meant (RFC 4616 section 2): no authorization identity is given, an empty one, or one
/// that names the same account as the authentication identity does.
fn acts_as_itself(attempt: &PasswordAttempt) -> bool {
    let Some(other) = attempt.authzid.as_deref().filter(|other| !other.is_empty()) else {
        return true;
    };
    let name = |text: &str| AccountName::parse(text).ok();
    other == attempt.authcid
        || name(other).is_some_and(|other| Some(other) == name(&attempt.authcid))
}

/// Finds the keys of a user.
pub fn scram_keys(directory: &Directory, username: &str) -> ScramLookup {
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
    use vere_sasl::Mechanism;
    use vere_units::Secret;

    use super::*;

    #[tokio::test]
    async fn so_many_compute_so_many_wait_in_order_and_more_are_told_to_come_back() {
        let turns = Turns::new(2, 3);
        let first = turns.next().await.expect("a turn");
        let _second = turns.next().await.expect("a turn");
        let mut waiting: Vec<_> = (0..3)
            .map(|_| {
                Box::pin({
                    let turns = turns.clone();
                    async move { turns.next().await }
                })
            })
            .collect();
        for one in &mut waiting {
            assert!(futures_now(one.as_mut()).is_none(), "both turns are taken");
        }
        assert!(turns.next().await.is_none(), "three wait already");
        drop(first);
        assert!(futures_now(waiting[2].as_mut()).is_none(), "it came last");
        let next = futures_now(waiting[0].as_mut()).expect("it came first");
        assert!(next.is_some());
        // Who goes away while waiting leaves its place to another.
        drop(waiting.pop());
        let mut late = Box::pin(turns.next());
        assert!(futures_now(late.as_mut()).is_none(), "it may wait");
    }

    /// What a future gives if it is ready.
    fn futures_now<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn who_is_named_is_who_logs_in_in_any_case_of_letters_or_nobody() {
        let acts = |authzid: Option<&str>| {
            acts_as_itself(&PasswordAttempt {
                mechanism: Mechanism::Plain,
                authzid: authzid.map(str::to_owned),
                authcid: "Ann@example.org".to_owned(),
                password: Secret::new("x".to_owned()),
            })
        };
        for same in [
            None,
            Some(""),
            Some("Ann@example.org"),
            Some("ann@EXAMPLE.org"),
        ] {
            assert!(acts(same), "{same:?}");
        }
        for other in ["bob@example.org", "ann", "ann@example.org ", "@"] {
            assert!(!acts(Some(other)), "{other}");
        }
    }

    #[test]
    fn what_is_no_account_name_is_the_same_only_to_the_letter() {
        let attempt = |authzid: &str| PasswordAttempt {
            mechanism: Mechanism::Plain,
            authzid: Some(authzid.to_owned()),
            authcid: "no address".to_owned(),
            password: Secret::new("x".to_owned()),
        };
        assert!(acts_as_itself(&attempt("no address")));
        assert!(!acts_as_itself(&attempt("No Address")));
    }
}
