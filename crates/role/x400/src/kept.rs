//! Memory of transfers that broke off: their octets wait for a resumption, a bounded number for a bounded time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use vere_associations::{Activity, History};

use crate::budget::Share;

/// Broken transfers with octets in memory, of all peers together.
const TRANSFERS_MAX: usize = 16;
/// How long octets wait for a resumption.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug)]
struct Entry {
    history: Rc<RefCell<History>>,
    activity: Activity,
    _share: Share,
    since: Instant,
}

/// Broken transfers, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Kept(RefCell<VecDeque<Entry>>);

impl Kept {
    /// Keeps the octets that a history has of an activity. The oldest go first; their senders begin anew.
    pub(crate) fn keep(&self, history: &Rc<RefCell<History>>, activity: Activity, share: Share) {
        self.forget_old();
        let mut entries = self.0.borrow_mut();
        entries.push_back(Entry {
            history: Rc::clone(history),
            activity,
            _share: share,
            since: Instant::now(),
        });
        while entries.len() > TRANSFERS_MAX {
            forget(entries.pop_front());
        }
    }

    /// Gives the memory of an activity back, which a transfer counts again from now on.
    pub(crate) fn release(&self, activity: &Activity) {
        self.forget_old();
        self.0
            .borrow_mut()
            .retain(|entry| entry.activity != *activity);
    }

    fn forget_old(&self) {
        let mut entries = self.0.borrow_mut();
        while entries
            .front()
            .is_some_and(|entry| entry.since.elapsed() > PATIENCE)
        {
            forget(entries.pop_front());
        }
    }
}

fn forget(entry: Option<Entry>) {
    if let Some(entry) = entry {
        entry.history.borrow_mut().forget(&entry.activity);
    }
}
