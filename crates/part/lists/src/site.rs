//! The zone of a list: whether it answers, whether its entries count, whether it serves maps, and its counts.

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use vere_dnsbl::policy::{Check, Health, Probe, Scope, Trust};
use vere_handoff::question::ListFigures;
use vere_units::Timestamp;

use super::findings::Outcome;

/// Queries of all lists at once, each with a socket, and the most of a single list. Every list has an equal share, which
/// silent lists cannot take away.
const RUNNING_MAX: usize = 512;
const RUNNING_OF_A_LIST: usize = 128;

/// The queries that each of `lists` lists may have at once.
pub(crate) fn share(lists: usize) -> usize {
    (RUNNING_MAX / lists.max(1)).clamp(1, RUNNING_OF_A_LIST)
}

/// The zone of a list.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) zone: Rc<str>,
    /// The name for log and metrics.
    pub(crate) name: Rc<str>,
    pub(crate) probe: Probe,
    scope: Scope,
    /// Wakes questions that wait for a check.
    checked: Rc<Notify>,
    health: Health,
    running: usize,
    counts: ListFigures,
    /// Whether the log has a line about answers that no list gives.
    is_suspect: bool,
}

impl Site {
    pub(crate) fn new(zone: &str, name: &str, scope: Scope) -> Self {
        Self {
            zone: zone.into(),
            name: name.into(),
            probe: Probe::default(),
            scope,
            checked: Rc::default(),
            health: Health::default(),
            running: 0,
            counts: ListFigures::default(),
            is_suspect: false,
        }
    }

    /// The counts, without those of the cache.
    pub(crate) fn figures(&self) -> ListFigures {
        ListFigures {
            name: self.name.to_string(),
            ..self.counts.clone()
        }
    }

    /// Takes a query as begun, if the list may be asked and has fewer than its [`share`] under way; each query ends by
    /// [`ended`](Self::ended).
    pub(crate) fn begin(&mut self, now: Timestamp, share: usize) -> bool {
        let begins = self.running < share && self.health.may_ask(now);
        if begins {
            self.running += 1;
            self.counts.queries += 1;
        }
        begins
    }

    /// Applies another use of the list, of which nothing is known yet.
    pub(crate) fn set_scope(&mut self, scope: Scope) {
        if std::mem::replace(&mut self.scope, scope) != scope {
            self.probe.restart();
        }
    }

    /// Whether the list is to be checked now.
    pub(crate) fn is_check_due(&self, now: Timestamp) -> bool {
        self.probe.is_due(now) && self.health.is_ready(now)
    }

    /// Begins a check, if one is due: each of its questions is a query that begins by [`begin_step`](Self::begin_step), and the check ends
    /// by [`check_ended`](Self::check_ended). After failures the check is the trial.
    pub(crate) fn begin_check(&mut self, now: Timestamp) -> Option<Check> {
        let begins = self.is_check_due(now) && self.health.may_ask(now) && self.probe.begin(now);
        begins.then(|| Check::new(self.scope))
    }

    /// Takes a query of a check as begun.
    pub(crate) const fn begin_step(&mut self) {
        self.running += 1;
        self.counts.queries += 1;
    }

    /// Whether the entries of the list count, and how to wait for a check under way.
    pub(crate) fn trust(&self) -> (Trust, Option<Rc<Notify>>) {
        let is_open = self.probe.is_open();
        (
            self.probe.trust(),
            is_open.then(|| Rc::clone(&self.checked)),
        )
    }

    /// Takes what a check has found out so far. Returns whether the list lists everybody no more, so that its earlier answers are wrong.
    pub(crate) fn learn(&mut self, check: &Check) -> bool {
        if check.scope() != self.scope {
            return false;
        }
        let (before, list) = (self.probe.learn(check), &*self.name);
        match (before, self.probe.trust()) {
            (Trust::Unchecked | Trust::Good, Trust::ListsEverybody) => {
                tracing::warn!(list, "list lists 127.0.0.1, and so everybody: left out");
            }
            (Trust::ListsEverybody, Trust::Good) => {
                tracing::info!(list, "list lists everybody no more, asked again");
            }
            _ => {}
        }
        let after = self.probe.trust();
        if after != Trust::Unchecked {
            self.checked.notify_waiters();
        }
        (before, after) == (Trust::ListsEverybody, Trust::Good)
    }

