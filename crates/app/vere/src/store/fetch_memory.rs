//! Memory for messages that clients asked for and have not read, of all sessions together.
//!
//! Small answers take theirs at once. Who wants more waits until there is room, in a line of its account; accounts
//! take turns, and the sessions of one hold a part of the bound, so that nobody waits for another account's clients
//! that do not read. Who waits holds nothing.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tokio::sync::oneshot;
use vere_ports::directory::AccountName;
use vere_telemetry::metrics::Gauge;

/// The sessions of one account hold one part of so many.
const ACCOUNT_DIVISOR: usize = 4;

/// The bound of all, what is held, and who waits.
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
    /// Accounts with sessions that wait, in the order of their turns.
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
    /// Whether there is room for octets more of an account. Whoever holds nothing may have more than its part, and
    /// what is larger than everything waits until it is alone.
    fn own_fits(&self, account: &AccountName, octets: usize, max: usize) -> bool {
        let own = self.accounts.get(account).map_or(0, |own| own.held);
        own == 0 || own.saturating_add(octets) <= max / ACCOUNT_DIVISOR
    }

    fn all_fits(&self, octets: usize, max: usize) -> bool {
        self.held == 0 || self.held.saturating_add(octets) <= max
    }

    /// Whether somebody waits who would be given memory before anybody else.
    fn is_awaited(&self, max: usize) -> bool {
        self.turns.iter().any(|account| {
            let first = self.accounts.get(account);
            let first = first.and_then(|own| own.waiting.front());
            first.is_some_and(|first| self.own_fits(account, first.octets, max))
        })
    }
}

impl FetchMemory {
    /// Nothing is held, and nothing may be. What is held is shown in `gauge`.
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

    /// The part of a session, which holds nothing yet.
    pub(super) fn hold(self: &Rc<Self>, account: AccountName) -> Hold {
        Hold {
            memory: Rc::clone(self),
            account,
            octets: 0,
        }
    }

    /// Gives what is free to those that wait.
    fn grant(self: &Rc<Self>) {
        while let Some((waiter, account)) = self.next() {
            let mut hold = self.hold(account);
            hold.set(waiter.octets);
            // If nobody waits any more it comes back.
            drop(waiter.granted.send(hold));
        }
    }

    /// Takes the one that is next out of the line, if there is room for it.
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
                // Others would take for ever what it waits for.
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
            // Those that gave up.
            own.waiting.retain(|waiter| !waiter.granted.is_closed());
        }
        own.waiting.push_back(Waiter { octets, granted });
        if !state.turns.contains(account) {
            state.turns.push_back(account.clone());
        }
        receiver
    }
}

/// What one session holds.
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

    /// Whose session it is.
    pub(super) const fn account(&self) -> &AccountName {
        &self.account
    }

    /// Takes octets more, if there is room for them and nobody waits for it.
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

    /// Gives back what is held, and waits until there is room for so many octets.
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

    /// Takes note of how much is held in fact.
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
            // There is room for it, but another one was there before.
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
