//! Memory for fetched messages that clients have not read yet, of all sessions together.
//!
//! Small answers get their memory at once. A session that wants more waits for memory in the queue of its account.
//! Accounts take turns, and the sessions of one account hold at most a part of the bound. So no account waits for
//! clients of another account that do not read. A waiting session holds no memory.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tokio::sync::oneshot;
use vere_ports::directory::AccountName;
use vere_telemetry::metrics::Gauge;

/// The bound is divided by this number to get the part of one account's sessions.
const ACCOUNT_DIVISOR: usize = 4;

/// The bound, the memory held, and the waiting sessions.
#[derive(Debug, Default)]
pub(super) struct FetchMemory {
    max: Cell<usize>,
    state: RefCell<State>,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    accounts: HashMap<AccountName, Account>,
    /// Accounts with waiting sessions, in the order of their turns.
    turns: VecDeque<AccountName>,
}

#[derive(Debug, Default)]
struct Account {
    held: usize,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    octets: usize,
    granted: oneshot::Sender<Hold>,
}

impl State {
    /// Whether the account's part has room for `octets` more. An account that holds no memory may exceed its part. In
    /// [`State::all_fits`], a request larger than the bound waits until no session holds memory.
    fn own_fits(&self, account: &AccountName, octets: usize, max: usize) -> bool {
        let own = self.accounts.get(account).map_or(0, |own| own.held);
        own == 0 || own.saturating_add(octets) <= max / ACCOUNT_DIVISOR
    }

    fn all_fits(&self, octets: usize, max: usize) -> bool {
        self.held == 0 || self.held.saturating_add(octets) <= max
    }

    /// Whether a waiting session fits the part of its account, and so has precedence over every new request.
    fn is_awaited(&self, max: usize) -> bool {
        self.turns.iter().any(|account| {
            let first = self.accounts.get(account);
            let first = first.and_then(|own| own.waiting.front());
            first.is_some_and(|first| self.own_fits(account, first.octets, max))
        })
    }
}

impl FetchMemory {
    /// Starts with no memory held and a bound of zero. `gauge` shows the memory held.
    pub(super) fn new(gauge: Gauge) -> Self {
        Self {
            gauge,
            ..Self::default()
        }
    }

    /// Sets the bound: `limits.fetch_memory_max`.
    pub(super) fn set_max(self: &Rc<Self>, max: usize) {
        self.max.set(max);
        self.grant();
    }

    /// Returns the part of a session, without memory at first.
    pub(super) fn hold(self: &Rc<Self>, account: AccountName) -> Hold {
        Hold {
            memory: Rc::clone(self),
            account,
            octets: 0,
        }
    }

    /// Grants free memory to waiting sessions.
    fn grant(self: &Rc<Self>) {
        while let Some((waiter, account)) = self.next() {
            let mut hold = self.hold(account);
            hold.set(waiter.octets);
            // If the session has given up, the memory returns when the hold is dropped.
            drop(waiter.granted.send(hold));
        }
    }

    /// Removes the next session from the queue, if there is room for its request.
    fn next(&self) -> Option<(Waiter, AccountName)> {
        let max = self.max.get();
        let state = &mut *self.state.borrow_mut();
        for at in 0..state.turns.len() {
            let account = state.turns[at].clone();
            let Some(own) = state.accounts.get_mut(&account) else {
                continue;
            };
            while own
                .waiting
                .front()
                .is_some_and(|first| first.granted.is_closed())
            {
                own.waiting.pop_front();
            }
            let Some(octets) = own.waiting.front().map(|first| first.octets) else {
                continue;
            };
            if !state.own_fits(&account, octets, max) {
                continue;
            }
            if !state.all_fits(octets, max) {
                // Smaller requests of other accounts would starve this request for ever.
                return None;
            }
            let own = state.accounts.get_mut(&account)?;
            let waiter = own.waiting.pop_front()?;
            state.turns.remove(at);
            if !own.waiting.is_empty() {
                state.turns.push_back(account.clone());
            }
            return Some((waiter, account));
        }
        let accounts = &mut state.accounts;
        state.turns.retain(|account| {
            accounts
                .get(account)
                .is_some_and(|own| !own.waiting.is_empty())
        });
        accounts.retain(|_, own| own.held > 0 || !own.waiting.is_empty());
        None
    }

    fn wait(&self, account: &AccountName, octets: usize) -> oneshot::Receiver<Hold> {
        let (granted, receiver) = oneshot::channel();
        let state = &mut *self.state.borrow_mut();
        let own = state.accounts.entry(account.clone()).or_default();
        if own.waiting.len().is_power_of_two() {
            // Removes sessions that gave up.
            own.waiting.retain(|waiter| !waiter.granted.is_closed());
        }
        own.waiting.push_back(Waiter { octets, granted });
        if !state.turns.contains(account) {
            state.turns.push_back(account.clone());
        }
        receiver
    }
}

