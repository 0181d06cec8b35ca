//! Calls without a reply.

use hashbrown::HashMap;
use std::collections::BTreeSet;
use vere_ports::files::CallId;
use vere_units::Timestamp;

/// Calls without a reply, and when each fails.
#[derive(Debug, Default)]
pub struct Deadlines {
    /// When the wait of each call ends.
    pub by_call: HashMap<CallId, Timestamp>,
    /// Waits in the order of their ends.
    pub by_time: BTreeSet<(Timestamp, CallId)>,
    /// When the servers last took something that calls wait for.
    pub progress: Option<Timestamp>,
}

impl Deadlines {
    /// A call waits until a time.
    pub fn begin(&mut self, call: CallId, until: Timestamp) {
        self.by_call.insert(call, until);
        self.by_time.insert((until, call));
    }

    /// Returns whether the call was still waiting.
    pub fn end(&mut self, call: CallId) -> bool {
        let until = self.by_call.remove(&call);
        until.is_some_and(|until| self.by_time.remove(&(until, call)))
    }

    /// A call waits longer.
    pub fn prolong(&mut self, call: CallId, until: Timestamp) {
        if self.end(call) {
            self.begin(call, until);
        }
    }

    /// Whether a call is still waiting.
    pub fn is_waiting(&self, call: CallId) -> bool {
        self.by_call.contains_key(&call)
    }

    /// The next end of a wait.
    pub fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(until, _)| *until)
    }
}
