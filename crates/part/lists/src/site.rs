//! The zone of a list: whether it answers, whether it serves maps, and its counts.

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use vere_dnsbl::policy::{Health, Probe};
use vere_handoff::question::ListFigures;
use vere_units::Timestamp;

use super::findings::Outcome;

/// Queries of one list at once: a slow list leaves turns to the others.
const RUNNING_MAX: u32 = 128;

/// The zone of a list.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) zone: Rc<str>,
    /// The name for log and metrics.
    pub(crate) name: Rc<str>,
    pub(crate) probe: Probe,
    health: Health,
    running: u32,
    counts: ListFigures,
    /// Whether the log has a line about answers that no list gives.
    is_suspect: bool,
}

impl Site {
    pub(crate) fn new(zone: &str, name: &str) -> Self {
        Self {
            zone: zone.into(),
            name: name.into(),
            probe: Probe::default(),
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

    /// Takes a query as begun, if the list may be asked; each one ends by [`ended`](Self::ended).
    pub(crate) fn begin(&mut self, now: Timestamp) -> bool {
        let begins = self.running < RUNNING_MAX && self.health.may_ask(now);
        if begins {
            self.running += 1;
            self.counts.queries += 1;
        }
        begins
    }

    /// Whether the list is to be probed for maps now.
    pub(crate) fn is_probe_due(&self, now: Timestamp) -> bool {
        !self.health.is_resting() && self.probe.is_due(now)
    }

    /// Takes a probe as begun, if one is due; it ends as a query does, and by [`Probe::ended`].
    pub(crate) fn begin_probe(&mut self, now: Timestamp) -> bool {
        let begins = self.is_probe_due(now) && self.probe.begin(now);
        if begins {
            self.running += 1;
            self.counts.queries += 1;
        }
        begins
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
            Outcome::Skipped | Outcome::Late => self.counts.skipped += 1,
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
