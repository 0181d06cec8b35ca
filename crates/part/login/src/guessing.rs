//! Who tries too many passwords.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use vere_ports::directory::AccountName;

use strangers::{Account, Strangers};
use vere_process::places::Client;

mod strangers;

/// The wait after the first failure of a client; it doubles with each.
const WAIT_MIN: Duration = Duration::from_millis(250);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(8);
/// After so long without a failure a client begins anew.
const FORGET: Duration = Duration::from_secs(600);
/// So long after a success an account is known to be used from there.
const KNOWN: Duration = Duration::from_secs(24 * 3_600);
/// Clients remembered; beyond it the oldest are forgotten.
const CLIENTS_MAX: usize = 10_000;
/// How many are kept then.
const CLIENTS_KEPT: usize = CLIENTS_MAX / 10 * 9;
/// Accounts tracked per client. Failures at further accounts go into one sum, which only time reduces.
const ACCOUNTS_MAX: usize = 256;
/// Attempts in parallel per client: programs open several connections at once. After a failure, one attempt.
const PARALLEL_MAX: usize = 8;
/// Longest password check: an attempt remains open until then.
pub(super) const PASSWORD_PATIENCE: Duration = Duration::from_secs(60);
/// How long an exchange in several steps may stay without an end before it counts as failed.
pub(super) const EXCHANGE_PATIENCE: Duration = Duration::from_secs(10);

/// Slows down guessing per client: each failure makes the client's next attempt wait longer, and an attempt without
/// outcome delays the client's further attempts. Other clients do not wait. A success forgives failures at its own
/// account only; otherwise the holder of one account could guess at all others. For a day, a success also protects
/// that account at this client from failures at other accounts: behind a shared address, only the user who mistypes
/// waits.
///
/// Guessing at one account from many addresses is slowed as well (`Strangers`): clients unfamiliar to the account
/// wait for each other.
#[derive(Debug, Default, Clone)]
pub struct Throttle(Rc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    clients: RefCell<HashMap<Client, Attempts>>,
    strangers: RefCell<Strangers>,
    /// An attempt has ended.
    ended: Notify,
    last: Cell<u64>,
    /// Of accounts' names hashes are kept, which nobody can choose.
    names: RandomState,
}

#[derive(Debug)]
struct Attempts {
    accounts: Vec<Of>,
    /// Failures at accounts beyond the tracked ones.
    others: u32,
    /// Time of the last failure.
    last: Instant,
    open: Vec<Open>,
}

/// Attempts at one account.
#[derive(Debug)]
struct Of {
    account: Account,
    failures: u32,
    /// Time of the last failure.
    last: Instant,
    /// Time of the last success.
    known: Option<Instant>,
}

/// An attempt without an outcome.
#[derive(Debug)]
struct Open {
    id: u64,
    account: Account,
    /// The account was not used from there of late.
    stranger: bool,
    /// When it counts as failed.
    until: Instant,
}

impl Attempts {
    fn new(now: Instant) -> Self {
        Self {
            accounts: Vec::new(),
            others: 0,
            last: now,
            open: Vec::new(),
        }
    }

    /// What has ended without a word has failed; what failed long ago is forgotten.
    fn look(&mut self, strangers: &mut Strangers, now: Instant) {
        self.forget(now);
        let over = self.open.extract_if(.., |open| open.until <= now);
        for open in over.collect::<Vec<_>>() {
            self.fail(open.account, now);
            if open.stranger {
                strangers.fail(open.account, now);
            }
        }
    }

    /// Whether an account was used from there of late.
    fn knows(&self, account: Account) -> bool {
        let mut accounts = self.accounts.iter();
        accounts.any(|of| of.account == account && of.known.is_some())
    }

    fn forget(&mut self, now: Instant) {
        let all = now.duration_since(self.last) >= FORGET;
        if all {
            self.others = 0;
        }
        self.accounts.retain_mut(|of| {
            if all {
                of.failures = 0;
            }
            of.known = of.known.filter(|at| now.duration_since(*at) < KNOWN);
            of.failures > 0 || of.known.is_some()
        });
    }

    fn fail(&mut self, account: Account, now: Instant) {
        self.forget(now);
        self.last = now;
        if let Some(of) = self.accounts.iter_mut().find(|of| of.account == account) {
            of.failures = of.failures.saturating_add(1);
            of.last = now;
        } else if self.accounts.len() < ACCOUNTS_MAX {
            self.accounts.push(Of {
                account,
                failures: 1,
                last: now,
                known: None,
            });
        } else {
            self.others = self.others.saturating_add(1);
        }
    }

    fn succeed(&mut self, account: Account, now: Instant) {
        let own = self.accounts.iter().position(|of| of.account == account);
        let given_up = (self.accounts.len() >= ACCOUNTS_MAX).then(|| {
            let oldest = self.accounts.iter().enumerate();
            oldest.min_by_key(|(_, of)| of.known).map(|(at, _)| at)
        });
        if let Some(at) = own.or_else(|| given_up.flatten()) {
            let gone = self.accounts.swap_remove(at);
            if gone.account != account {
                self.others = self.others.saturating_add(gone.failures);
            }
        }
        self.accounts.push(Of {
            account,
            failures: 0,
            last: now,
            known: Some(now),
        });
    }

