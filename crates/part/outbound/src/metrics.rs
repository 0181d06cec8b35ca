//! Figures of connections to next hops.

use std::cell::RefCell;
use std::rc::Rc;

use vere_telemetry::metrics::{
    ConnectionResult, Counter, Family, Handshake, HandshakeResult, Metrics, PolicyOutcome,
    PolicyResult, TlsPolicy, TlsSide,
};

use crate::seen::Sessions;

/// Counters of connections to next hops; a default one counts for nobody.
#[derive(Debug, Clone, Default)]
pub struct OutboundMetrics {
    begun: Family<ConnectionResult, Counter>,
    handshakes: Family<Handshake, Counter>,
    policies: Family<PolicyOutcome, Counter>,
    /// What reports about TLS will say.
    pub sessions: Sessions,
    /// Increases for another process.
    told: Option<Rc<RefCell<[u32; Count::ALL.len()]>>>,
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// The begin of a connection, by its result.
    Begun(ConnectionResult),
    /// The end of a TLS handshake.
    Handshake(HandshakeResult),
    /// A connection that kept its policy of encryption, or failed to.
    Policy(TlsPolicy, PolicyResult),
}

impl Count {
    /// All counters. The place in the list is the number by which a process tells another.
    pub const ALL: [Self; 23] = [
        Self::Begun(ConnectionResult::Open),
        Self::Begun(ConnectionResult::Unreachable),
        Self::Begun(ConnectionResult::Tls),
        Self::Begun(ConnectionResult::Refused),
        Self::Handshake(HandshakeResult::Done),
        Self::Handshake(HandshakeResult::Unverified),
        Self::Handshake(HandshakeResult::Failed),
        Self::Policy(TlsPolicy::Off, PolicyResult::Kept),
        Self::Policy(TlsPolicy::Off, PolicyResult::Failed),
        Self::Policy(TlsPolicy::Opportunistic, PolicyResult::Kept),
        Self::Policy(TlsPolicy::Opportunistic, PolicyResult::Failed),
        Self::Policy(TlsPolicy::Required, PolicyResult::Kept),
        Self::Policy(TlsPolicy::Required, PolicyResult::Failed),
        Self::Policy(TlsPolicy::Dane, PolicyResult::Kept),
        Self::Policy(TlsPolicy::Dane, PolicyResult::Failed),
        Self::Policy(TlsPolicy::DaneUnusable, PolicyResult::Kept),
        Self::Policy(TlsPolicy::DaneUnusable, PolicyResult::Failed),
        Self::Policy(TlsPolicy::RequireTls, PolicyResult::Kept),
        Self::Policy(TlsPolicy::RequireTls, PolicyResult::Failed),
        Self::Policy(TlsPolicy::StsEnforce, PolicyResult::Kept),
        Self::Policy(TlsPolicy::StsEnforce, PolicyResult::Failed),
        Self::Policy(TlsPolicy::StsTesting, PolicyResult::Kept),
        Self::Policy(TlsPolicy::StsTesting, PolicyResult::Failed),
    ];
}

impl OutboundMetrics {
    /// The counters among all figures of a process.
    pub fn of(all: &Metrics) -> Self {
        Self {
            begun: all.delivery.connections_begun.clone(),
            handshakes: all.tls.handshakes.clone(),
            policies: all.tls.policies.clone(),
            sessions: Sessions::default(),
            told: None,
        }
    }

    /// Counters of a process whose figures another process shows.
    pub fn for_another() -> Self {
        Self {
            told: Some(Rc::default()),
            ..Self::default()
        }
    }

    /// Takes the increases since the last call, by the numbers of [`Count::ALL`], for [`OutboundMetrics::add`].
    pub fn take(&self) -> Vec<(u8, u32)> {
        let Some(told) = &self.told else {
            return Vec::new();
        };
        let counted = std::mem::take(&mut *told.borrow_mut());
        (0..).zip(counted).filter(|(_, times)| *times > 0).collect()
    }

    /// Adds the increases of another process. Numbers of a newer program are left out.
    pub fn add(&self, increases: &[(u8, u32)]) {
        for (number, times) in increases {
            if let Some(count) = Count::ALL.get(usize::from(*number)) {
                self.count(*count, *times);
            }
        }
    }

    /// Counts a connection that was begun, by its result.
    pub(crate) fn connection_begun(&self, result: ConnectionResult) {
        self.count(Count::Begun(result), 1);
    }

    /// Counts a TLS handshake with a next hop that has ended.
    pub(crate) fn handshake(&self, result: HandshakeResult) {
        self.count(Count::Handshake(result), 1);
    }

    /// Counts a connection that kept its policy of encryption, or failed to.
    pub(crate) fn policy(&self, policy: TlsPolicy, kept: bool) {
        let result = match kept {
            true => PolicyResult::Kept,
            false => PolicyResult::Failed,
        };
        self.count(Count::Policy(policy, result), 1);
    }

    fn count(&self, what: Count, times: u32) {
        if let Some(told) = &self.told {
            let mut told = told.borrow_mut();
            let places = Count::ALL.iter().zip(told.iter_mut());
            let place = places.filter(|(count, _)| **count == what);
            place.for_each(|(_, place)| *place = place.saturating_add(times));
            return;
        }
        let times = u64::from(times);
        match what {
            Count::Begun(result) => self.begun.get_or_create(&result).inc_by(times),
            Count::Handshake(result) => {
                let side = TlsSide::Client;
                let handshakes = &self.handshakes;
                handshakes
                    .get_or_create(&Handshake { side, result })
                    .inc_by(times)
            }
            Count::Policy(policy, result) => {
                let outcome = PolicyOutcome { policy, result };
                self.policies.get_or_create(&outcome).inc_by(times)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_process_counts_another_shows() {
        let (all, courier) = (Metrics::new(), OutboundMetrics::for_another());
        let gateway = OutboundMetrics::of(&all);
        courier.policy(TlsPolicy::StsTesting, false);
        courier.policy(TlsPolicy::StsTesting, false);
        courier.connection_begun(ConnectionResult::Open);
        courier.handshake(HandshakeResult::Failed);
        let told = courier.take();
        assert_eq!(told, [(0, 1), (6, 1), (22, 2)]);
        assert!(courier.take().is_empty());
        gateway.add(&told);
        gateway.add(&[(200, 7)]);
        let begun = &all.delivery.connections_begun;
        assert_eq!(begun.get_or_create(&ConnectionResult::Open).get(), 1);
        let handshake = Handshake {
            side: TlsSide::Client,
            result: HandshakeResult::Failed,
        };
        assert_eq!(all.tls.handshakes.get_or_create(&handshake).get(), 1);
        let failed = PolicyOutcome {
            policy: TlsPolicy::StsTesting,
            result: PolicyResult::Failed,
        };
        assert_eq!(all.tls.policies.get_or_create(&failed).get(), 2);
    }

    #[test]
    fn each_counter_has_one_number() {
        for (place, count) in Count::ALL.iter().enumerate() {
            assert!(!Count::ALL[..place].contains(count), "{count:?}");
        }
    }
}
