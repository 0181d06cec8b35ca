//! Memory for units that peers are sending, shared by all associations.

use std::cell::Cell;
use std::rc::Rc;

/// Octets that all units on their way in may have.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    max: Cell<u64>,
    held: Cell<u64>,
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
    pub(crate) fn share(self: &Rc<Self>) -> Share {
        Share {
            budget: Rc::clone(self),
            octets: 0,
        }
    }
}

/// The octets of a unit; dropped, they are free again.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Rc<Budget>,
    octets: u64,
}

impl Share {
    /// Whether the unit may have so many octets, which count from now on.
    pub(crate) fn grow(&mut self, octets: u64) -> bool {
        let others = self.budget.held.get().saturating_sub(self.octets);
        let held = others.saturating_add(octets);
        // A unit alone may always be as long as units may be.
        if held > self.budget.max.get() && others > 0 {
            return false;
        }
        self.budget.held.set(held);
        self.octets = octets;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let held = self.budget.held.get();
        self.budget.held.set(held.saturating_sub(self.octets));
    }
}
