//! Connections of couriers for reports about TLS.

use vere_handoff::delivery::{TlsFailed, TlsSessions};
use vere_reports::{TlsFailure, TlsFailureKind, TlsPolicyKind, TlsSeen};

/// Connections of a kind, and their number.
pub(super) fn seen(sessions: TlsSessions) -> (TlsSeen, u32) {
    // The frame has numbers of kinds alone.
    let kind = TlsPolicyKind::ALL.get(usize::from(sessions.policy));
    let seen = TlsSeen {
        domain: sessions.domain,
        kind: kind.copied().unwrap_or_default(),
        lines: sessions.lines,
        mx: sessions.mx,
        failure: sessions.failed.map(failure),
    };
    (seen, sessions.sessions)
}

fn failure(failed: TlsFailed) -> TlsFailure {
    let kind = TlsFailureKind::ALL.get(usize::from(failed.kind));
    let maybe = |text: String| (!text.is_empty()).then_some(text);
    TlsFailure {
        kind: kind.cloned().unwrap_or_default(),
        sender: failed.sender,
        mx: maybe(failed.host),
        address: failed.receiver,
        reason: maybe(failed.reason),
        ..TlsFailure::default()
    }
}