    /// A check has ended, whose findings [`learn`](Self::learn) has.
    pub(crate) fn check_ended(&mut self, now: Timestamp, check: &Check) {
        let (served, lacked) = (self.probe.serves(), self.probe.lacks_test_entry());
        self.probe.ended(now, check);
        if check.scope() != self.scope {
            self.probe.restart();
        }
        self.checked.notify_waiters();
        let list = &*self.name;
        match (served, self.probe.serves()) {
            (false, true) => tracing::info!(list, "list serves maps"),
            (true, false) => tracing::warn!(list, "list serves maps no more"),
            _ => {}
        }
        if !lacked && self.probe.lacks_test_entry() {
            tracing::warn!(list, "list does not list the test address 127.0.0.2");
        }
        if let Some(code) = check.refusal() {
            self.refused(code);
        }
    }

    /// A query has ended, after so long.
    pub(crate) fn ended(&mut self, now: Timestamp, has_answered: bool, took: Duration) {
        self.running = self.running.saturating_sub(1);
        let list = &*self.name;
        match has_answered {
            true => {
                let millis = took.as_millis();
                let bounds = &ListFigures::WITHIN_MILLIS;
                let place = bounds.iter().position(|bound| millis < u128::from(*bound));
                self.counts.within[place.unwrap_or(bounds.len())] += 1;
                if self.health.succeeded() {
                    tracing::info!(list, "list answers again");
                }
            }
            false => {
                self.counts.failures += 1;
                if self.health.failed(now) {
                    tracing::warn!(list, "list does not answer, asked now and then only");
                }
            }
        }
    }

    /// A question had its answer already.
    pub(crate) const fn hit(&mut self) {
        self.counts.hits += 1;
    }

    /// A question waits for an equal one.
    pub(crate) const fn shared(&mut self) {
        self.counts.shared += 1;
    }

    /// Counts what the list has said about a client.
    pub(crate) const fn note(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Listed { .. } => self.counts.listed += 1,
            Outcome::Skipped | Outcome::Late | Outcome::Unchecked => self.counts.skipped += 1,
            Outcome::ListsEverybody => self.counts.untrusted += 1,
            Outcome::Unlisted { .. } | Outcome::Failed | Outcome::Refused(_) => {}
        }
    }

    /// The list has given an address that is no code.
    pub(crate) fn foreign(&mut self, answer: Ipv4Addr) {
        if !std::mem::replace(&mut self.is_suspect, true) {
            let list = &*self.name;
            tracing::warn!(list, %answer, "answer outside 127.0.0.0/8 ignored");
        }
    }

    /// The list refuses to answer.
    pub(crate) fn refused(&mut self, code: Ipv4Addr) {
        if !std::mem::replace(&mut self.is_suspect, true) {
            let list = &*self.name;
            tracing::warn!(list, %code, "list refuses to answer this resolver");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_lists_leave_the_others_their_share() {
        let shares: Vec<usize> = [0, 1, 4, 5, 32, 1_000].map(share).into();
        assert_eq!(shares, [128, 128, 128, 102, 16, 1]);
        let now = Timestamp::from_millis(0);
        let scope = Scope {
            addresses: true,
            maps: false,
        };
        let mut site = Site::new("bl.example.org", "bl.example.org", scope);
        let begun = (0..32).filter(|_| site.begin(now, share(32))).count();
        assert_eq!(begun, 16);
        site.ended(now, true, Duration::ZERO);
        assert!(site.begin(now, share(32)) && !site.begin(now, share(32)));
    }
}
