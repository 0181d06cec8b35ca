//! Calls without a reply.

use hashbrown::HashMap;
use std::collections::BTreeSet;
use vere_ports::files::CallId;
use vere_units::Timestamp;

/// Calls without a reply, and when each fails.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    pub(crate) by_call: HashMap<CallId, Timestamp>,
    pub(crate) by_time: BTreeSet<(Timestamp, CallId)>,
}

impl Deadlines {
    pub(crate) fn begin(&mut self, call: CallId, until: Timestamp) {
        self.by_call.insert(call, until);
        self.by_time.insert((until, call));
    }

    /// Returns whether the call was still waiting.
    pub(crate) fn end(&mut self, call: CallId) -> bool {
        let until = self.by_call.remove(&call);
        until.is_some_and(|until| self.by_time.remove(&(until, call)))
    }

    /// Whether a call is still waiting.
    pub(crate) fn is_waiting(&self, call: CallId) -> bool {
        self.by_call.contains_key(&call)
    }

    /// The next end of a wait.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(until, _)| *until)
    }
}