/// Memory held by one session.
#[derive(Debug)]
pub(super) struct Hold {
    memory: Rc<FetchMemory>,
    account: AccountName,
    octets: usize,
}

impl Hold {
    pub(super) const fn octets(&self) -> usize {
        self.octets
    }

    /// Account of the session.
    pub(super) const fn account(&self) -> &AccountName {
        &self.account
    }

    /// Takes `octets` more if there is room and no waiting session has precedence.
    pub(super) fn try_take(&mut self, octets: usize) -> bool {
        let max = self.memory.max.get();
        let state = self.memory.state.borrow();
        let own = state.accounts.get(&self.account);
        let fits = own.is_none_or(|own| own.waiting.is_empty())
            && state.own_fits(&self.account, octets, max)
            && state.all_fits(octets, max)
            && !state.is_awaited(max);
        drop(state);
        if fits {
            self.set(self.octets.saturating_add(octets));
        }
        fits
    }

    /// Returns the session's memory, and waits until `octets` are free.
    pub(super) async fn take(&mut self, octets: usize) {
        self.set(0);
        if self.try_take(octets) {
            return;
        }
        let granted = self.memory.wait(&self.account, octets);
        self.memory.grant();
        if let Ok(granted) = granted.await {
            *self = granted;
        }
    }

    /// Records how much memory the session holds in fact.
    pub(super) fn set(&mut self, octets: usize) {
        let before = std::mem::replace(&mut self.octets, octets);
        if before == octets {
            return;
        }
        let mut state = self.memory.state.borrow_mut();
        state.held = state.held.saturating_sub(before).saturating_add(octets);
        let held = state.held;
        let own = state.accounts.entry(self.account.clone()).or_default();
        own.held = own.held.saturating_sub(before).saturating_add(octets);
        if own.held == 0 && own.waiting.is_empty() {
            state.accounts.remove(&self.account);
        }
        let is_waited_for = !state.turns.is_empty();
        drop(state);
        let held = i64::try_from(held).unwrap_or(i64::MAX);
        self.memory.gauge.set(held);
        if octets < before && is_waited_for {
            self.memory.grant();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn memory(max: usize) -> Rc<FetchMemory> {
        let memory = Rc::new(FetchMemory::default());
        memory.set_max(max);
        memory
    }

    fn hold(memory: &Rc<FetchMemory>, account: &str) -> Hold {
        memory.hold(AccountName::parse(&format!("{account}@demo.test")).unwrap())
    }

    fn is_done(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        future
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn one_account_holds_a_part_and_others_do_not_wait_for_it() {
        let memory = memory(400);
        let mut ann: Vec<Hold> = (0..4).map(|_| hold(&memory, "ann")).collect();
        assert!(ann[0].try_take(60) && !ann[1].try_take(60));
        let (first, rest) = ann.split_at_mut(1);
        let [second, third, _] = rest else { panic!() };
        let (mut second, mut third) = (pin!(second.take(60)), pin!(third.take(30)));
        assert!(!is_done(second.as_mut()) && !is_done(third.as_mut()));
        // Those of the same account wait in line, others do not.
        let mut bob = hold(&memory, "bob");
        assert!(bob.try_take(90));
        first[0].set(0);
        assert!(is_done(second.as_mut()) && is_done(third.as_mut()));
    }

    #[test]
    fn accounts_take_turns_and_nobody_is_passed_by_for_ever() {
        let memory = memory(100);
        let mut all: Vec<Hold> = ["a", "b", "c", "d"].map(|name| hold(&memory, name)).into();
        assert!(all.iter_mut().all(|hold| hold.try_take(25)));
        let (mut large, mut small) = (hold(&memory, "large"), hold(&memory, "small"));
        {
            let (mut large, mut small) = (pin!(large.take(80)), pin!(small.take(5)));
            assert!(!is_done(large.as_mut()) && !is_done(small.as_mut()));
            all.truncate(3);
            // The small request has room, but the large request waited first.
            assert!(!is_done(small.as_mut()) && !hold(&memory, "new").try_take(1));
            all.clear();
            assert!(is_done(large.as_mut()) && is_done(small.as_mut()));
        }
        drop((large, small));
        assert_eq!(memory.state.borrow().held, 0);
        assert!(memory.state.borrow().accounts.is_empty());
    }

    #[test]
    fn who_gave_up_gets_nothing() {
        let memory = memory(100);
        let mut first = hold(&memory, "a");
        assert!(first.try_take(100));
        let mut gone = hold(&memory, "b");
        assert!(!is_done(pin!(gone.take(50))));
        let mut alone = hold(&memory, "c");
        let mut alone = pin!(alone.take(1_000));
        assert!(!is_done(alone.as_mut()));
        drop(first);
        // Larger than everything there is: alone.
        assert!(is_done(alone.as_mut()));
        assert_eq!(memory.state.borrow().held, 1_000);
        assert!(memory.state.borrow().turns.is_empty());
    }
}
