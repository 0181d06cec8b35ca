//! Calls that wait: no outage holds a program longer than the volume's time-out.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use vere_ports::files::{CallId, Errno, Reply};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::Volume;
use super::step::Step;

/// Calls without a reply, and when each fails.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_call: HashMap<CallId, Timestamp>,
    by_time: BTreeSet<(Timestamp, CallId)>,
}

impl Deadlines {
    fn begin(&mut self, call: CallId, until: Timestamp) {
        self.by_call.insert(call, until);
        self.by_time.insert((until, call));
    }

    /// Returns whether the call was still waiting.
    fn end(&mut self, call: CallId) -> bool {
        let until = self.by_call.remove(&call);
        until.is_some_and(|until| self.by_time.remove(&(until, call)))
    }

    /// Whether a call is still waiting.
    pub(super) fn is_waiting(&self, call: CallId) -> bool {
        self.by_call.contains_key(&call)
    }

    /// The next end of a wait.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(until, _)| *until)
    }
}

impl<S: Storage> Volume<S> {
    /// A call begins to wait.
    pub(super) fn begin_waiting(&mut self, call: CallId) {
        let until = self.now.steady + self.terms.call_timeout;
        self.deadlines.begin(call, until);
    }

    /// Answers a call, unless answered already.
    pub(super) fn reply(&mut self, call: CallId, reply: Result<Reply, Errno>) {
        if self.deadlines.end(call) {
            self.steps.push_back(Step::Reply(call, reply));
        }
    }

    /// Fails calls that have waited for too long. What they changed stays in the journal, and is still sent.
    pub(super) fn end_waits(&mut self) {
        while let Some((until, call)) = self.deadlines.by_time.first().copied()
            && until <= self.now.steady
        {
            self.blocked.retain(|(blocked, _, _)| *blocked != call);
            self.reads.give_up(call);
            self.reply(call, Err(Errno::Io));
        }
    }
}
