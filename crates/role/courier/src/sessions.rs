//! Connections for reports about TLS, in the form of the gateway.

use vere_handoff::delivery::{Answer, TlsFailed, TlsSessions};
use vere_reports::{TlsFailure, TlsFailureKind, TlsPolicyKind, TlsSeen};

/// The answer about connections of a kind; `None` for kinds without a number, which no courier makes.
pub(crate) fn answer(seen: TlsSeen, times: u32) -> Option<Answer> {
    let policy = TlsPolicyKind::ALL
        .iter()
        .position(|kind| *kind == seen.kind);
    let failed = match seen.failure {
        Some(failure) => Some(failed(failure)?),
        None => None,
    };
    Some(Answer::Sessions(Box::new(TlsSessions {
        sessions: times,
        policy: u8::try_from(policy?).ok()?,
        domain: seen.domain,
        lines: seen.lines,
        mx: seen.mx,
        failed,
    })))
}

fn failed(failure: TlsFailure) -> Option<TlsFailed> {
    let mut all = TlsFailureKind::ALL.iter();
    let kind = all.position(|kind| *kind == failure.kind)?;
    Some(TlsFailed {
        kind: u8::try_from(kind).ok()?,
        sender: failure.sender,
        receiver: failure.address,
        host: failure.mx.unwrap_or_default(),
        reason: failure.reason.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_the_number_of_its_place() {
        for (kind, number) in TlsFailureKind::ALL.into_iter().zip(0..) {
            let failure = TlsFailure {
                kind,
                mx: Some("mx.test".to_owned()),
                ..TlsFailure::default()
            };
            let failed = failed(failure).unwrap();
            assert_eq!((failed.kind, failed.host.as_str()), (number, "mx.test"));
            assert!(number < vere_handoff::delivery::FAILURES);
        }
        for (kind, number) in TlsPolicyKind::ALL.into_iter().zip(0..) {
            let seen = TlsSeen {
                kind,
                ..TlsSeen::default()
            };
            match answer(seen, 7) {
                Some(Answer::Sessions(all)) => {
                    assert_eq!((all.policy, all.sessions), (number, 7));
                    assert_eq!(all.failed, None);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
