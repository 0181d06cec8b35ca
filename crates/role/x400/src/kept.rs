//! Memory of interrupted transfers: the octets wait for a resumption, a bounded number for a bounded time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use vere_associations::{Activity, History};

use crate::budget::{Share, Shortage};

/// Broken transfers with octets in memory, of all peers together.
const TRANSFERS_MAX: usize = 16;
/// How long octets wait for a resumption.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug)]
struct Entry {
    history: Rc<RefCell<History>>,
    activity: Activity,
    share: Share,
    since: Instant,
}

/// Broken transfers, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Kept(RefCell<VecDeque<Entry>>);

impl Kept {
    /// Keeps the octets of an activity in a history. The oldest octets go first; the senders begin anew.
    pub(crate) fn keep(&self, history: &Rc<RefCell<History>>, activity: Activity, share: Share) {
        self.forget_old();
        // Without the name of a session nothing is found again.
        if activity.session.is_none() {
            return;
        }
        share.rest();
        let mut entries = self.0.borrow_mut();
        entries.push_back(Entry {
            history: Rc::clone(history),
            activity,
            share,
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

    /// Gives up the oldest transfer, or the oldest of the same peer, if any: an incoming unit needs the memory.
    pub(crate) fn give_way(&self, coming: &Share, shortage: Shortage) -> bool {
        let mut entries = self.0.borrow_mut();
        let helps = |entry: &Entry| shortage == Shortage::Common || entry.share.is_of(coming);
        let oldest = entries.iter().position(helps);
        let oldest = oldest.and_then(|place| entries.remove(place));
        drop(entries);
        let is_there = oldest.is_some();
        forget(oldest);
        is_there
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use vere_associations::{Known, Partial, Resumption};

    use super::*;
    use crate::budget::{Bounds, Budget};

    fn activity(name: &'static str) -> Activity {
        Activity {
            session: Some(vere_associations::Names::new("mta").next()),
            identifier: Bytes::from_static(name.as_bytes()),
        }
    }

    #[test]
    fn what_has_to_go_is_forgotten_and_what_goes_on_is_not() {
        let (kept, budget) = (Kept::default(), Rc::<Budget>::default());
        budget.set_bounds(Bounds { all: 100, unit: 50 });
        let history = Rc::new(RefCell::new(History::new(8)));
        let (first, second) = (activity("1"), activity("2"));
        for one in [&first, &second] {
            let share = budget.share("peer");
            assert_eq!(share.grow(10), Ok(()));
            history.borrow_mut().broke(one, Partial::default());
            kept.keep(&history, one.clone(), share);
        }
        assert_eq!(budget.held(), 20);
        // The first one goes on under another name.
        kept.release(&first);
        assert_eq!(budget.held(), 10);
        let (other, own) = (budget.share("other"), budget.share("peer"));
        assert!(!kept.give_way(&other, Shortage::Own));
        assert!(kept.give_way(&own, Shortage::Own) && !kept.give_way(&own, Shortage::Common));
        assert_eq!(budget.held(), 0);
        let ask = |old: &Activity| {
            let asked = Resumption {
                old: old.clone(),
                new: activity("3"),
                checkpoint: 1,
            };
            history.borrow_mut().resumed(&asked)
        };
        history.borrow_mut().received(&first);
        assert!(matches!(ask(&first), Known::Received));
        assert!(matches!(ask(&second), Known::Unknown));
    }
}
