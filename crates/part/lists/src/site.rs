//! The zone of a list: whether it answers, whether it serves maps, and its counts.

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use vere_dnsbl::policy::{Health, Probe};
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
    health: Health,
    running: usize,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_lists_leave_the_others_their_share() {
        let shares: Vec<usize> = [0, 1, 4, 5, 32, 1_000].map(share).into();
        assert_eq!(shares, [128, 128, 128, 102, 16, 1]);
        let now = Timestamp::from_millis(0);
        let mut site = Site::new("bl.example.org", "bl.example.org");
        let begun = (0..32).filter(|_| site.begin(now, share(32))).count();
        assert_eq!(begun, 16);
        site.ended(now, true, Duration::ZERO);
        assert!(site.begin(now, share(32)) && !site.begin(now, share(32)));
    }
}
