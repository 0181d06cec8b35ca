//! Figures of connections to next hops.

use vere_telemetry::metrics::{
    ConnectionResult, Counter, Family, Handshake, HandshakeResult, Metrics, PolicyOutcome,
    PolicyResult, TlsPolicy, TlsSide,
};

/// Counters of connections to next hops; a default one counts for nobody.
#[derive(Debug, Clone, Default)]
pub struct OutboundMetrics {
    begun: Family<ConnectionResult, Counter>,
    handshakes: Family<Handshake, Counter>,
    policies: Family<PolicyOutcome, Counter>,
}

impl OutboundMetrics {
    /// The counters among all figures of a process.
    pub fn of(all: &Metrics) -> Self {
        Self {
            begun: all.delivery.connections_begun.clone(),
            handshakes: all.tls.handshakes.clone(),
            policies: all.tls.policies.clone(),
        }
    }

    /// Counts a connection that was begun, by its result.
    pub(crate) fn connection_begun(&self, result: ConnectionResult) {
        self.begun.get_or_create(&result).inc();
    }

    /// Counts a TLS handshake that has ended.
    pub(crate) fn handshake(&self, side: TlsSide, result: HandshakeResult) {
        let handshakes = &self.handshakes;
        handshakes.get_or_create(&Handshake { side, result }).inc();
    }

    /// Counts a connection that kept its policy of encryption, or failed to.
    pub(crate) fn policy(&self, policy: TlsPolicy, kept: bool) {
        let result = match kept {
            true => PolicyResult::Kept,
            false => PolicyResult::Failed,
        };
        let outcome = PolicyOutcome { policy, result };
        self.policies.get_or_create(&outcome).inc();
    }
}
