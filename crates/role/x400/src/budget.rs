//! Memory for units that peers and programs are sending, shared by all associations and all connections of the socket.
//!
//! The length of a unit is known at the end alone, so several new units could use the memory up with no unit complete. Room for the rest of
//! the oldest unit is therefore kept free ([`ledger`]): the oldest unit waits for complete units only, and complete units leave when safe. Units without
//! room are not read meanwhile, so the senders pause. A unit gives way after [`ledger::TURN`] as the oldest while further units wait, so a slow sender blocks no other sender.

mod ledger;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use self::ledger::Ledger;
pub(crate) use self::ledger::{Bounds, Shortage};

/// How long a unit waits for room: less than an association lets its host hold octets (`vere_associations::Bounds::hold`).
const WAIT: Duration = Duration::from_secs(45);
/// How often a waiting unit looks whether a turn is over.
const LOOK: Duration = Duration::from_secs(1);

/// The memory of all units under way to this MTA.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    ledger: RefCell<Ledger>,
    /// Told whenever octets are free again.
    freed: Notify,
}

impl Budget {
    /// Sets the bounds.
    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        self.ledger.borrow_mut().bounds = bounds;
        self.freed.notify_waiters();
    }

    /// The bound of all units.
    pub(crate) fn max(&self) -> u64 {
        self.ledger.borrow().bounds.all
    }

    /// Octets held now.
    pub(crate) fn held(&self) -> u64 {
        self.ledger.borrow().held()
    }

    /// The share of a new unit, of a peer (by name) or of another sender (`gateway:NAME`, `local`).
    pub(crate) fn share(self: &Rc<Self>, peer: &str) -> Share {
        let called = Rc::<Notify>::default();
        let serial = self.ledger.borrow_mut().begin(peer, Rc::clone(&called));
        Share {
            budget: Rc::clone(self),
            serial,
            called,
        }
    }
}

/// The octets of a unit; dropped, they are free again.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Rc<Budget>,
    serial: u64,
    called: Rc<Notify>,
}

impl Share {
    /// Counts so many octets for the unit from now on, if there is room.
    ///
    /// # Errors
    /// The memory that is short.
    pub(crate) fn grow(&self, octets: u64) -> Result<(), Shortage> {
        let mut ledger = self.budget.ledger.borrow_mut();
        match ledger.shortage(self.serial, octets) {
            Some(shortage) => Err(shortage),
            None => {
                ledger.set(self.serial, octets);
                Ok(())
            }
        }
    }

    /// Counts octets in memory, with or without room.
    pub(crate) fn hold(&self, octets: u64) {
        self.budget.ledger.borrow_mut().set(self.serial, octets);
    }

    /// Waits until the unit may have so many octets. `give_way` frees memory of units without a sender at the moment, if there are any.
    /// False: the unit has waited for [`WAIT`] in vain.
    pub(crate) async fn grow_in_turn(
        &self,
        octets: u64,
        give_way: impl Fn(Shortage) -> bool,
    ) -> bool {
        let until = Instant::now() + WAIT;
        let mut waiting = None;
        loop {
            let freed = self.budget.freed.notified();
            let shortage = match self.grow(octets) {
                Ok(()) => return true,
                Err(shortage) if give_way(shortage) => continue,
                Err(shortage) => shortage,
            };
            let now = Instant::now();
            if now >= until {
                return false;
            }
            waiting.get_or_insert_with(|| Waiting::begin(&self.budget));
            let late = self
                .budget
                .ledger
                .borrow_mut()
                .late(self.serial, shortage, now);
            if let Some(late) = late {
                late.notify_one();
            }
            // Late or not, the loop looks again.
            let _ = timeout(LOOK.min(until - now), freed).await;
        }
    }

    /// Notified when the unit has to give way, after too long as the oldest while further units wait.
    pub(crate) fn called(&self) -> Rc<Notify> {
        Rc::clone(&self.called)
    }

    /// No more octets come for now: the octets stay counted, and no room is kept free for the rest of the unit.
    pub(crate) fn rest(&self) {
        self.budget.ledger.borrow_mut().rest(self.serial);
        self.budget.freed.notify_waiters();
    }

    /// Whether the unit is of this peer.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        let ledger = self.budget.ledger.borrow();
        ledger.peer(self.serial) == ledger.peer(other.serial)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.ledger.borrow_mut().end(self.serial);
        self.budget.freed.notify_waiters();
    }
}

/// A unit that waits; turns count while any does.
struct Waiting<'a>(&'a Budget);

impl<'a> Waiting<'a> {
    fn begin(budget: &'a Budget) -> Self {
        budget.ledger.borrow_mut().waiting(1);
        Self(budget)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.ledger.borrow_mut().waiting(-1);
    }
}

#[cfg(test)]
mod tests;
