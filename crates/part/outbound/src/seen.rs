//! Connections for reports about TLS until somebody takes them, and their form between couriers and gateway.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use vere_handoff::delivery::{TlsFailed, TlsSessions};
use vere_reports::{TlsFailure, TlsFailureKind, TlsPolicyKind, TlsSeen};

/// Kinds of connections that wait to be taken.
pub const SESSIONS_MAX: usize = 1_000;

/// Connections with their numbers, until somebody takes them; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Sessions(Rc<RefCell<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    counts: BTreeMap<TlsSeen, u32>,
    /// Connections without room.
    beyond: u32,
}

impl Sessions {
    /// Adds connections of a kind.
    pub fn add(&self, seen: TlsSeen, times: u32) {
        let mut waiting = self.0.borrow_mut();
        let has_room = waiting.counts.len() < SESSIONS_MAX;
        if let Some(count) = waiting.counts.get_mut(&seen) {
            *count = count.saturating_add(times);
        } else if has_room {
            waiting.counts.insert(seen, times);
        } else {
            waiting.beyond = waiting.beyond.saturating_add(times);
        }
    }

    /// Takes the connections, and the number of those without room.
    #[must_use]
    pub fn take(&self) -> (Vec<(TlsSeen, u32)>, u32) {
        let waiting = self.0.take();
        (waiting.counts.into_iter().collect(), waiting.beyond)
    }

    /// Takes the connections for the gateway of a courier, and the number of those without room.
    #[must_use]
    pub fn take_frames(&self) -> (Vec<TlsSessions>, u32) {
        let (seen, beyond) = self.take();
        let frames = seen
            .into_iter()
            .filter_map(|(seen, times)| frame(seen, times));
        (frames.collect(), beyond)
    }

    /// Adds connections of a courier.
    pub fn add_frame(&self, frame: TlsSessions) {
        let seen = TlsSeen {
            domain: frame.domain,
            kind: kind(&TlsPolicyKind::ALL, frame.policy),
            lines: frame.lines,
            mx: frame.mx,
            failure: frame.failed.map(failure),
        };
        self.add(seen, frame.sessions);
    }
}

/// `None` for kinds without a number, which no courier makes.
fn frame(seen: TlsSeen, times: u32) -> Option<TlsSessions> {
    let failed = match seen.failure {
        Some(failure) => Some(TlsFailed {
            kind: number(&TlsFailureKind::ALL, &failure.kind)?,
            sender: failure.sender,
            receiver: failure.address,
            host: failure.mx.unwrap_or_default(),
            reason: failure.reason.unwrap_or_default(),
        }),
        None => None,
    };
    Some(TlsSessions {
        sessions: times,
        policy: number(&TlsPolicyKind::ALL, &seen.kind)?,
        domain: seen.domain,
        lines: seen.lines,
        mx: seen.mx,
        failed,
    })
}

fn failure(failed: TlsFailed) -> TlsFailure {
    let maybe = |text: String| (!text.is_empty()).then_some(text);
    TlsFailure {
        kind: kind(&TlsFailureKind::ALL, failed.kind),
        sender: failed.sender,
        mx: maybe(failed.host),
        address: failed.receiver,
        reason: maybe(failed.reason),
        ..TlsFailure::default()
    }
}

/// The number of a kind in frames: the place in the list.
fn number<T: PartialEq>(all: &[T], kind: &T) -> Option<u8> {
    let place = all.iter().position(|other| other == kind)?;
    u8::try_from(place).ok()
}

/// The kind with a number; frames have numbers of kinds alone.
fn kind<T: Clone + Default>(all: &[T], number: u8) -> T {
    all.get(usize::from(number)).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use vere_handoff::delivery::FAILURES;

    use super::*;

    #[test]
    fn sessions_without_room_are_numbered() {
        let sessions = Sessions::default();
        let seen = |number: usize| TlsSeen {
            domain: format!("d{number}.test"),
            ..TlsSeen::default()
        };
        for number in 0..SESSIONS_MAX + 3 {
            sessions.add(seen(number), 1);
        }
        sessions.clone().add(seen(0), 2);
        let (all, beyond) = sessions.take();
        assert_eq!((all.len(), beyond), (SESSIONS_MAX, 3));
        assert!(all.contains(&(seen(0), 3)));
        assert_eq!(sessions.take(), (Vec::new(), 0));
    }

    /// What a courier has seen is what its gateway counts.
    #[test]
    fn each_kind_survives_the_frame() {
        assert_eq!(TlsFailureKind::ALL.len(), usize::from(FAILURES));
        let (courier, gateway) = (Sessions::default(), Sessions::default());
        let mut expected = BTreeMap::new();
        for policy in TlsPolicyKind::ALL {
            let failures = TlsFailureKind::ALL.into_iter().map(Some);
            for failure in failures.chain([None]) {
                let failure = failure.map(|kind| TlsFailure {
                    kind,
                    sender: Some("2001:db8::1".parse().unwrap()),
                    mx: Some("mx.example.org".to_owned()),
                    address: Some("192.0.2.1".parse().unwrap()),
                    reason: Some("why".to_owned()),
                    ..TlsFailure::default()
                });
                let seen = TlsSeen {
                    domain: "example.org".to_owned(),
                    kind: policy,
                    lines: vec!["version: STSv1".to_owned()],
                    mx: vec!["*.example.org".to_owned()],
                    failure,
                };
                courier.add(seen.clone(), 7);
                expected.insert(seen, 7);
            }
        }
        let (frames, beyond) = courier.take_frames();
        assert_eq!(beyond, 0);
        frames
            .into_iter()
            .for_each(|frame| gateway.add_frame(frame));
        let (seen, _) = gateway.take();
        assert_eq!(seen.into_iter().collect::<BTreeMap<_, _>>(), expected);
        let other = TlsFailure {
            kind: TlsFailureKind::Other("x".to_owned()),
            ..TlsFailure::default()
        };
        courier.add(
            TlsSeen {
                failure: Some(other),
                ..TlsSeen::default()
            },
            1,
        );
        assert_eq!(courier.take_frames(), (Vec::new(), 0));
    }
}
