//! Every SPDU in every state: the table of X.225 Annex A for the functional units of RTSE.

use bytes::Bytes;

use super::super::tokens::Position;
use super::super::*;
use super::hex;

const KINDS: [Incoming; 27] = [
    Incoming::CN,
    Incoming::CDO,
    Incoming::OA,
    Incoming::AC,
    Incoming::RF,
    Incoming::FN,
    Incoming::DN,
    Incoming::NF,
    Incoming::AB,
    Incoming::AA,
    Incoming::DT,
    Incoming::GT,
    Incoming::PT,
    Incoming::GTC,
    Incoming::GTA,
    Incoming::MIP,
    Incoming::MIA,
    Incoming::AS,
    Incoming::AR,
    Incoming::AI,
    Incoming::AIA,
    Incoming::AD,
    Incoming::ADA,
    Incoming::AE,
    Incoming::AEA,
    Incoming::ER,
    Incoming::ED,
];

/// An SPDU of the kind whose serial number fits V(A) = 2 and V(M) = 5.
fn sample(kind: Incoming) -> Spdu {
    let data = Bytes::new;
    let item = Item {
        versions: 2,
        ..Item::default()
    };
    match kind {
        Incoming::CN => Spdu::Connect(Connect {
            item,
            requirements: REQUIREMENTS,
            ..Connect::default()
        }),
        Incoming::CDO => Spdu::ConnectDataOverflow(data(), true),
        Incoming::OA => Spdu::OverflowAccept(OverflowAccept {
            versions: 2,
            ..OverflowAccept::default()
        }),
        Incoming::AC => Spdu::Accept(Accept {
            item,
            requirements: REQUIREMENTS,
            ..Accept::default()
        }),
        Incoming::RF => Spdu::Refuse(Refuse {
            identifier: ConnectionIdentifier::default(),
            disconnect: 1,
            requirements: None,
            versions: None,
            reason: RefuseReason::User,
            user_data: data(),
        }),
        Incoming::FN => Spdu::Finish(1, data()),
        Incoming::DN => Spdu::Disconnect(data()),
        Incoming::NF => Spdu::NotFinished(data()),
        Incoming::AB => Spdu::Abort(Abort {
            disconnect: 3,
            ..Abort::default()
        }),
        Incoming::AA => Spdu::AbortAccept,
        Incoming::DT => Spdu::DataTransfer(Enclosure::WHOLE),
        Incoming::GT => Spdu::GiveTokens(Tokens::TURN),
        Incoming::PT => Spdu::PleaseTokens(Tokens::DATA, data()),
        Incoming::GTC => Spdu::GiveTokensConfirm(data()),
        Incoming::GTA => Spdu::GiveTokensAck,
        Incoming::MIP => Spdu::MinorSyncPoint(5, true),
        Incoming::MIA => Spdu::MinorSyncAck(3),
        Incoming::AS => Spdu::ActivityStart(hex("020101")),
        Incoming::AR => Spdu::ActivityResume(ActivityResume {
            old_activity: hex("020101"),
            activity: hex("020102"),
            ..ActivityResume::default()
        }),
        Incoming::AI => Spdu::ActivityInterrupt(Exception::NonSpecific),
        Incoming::AIA => Spdu::ActivityInterruptAck,
        Incoming::AD => Spdu::ActivityDiscard(Exception::NonSpecific),
        Incoming::ADA => Spdu::ActivityDiscardAck,
        Incoming::AE => Spdu::ActivityEnd(5),
        Incoming::AEA => Spdu::ActivityEndAck(4),
        Incoming::ER => Spdu::ExceptionReport(data()),
        Incoming::ED => Spdu::ExceptionData(Exception::NonSpecific, data()),
    }
}

/// A state with its variables, and what is known there: the SPDU and the state that follows.
struct Row {
    state: State,
    here: bool,
    activity: bool,
    known: &'static [(Incoming, State)],
}

use Incoming::*;
use State::*;

