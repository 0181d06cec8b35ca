//! Memory for units that peers are sending, shared by all associations. One peer has half of it at most, so that another always
//! finds room.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// The memory of all units that peers are sending.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    max: Cell<u64>,
    held: Cell<u64>,
    peers: RefCell<HashMap<String, u64>>,
}

impl Budget {
    /// Sets the bound.
    pub(crate) fn set_max(&self, octets: u64) {
        self.max.set(octets);
    }

    /// The bound.
    pub(crate) fn max(&self) -> u64 {
        self.max.get()
    }

    /// Octets held now.
    pub(crate) fn held(&self) -> u64 {
        self.held.get()
    }

    /// The share of a unit that begins.
    pub(crate) fn share(self: &Rc<Self>, peer: &str) -> Share {
        Share {
            budget: Rc::clone(self),
            peer: peer.to_owned(),
            octets: 0,
        }
    }

    /// Counts a unit anew.
    fn count(&self, peer: &str, before: u64, after: u64) {
        let held = self.held.get().saturating_sub(before);
        self.held.set(held.saturating_add(after));
        let mut peers = self.peers.borrow_mut();
        let own = peers.entry(peer.to_owned()).or_insert(0);
        *own = own.saturating_sub(before).saturating_add(after);
        if *own == 0 {
            peers.remove(peer);
        }
    }
}

/// The octets of a unit; dropped, they are free again.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Rc<Budget>,
    peer: String,
    octets: u64,
}

impl Share {
    /// Whether the unit may have so many octets, which count from now on.
    pub(crate) fn grow(&mut self, octets: u64) -> bool {
        let budget = &self.budget;
        let peers = budget.peers.borrow().get(&self.peer).copied();
        let own = peers.unwrap_or(0).saturating_sub(self.octets);
        if self.lacks_common_room(octets) || !fits(own, octets, budget.max.get() / 2) {
            return false;
        }
        budget.count(&self.peer, self.octets, octets);
        self.octets = octets;
        true
    }
}

impl Share {
    /// Whether the units of all peers together leave no room for so many octets.
    pub(crate) fn lacks_common_room(&self, octets: u64) -> bool {
        let others = self.budget.held.get().saturating_sub(self.octets);
        !fits(others, octets, self.budget.max.get())
    }
}

/// A unit alone may be as long as units may be.
const fn fits(others: u64, octets: u64, max: u64) -> bool {
    others == 0 || others.saturating_add(octets) <= max
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.count(&self.peer, self.octets, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_has_half_and_a_unit_alone_has_all() {
        let budget = Rc::<Budget>::default();
        budget.set_max(100);
        let mut alone = budget.share("a");
        assert!(alone.grow(500));
        assert_eq!(budget.held(), 500);
        drop(alone);
        assert_eq!(budget.held(), 0);
        let (mut first, mut second, mut other) =
            (budget.share("a"), budget.share("a"), budget.share("b"));
        assert!(first.grow(30) && second.grow(20));
        assert!(!second.grow(21), "more than half");
        assert!(other.grow(50));
        assert!(!other.grow(51), "more than all");
        assert_eq!(budget.held(), 100);
        drop(first);
        assert!(second.grow(50));
        drop((second, other));
        assert_eq!((budget.held(), budget.peers.borrow().len()), (0, 0));
    }
}
