//! Connections before the bind. Strangers can hold such connections, so a separate bound applies. Beyond the bound, the oldest connection of the
//! address with most connections is closed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::rc::Rc;

use tokio::sync::Notify;

/// The part of `x400.connections_max` for connections without a bind.
const SHARE: usize = 4;
/// Connections without a bind, at least.
const LEAST: usize = 16;

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    close: Rc<Notify>,
}

/// Connections without a bind, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    next: Cell<u64>,
    entries: RefCell<BTreeMap<u64, Entry>>,
}

/// A connection without a bind, as long as the value lives.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    waiting: &'a Waiting,
    number: u64,
    close: Rc<Notify>,
}

impl Waiting {
    /// Adds a connection, and closes another if there are too many. `connections_max`: the bound of all connections.
    pub(crate) fn enter(&self, address: IpAddr, connections_max: usize) -> Place<'_> {
        let quarter = connections_max / SHARE;
        // Whoever binds finds a place, however few connections the settings allow.
        let most = quarter.max(LEAST.min(connections_max / 2)).max(1);
        if self.entries.borrow().len() >= most {
            self.close_one();
        }
        let (number, close) = (self.next.get(), Rc::<Notify>::default());
        self.next.set(number + 1);
        let entry = Entry {
            address,
            close: Rc::clone(&close),
        };
        self.entries.borrow_mut().insert(number, entry);
        Place {
            waiting: self,
            number,
            close,
        }
    }

    fn close_one(&self) {
        let mut entries = self.entries.borrow_mut();
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for entry in entries.values() {
            *counts.entry(entry.address).or_insert(0) += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        let oldest = entries
            .iter()
            .find(|(_, entry)| counts.get(&entry.address) == Some(&most));
        let oldest = oldest.map(|(number, _)| *number);
        if let Some(entry) = oldest.and_then(|number| entries.remove(&number)) {
            entry.close.notify_one();
        }
    }
}

impl Place<'_> {
    /// Waits until the connection has to give its place up.
    pub(crate) async fn lost(&self) {
        self.close.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.entries.borrow_mut().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Connections of which [`LEAST`] may be without a bind.
    const MOST: usize = 2 * LEAST;

    fn is_lost(place: &Place<'_>) -> bool {
        place.lost().now_or_never().is_some()
    }

    #[test]
    fn who_holds_most_loses_the_oldest() {
        let waiting = Waiting::default();
        let [honest, greedy]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let first = waiting.enter(honest, MOST);
        let others: Vec<_> = (1..LEAST).map(|_| waiting.enter(greedy, MOST)).collect();
        let late = waiting.enter(honest, MOST);
        assert!(is_lost(&others[0]));
        assert!(!is_lost(&first) && !is_lost(&late) && !is_lost(&others[1]));
        drop((first, late, others));
        assert!(waiting.entries.borrow().is_empty());
    }
}