const TABLE: &[Row] = &[
    Row {
        state: Sta02A,
        here: true,
        activity: false,
        known: &[(AC, Sta713), (RF, Sta01)],
    },
    Row {
        state: Sta02B,
        here: true,
        activity: false,
        known: &[(OA, Sta02A), (RF, Sta01)],
    },
    Row {
        state: Sta03,
        here: true,
        activity: false,
        known: &[(DN, Sta01), (PT, Sta03)],
    },
    Row {
        state: Sta04B,
        here: true,
        activity: true,
        known: &[
            (AEA, Sta713),
            (MIA, Sta04B),
            (ED, Sta20),
            (ER, Sta20),
            (PT, Sta04B),
        ],
    },
    Row {
        state: Sta05B,
        here: true,
        activity: true,
        known: &[
            (AEA, Sta05B),
            (MIA, Sta05B),
            (AIA, Sta713),
            (ED, Sta05B),
            (ER, Sta05B),
            (PT, Sta05B),
        ],
    },
    Row {
        state: Sta05C,
        here: true,
        activity: true,
        known: &[
            (AEA, Sta05C),
            (MIA, Sta05C),
            (ADA, Sta713),
            (ED, Sta05C),
            (ER, Sta05C),
            (PT, Sta05C),
        ],
    },
    Row {
        state: Sta08,
        here: false,
        activity: false,
        known: &[],
    },
    Row {
        state: Sta09,
        here: false,
        activity: false,
        known: &[],
    },
    Row {
        state: Sta10B,
        here: false,
        activity: true,
        known: &[(AI, Sta11B), (AD, Sta11C), (GT, Sta10B)],
    },
    Row {
        state: Sta11B,
        here: false,
        activity: true,
        known: &[],
    },
    Row {
        state: Sta11C,
        here: false,
        activity: true,
        known: &[],
    },
    Row {
        state: Sta18,
        here: false,
        activity: false,
        known: &[(GTA, Sta713), (PT, Sta18)],
    },
    Row {
        state: Sta19,
        here: false,
        activity: true,
        known: &[
            (DT, Sta19),
            (AE, Sta19),
            (MIP, Sta19),
            (AI, Sta11B),
            (AD, Sta11C),
            (ED, Sta19),
            (ER, Sta19),
            (GT, Sta713),
            (PT, Sta19),
        ],
    },
    Row {
        state: Sta20,
        here: true,
        activity: true,
        known: &[(AEA, Sta20), (MIA, Sta20), (PT, Sta20)],
    },
    // The side that sends, in an activity.
    Row {
        state: Sta713,
        here: true,
        activity: true,
        known: &[(MIA, Sta713), (ED, Sta20), (ER, Sta20), (PT, Sta713)],
    },
    // The side that receives, in an activity.
    Row {
        state: Sta713,
        here: false,
        activity: true,
        known: &[
            (DT, Sta713),
            (AE, Sta10B),
            (MIP, Sta713),
            (AI, Sta11B),
            (AD, Sta11C),
            (ED, Sta713),
            (ER, Sta713),
            (GT, Sta713),
            (PT, Sta713),
        ],
    },
    // The side with the tokens, outside of an activity.
    Row {
        state: Sta713,
        here: true,
        activity: false,
        known: &[(PT, Sta713)],
    },
    // The other side.
    Row {
        state: Sta713,
        here: false,
        activity: false,
        known: &[
            (DT, Sta713),
            (AS, Sta713),
            (AR, Sta713),
            (GT, Sta713),
            (GTC, Sta713),
            (PT, Sta713),
            (AI, Sta11B),
            (AD, Sta11C),
            (FN, Sta09),
        ],
    },
];

fn session(row: &Row) -> Session {
    let mut session = Session::responder(SessionConfig::default());
    session.state = row.state;
    session.version = version::TWO;
    session.requirements = REQUIREMENTS;
    session.activity = row.activity;
    session.tokens = Position {
        available: Tokens::TURN,
        owned: if row.here { Tokens::TURN } else { Tokens::NONE },
    };
    (session.va, session.vm, session.vr, session.vsc) = (2, 5, 1, !row.here);
    session.propose(version::TWO);
    session
}

fn receive(session: &mut Session, kind: Incoming) {
    let mut octets = sample(kind).write().to_vec();
    if kind == Incoming::DT {
        octets.extend_from_slice(b"data");
    }
    session.receive(octets.into(), true);
}