    /// How long the next attempt at an account has to wait, as far as is known now.
    fn wait(&self, account: Account, now: Instant) -> Duration {
        let known = self
            .accounts
            .iter()
            .find(|of| of.account == account && of.known.is_some());
        let (failures, last) =
            known.map_or((self.failures(), self.last), |of| (of.failures, of.last));
        let open = self
            .open
            .iter()
            .filter(|open| known.is_none() || open.account == account);
        let max = if failures == 0 { PARALLEL_MAX } else { 1 };
        if open.clone().count() >= max {
            let first = open.map(|open| open.until).min();
            return first.map_or(WAIT_MAX, |until| until.duration_since(now));
        }
        if failures == 0 {
            return Duration::ZERO;
        }
        let doubled = WAIT_MIN.saturating_mul(1 << (failures - 1).min(16));
        (last + doubled.min(WAIT_MAX)).saturating_duration_since(now)
    }

    fn failures(&self) -> u32 {
        let named = self.accounts.iter().map(|of| of.failures);
        named.fold(self.others, u32::saturating_add)
    }

    /// Whether the entry may be forgotten: no open attempts and no failures. Only protection from failures at other
    /// accounts would be lost.
    fn is_idle(&self) -> bool {
        self.open.is_empty() && self.failures() == 0
    }
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The client knows the account's password.
    Succeeded,
    /// The password is wrong.
    Failed,
    /// The check was impossible.
    Unknown,
}

/// An attempt under way. Dropped without an outcome it has failed.
#[derive(Debug)]
pub struct Attempt {
    throttle: Throttle,
    client: Client,
    account: Account,
    id: u64,
    settled: bool,
}

impl Attempt {
    /// Takes note of its outcome.
    pub fn settle(mut self, outcome: Outcome) {
        self.settled = true;
        self.throttle
            .settle(self.client, self.account, self.id, outcome, Instant::now());
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.settled {
            let now = Instant::now();
            self.throttle
                .settle(self.client, self.account, self.id, Outcome::Failed, now);
        }
    }
}

impl Throttle {
    /// Waits until a client may make its next attempt to log in as `username`, which counts as failed when it
    /// has no outcome for `patience`.
    pub(super) async fn begin(
        &self,
        client: Client,
        username: &str,
        patience: Duration,
    ) -> Attempt {
        let account = self.account(username);
        loop {
            let ended = self.0.ended.notified();
            let now = Instant::now();
            match self.try_begin(client, account, now, now + patience) {
                Ok(id) => {
                    return Attempt {
                        throttle: self.clone(),
                        client,
                        id,
                        account,
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

    /// The account that a name means, in any case.
    fn account(&self, username: &str) -> Account {
        match AccountName::parse(username) {
            Ok(name) => self.0.names.hash_one(name.to_string()),
            Err(_) => self.0.names.hash_one(username),
        }
    }

    /// Begins an attempt, or says how long it has to wait.
    fn try_begin(
        &self,
        client: Client,
        account: Account,
        now: Instant,
        until: Instant,
    ) -> Result<u64, Duration> {
        let mut clients = self.0.clients.borrow_mut();
        let mut strangers = self.0.strangers.borrow_mut();
        if !clients.contains_key(&client) {
            make_room(&mut clients, &mut strangers, now);
        }
        let attempts = clients.entry(client).or_insert_with(|| Attempts::new(now));
        attempts.look(&mut strangers, now);
        let stranger = !attempts.knows(account);
        let wait = attempts.wait(account, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        if stranger {
            strangers.begin(account, now)?;
        }
        let id = self.0.last.get() + 1;
        self.0.last.set(id);
        attempts.open.push(Open {
            id,
            account,
            stranger,
            until,
        });
        Ok(id)
    }

    fn settle(&self, client: Client, account: Account, id: u64, outcome: Outcome, now: Instant) {
        let mut clients = self.0.clients.borrow_mut();
        if let Some(attempts) = clients.get_mut(&client) {
            let at = attempts.open.iter().position(|open| open.id == id);
            // One that took too long has failed already.
            let open = at.map(|at| attempts.open.swap_remove(at));
            match (outcome, open) {
                (Outcome::Succeeded, _) => attempts.succeed(account, now),
                (Outcome::Failed, Some(open)) => {
                    attempts.fail(account, now);
                    if open.stranger {
                        self.0.strangers.borrow_mut().fail(account, now);
                    }
                }
                (Outcome::Failed, None) | (Outcome::Unknown, _) => {}
            }
            if attempts.is_idle() && attempts.accounts.is_empty() {
                clients.remove(&client);
            }
        }
        drop(clients);
        self.0.ended.notify_waiters();
    }
}

/// Forgets clients when there are too many: those without a failure of late, then the oldest, a tenth of all at
/// once, so that who comes from ever new addresses does not have all looked at each time.
fn make_room(clients: &mut HashMap<Client, Attempts>, strangers: &mut Strangers, now: Instant) {
    if clients.len() < CLIENTS_MAX {
        return;
    }
    clients.retain(|_, one| {
        one.look(strangers, now);
        !one.is_idle()
    });
    let Some(over) = clients
        .len()
        .checked_sub(CLIENTS_KEPT)
        .filter(|over| *over > 0)
    else {
        return;
    };
    let mut last: Vec<Instant> = clients.values().map(|one| one.last).collect();
    let (_, &mut newest, _) = last.select_nth_unstable(over - 1);
    let mut left = over;
    clients.retain(|_, one| {
        let goes = left > 0 && one.last <= newest;
        left -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests;
