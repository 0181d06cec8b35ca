//! Budgets of octets a day: which kinds of requests an account has no octets for, and until when.

use std::collections::BTreeMap;
use std::time::Duration;

use vere_ports::mail_accounts::{Fault, Urgency};
use vere_units::Timestamp;

/// What an account has no octets for. An account keeps more octets for more urgent requests, so octets that are
/// lacking for a request are lacking for every less urgent one.
#[derive(Debug, Default)]
pub(super) struct Scarcity {
    by: BTreeMap<Urgency, (Timestamp, String)>,
}

impl Scarcity {
    /// Requests of this urgency have to wait. Returns whether that is news.
    pub(super) fn lacks(
        &mut self,
        urgency: Urgency,
        reason: String,
        (now, wait): (Timestamp, Duration),
    ) -> bool {
        self.by.retain(|_, (until, _)| *until > now);
        let is_new = self.by.is_empty();
        self.by.insert(urgency, (now + wait, reason));
        is_new
    }

    /// Whether a request of this urgency can be sent.
    pub(super) fn admits(&self, urgency: Urgency, now: Timestamp) -> bool {
        let mut by = self.by.range(..=urgency);
        by.all(|(_, (until, _))| *until <= now)
    }

    /// When requests may be tried again.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let untils = self.by.values().map(|(until, _)| *until);
        untils.filter(|until| *until > now).min()
    }

    /// Why the most urgent of the requests wait, and for how long.
    pub(super) fn shown(&self, now: Timestamp) -> Option<(String, Duration)> {
        let mut waits = self.by.values().filter(|(until, _)| *until > now);
        let (until, reason) = waits.next()?;
        Some((reason.clone(), until.saturating_since(now)))
    }
}

/// Whether a later request may meet no fault.
#[must_use]
pub const fn comes_back(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Unreachable(_) | Fault::Throttled(..) | Fault::Scarce(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_urgent_requests_wait_too() {
        let mut scarcity = Scarcity::default();
        let now = Timestamp::from_millis(1_000);
        let hour = Duration::from_secs(3_600);
        assert!(scarcity.lacks(Urgency::Background, "no room".to_owned(), (now, hour)));
        assert!(!scarcity.lacks(Urgency::Idle, "no room".to_owned(), (now, hour * 2)));
        for (urgency, admitted) in [
            (Urgency::Commit, true),
            (Urgency::Synced, true),
            (Urgency::Background, false),
            (Urgency::Idle, false),
        ] {
            assert_eq!(scarcity.admits(urgency, now), admitted, "{urgency:?}");
        }
        assert_eq!(scarcity.next(now), Some(now + hour));
        assert_eq!(scarcity.shown(now), Some(("no room".to_owned(), hour)));
        let later = now + hour;
        assert!(scarcity.admits(Urgency::Background, later));
        assert!(!scarcity.admits(Urgency::Idle, later));
        assert!(scarcity.admits(Urgency::Idle, later + hour));
    }
}