#[test]
fn every_spdu_has_its_place_in_every_state() {
    for row in TABLE {
        for kind in KINDS {
            let mut session = session(row);
            receive(&mut session, kind);
            let name = format!(
                "{kind:?} in {:?} (tokens here: {}, activity: {})",
                row.state, row.here, row.activity
            );
            let known = row.known.iter().find(|(known, _)| *known == kind);
            match (known, kind) {
                (_, AB) => {
                    assert!(
                        matches!(session.poll(), Some(SessionEvent::UserAbort(_))),
                        "{name}"
                    );
                    assert_eq!(session.state(), Sta01, "{name}");
                }
                (Some((_, next)), _) => {
                    assert_eq!(session.state(), *next, "{name}");
                    let first = session.poll();
                    assert!(
                        !matches!(first, Some(SessionEvent::ProviderAbort(_))),
                        "{name}: {first:?}"
                    );
                }
                (None, _) => {
                    assert_eq!(session.state(), Sta16, "{name}");
                    let fault = SessionEvent::ProviderAbort(Fault::Unexpected(kind, row.state));
                    assert_eq!(session.poll(), Some(fault), "{name}");
                    let abort = session.take_output().unwrap().0.into_bytes();
                    assert_eq!(abort, hex("1903 110105"), "{name}");
                }
            }
        }
    }
}

#[test]
fn every_state_of_an_established_connection_is_in_the_table() {
    for state in State::ALL {
        let in_table = TABLE.iter().any(|row| row.state == state);
        let elsewhere = matches!(state, Sta01 | Sta01B | Sta01C | Sta01D | Sta16);
        assert!(in_table != elsewhere, "{state:?}");
        assert!(in_table || !state.is_connected());
    }
}

#[test]
fn before_a_connection_everything_else_ends_the_transport() {
    for kind in KINDS {
        let mut session = Session::responder(SessionConfig::default());
        receive(&mut session, kind);
        let (next, requests) = match kind {
            CN => (Sta08, true),
            _ => (Sta01, false),
        };
        assert_eq!(session.state(), next, "{kind:?}");
        let told: Vec<SessionEvent> = std::iter::from_fn(|| session.poll()).collect();
        assert_eq!(
            requests,
            matches!(told[..], [SessionEvent::ConnectIndication(_)]),
            "{kind:?}"
        );
        assert_eq!(
            !requests,
            told.contains(&SessionEvent::TransportDisconnect),
            "{kind:?}"
        );
        assert!(session.take_output().is_none(), "{kind:?}");
    }
}

#[test]
fn after_the_end_everything_is_ignored_until_the_transport_ends() {
    for kind in KINDS {
        let row = Row {
            state: Sta16,
            here: true,
            activity: true,
            known: &[],
        };
        let mut session = session(&row);
        receive(&mut session, kind);
        let ends = matches!(kind, CN | AB | AA);
        assert_eq!(
            session.state(),
            if ends { Sta01 } else { Sta16 },
            "{kind:?}"
        );
        assert_eq!(
            session.poll(),
            ends.then_some(SessionEvent::TransportDisconnect),
            "{kind:?}"
        );
    }
    let row = Row {
        state: Sta16,
        here: true,
        activity: true,
        known: &[],
    };
    let mut session = session(&row);
    session.expired(SessionTimer::Tim);
    assert_eq!(session.poll(), Some(SessionEvent::TransportDisconnect));
}

#[test]
fn serial_numbers_must_fit() {
    let receiving = Row {
        state: Sta713,
        here: false,
        activity: true,
        known: &[],
    };
    let sending = Row {
        state: Sta713,
        here: true,
        activity: true,
        known: &[],
    };
    for (row, spdu) in [
        (&receiving, Spdu::MinorSyncPoint(6, true)),
        (&receiving, Spdu::ActivityEnd(4)),
        (&sending, Spdu::MinorSyncAck(1)),
        (&sending, Spdu::MinorSyncAck(5)),
    ] {
        let mut session = session(row);
        session.receive(spdu.write(), true);
        assert!(
            matches!(session.poll(), Some(SessionEvent::ProviderAbort(_))),
            "{spdu:?}"
        );
    }
}
