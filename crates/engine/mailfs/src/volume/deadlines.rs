//! Calls that wait: no outage holds a program longer than the volume's time-out. A program that writes more than the servers have taken so far
//! waits as long as they take something: a slow line is no outage.

use super::state::Volume;
use super::step::Step;
use vere_ports::files::{CallId, Errno, Reply};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

impl<S: Storage> Volume<S> {
    /// A call begins to wait.
    pub(super) fn begin_waiting(&mut self, call: CallId) {
        let until = self.now.steady + self.terms.call_timeout;
        self.deadlines.begin(call, until);
    }

    /// Answers a call, unless answered already.
    pub(super) fn reply(&mut self, call: CallId, reply: Result<Reply, Errno>) {
        if self.deadlines.end(call) {
            debug_assert_ne!(reply, Err(Errno::Again), "a page is missing in a call");
            self.steps.push_back(Step::Reply(call, reply));
        }
    }

    /// Fails calls that have waited for too long. What they changed stays in the journal, and is still sent.
    pub(super) fn end_waits(&mut self) {
        while let Some((until, call)) = self.deadlines.by_time.first().copied()
            && until <= self.now.steady
        {
            if let Some(later) = self.later(call) {
                self.deadlines.prolong(call, later);
                continue;
            }
            self.blocked.retain(|(blocked, _, _)| *blocked != call);
            self.reads.give_up(call);
            self.unpark(call);
            self.mirrors.give_up(call);
            self.reply(call, Err(Errno::Io));
        }
        // A call behind one that has failed need not wait.
        self.run_parked();
    }

    /// The servers took a pack or a commit that calls wait for.
    pub(super) fn note_progress(&mut self) {
        self.deadlines.progress = Some(self.now.steady);
    }

    /// The later end of a wait for servers that take changes.
    fn later(&self, call: CallId) -> Option<Timestamp> {
        let later = self.deadlines.progress? + self.terms.call_timeout;
        let is_call = |(waiting, _): &(CallId, Reply)| *waiting == call;
        let is_blocked = || self.blocked.iter().any(|(blocked, _, _)| *blocked == call);
        let wants = || self.commits.wants.iter().flat_map(|want| &want.waiters);
        let flights = || {
            self.commits
                .flights
                .iter()
                .flat_map(|flight| &flight.waiters)
        };
        let waits = is_blocked() || wants().chain(flights()).any(is_call);
        (later > self.now.steady && waits).then_some(later)
    }
}
