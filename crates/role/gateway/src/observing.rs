//! Judged messages, as reports about DMARC show messages, until the policies of the authors' domains are known.

mod mapping;

use std::cell::RefCell;

use vere_judging::Names;
use vere_net::resolver::Resolver;
use vere_units::Timestamp;

pub(super) use mapping::Checked;

/// Waiting messages.
const WAITING_MAX: usize = 20_000;

/// Observed messages without a count yet.
#[derive(Debug)]
pub(super) struct Observing {
    resolver: Resolver,
    waiting: RefCell<Vec<(Timestamp, Checked)>>,
}

impl Observing {
    /// Nothing was observed. Policies are looked up by the resolver.
    pub(super) fn new(resolver: Resolver) -> Self {
        Self {
            resolver,
            waiting: RefCell::default(),
        }
    }

    /// The names of the DNS.
    pub(super) fn names(&self) -> Names {
        Names::new(self.resolver.clone())
    }

    /// Adds a message; `false` where too many wait.
    pub(super) fn push(&self, at: Timestamp, checked: Checked) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let has_room = waiting.len() < WAITING_MAX;
        if has_room {
            waiting.push((at, checked));
        }
        has_room
    }

    /// Takes all waiting messages.
    pub(super) fn take(&self) -> Vec<(Timestamp, Checked)> {
        self.waiting.take()
    }
}
