//! Decides which search runs now, and whether a client still waits for the result. A search occupies a thread that
//! deliveries and logins need as well.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vere_ports::directory::AccountName;
use vere_store::StoreError;

/// Searches of an account that run at once; further searches wait for their turn.
const SEARCHES_MAX: usize = 4;

/// The turns of all accounts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<HashMap<AccountName, Weak<Semaphore>>>>);

/// A turn, until it is dropped.
pub(crate) type Turn = OwnedSemaphorePermit;

impl Turns {
    /// Waits for a turn.
    ///
    /// # Errors
    /// Only if the account's turns were closed.
    pub(crate) async fn next(&self, account: &AccountName) -> Result<Turn, StoreError> {
        let permit = self.of(account).acquire_owned().await;
        permit.map_err(|_| StoreError::Failed("searches have ended".to_owned()))
    }

    fn of(&self, account: &AccountName) -> Arc<Semaphore> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get(account).and_then(Weak::upgrade) {
            return own;
        }
        // Keep only accounts with searches.
        all.retain(|_, turns| turns.strong_count() > 0);
        let own = Arc::new(Semaphore::new(SEARCHES_MAX));
        all.insert(account.clone(), Arc::downgrade(&own));
        own
    }
}

/// Whether a search must end early.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

/// Ends a search when it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Stop);

impl Stop {
    /// Returns the flag of a search that ends when its client stops waiting.
    pub(crate) fn unless_waiting() -> (Self, Waiting) {
        let stop = Self::default();
        (stop.clone(), Waiting(stop))
    }

    /// # Errors
    /// When the search is to end.
    pub(crate) fn go_on(&self) -> Result<(), StoreError> {
        match self.0.load(Relaxed) {
            true => Err(StoreError::Failed(
                "nobody waits for what is found".to_owned(),
            )),
            false => Ok(()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn account(name: &str) -> AccountName {
        AccountName::parse(name).unwrap()
    }

    /// A turn that need not be waited for.
    fn at_once(turns: &Turns, name: &str) -> Turn {
        let account = account(name);
        let turn = pin!(turns.next(&account));
        match turn.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => turn.unwrap(),
            Poll::Pending => panic!("it has to wait"),
        }
    }

    #[test]
    fn an_account_searches_a_few_times_at_once() {
        let turns = Turns::default();
        let mut held: Vec<_> = (0..SEARCHES_MAX)
            .map(|_| at_once(&turns, "ann@demo.test"))
            .collect();
        let ann = account("ann@demo.test");
        let mut next = pin!(turns.next(&ann));
        let mut context = Context::from_waker(Waker::noop());
        assert!(next.as_mut().poll(&mut context).is_pending());
        // Others are not harmed.
        let bob = at_once(&turns, "bob@demo.test");
        assert!(next.as_mut().poll(&mut context).is_pending());
        held.pop();
        assert!(next.as_mut().poll(&mut context).is_ready());
        assert_eq!(turns.0.lock().unwrap().len(), 2);
        // Accounts without searches are forgotten.
        drop((held, bob));
        drop(at_once(&turns, "eve@demo.test"));
        assert_eq!(turns.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn who_does_not_wait_ends_a_search() {
        let (stop, waiting) = Stop::unless_waiting();
        stop.go_on().unwrap();
        drop(waiting);
        stop.go_on().unwrap_err();
    }
}
