//! Judged messages, as reports about DMARC show messages, until the policies of the authors' domains are known.

mod mapping;

use std::cell::RefCell;

use vere_units::Timestamp;

pub use mapping::Checked;

/// Waiting messages.
const WAITING_MAX: usize = 20_000;

/// Observed messages without a count yet.
#[derive(Debug, Default)]
pub struct Observing {
    waiting: RefCell<Vec<(Timestamp, Checked)>>,
}

impl Observing {
    /// Adds a message; `false` where too many wait.
    pub fn push(&self, at: Timestamp, checked: Checked) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let has_room = waiting.len() < WAITING_MAX;
        if has_room {
            waiting.push((at, checked));
        }
        has_room
    }

    /// Takes all waiting messages.
    pub fn take(&self) -> Vec<(Timestamp, Checked)> {
        self.waiting.take()
    }
}
