//! Whole associations.

use bytes::Bytes;

use super::pair::{Pair, X410, accepting, apdu, identifier, request};
use crate::Limits;
use crate::association::*;
use crate::names;
use crate::rtse::*;
use crate::session::Exception;

const MODES: [Mode; 2] = [Mode::Normal, X410];
const CHUNKS: [usize; 3] = [1, 13, usize::MAX];

fn checkpoints(events: &[Event]) -> usize {
    events
        .iter()
        .filter(|event| matches!(event, Event::Checkpoint(_)))
        .count()
}

#[test]
fn an_association_opens_transfers_turns_and_releases() {
    for mode in MODES {
        for chunk in CHUNKS {
            let mut pair = Pair::open(mode, chunk);
            assert!(pair.a.association.has_turn() && !pair.b.association.has_turn());
            let long = apdu(5000);
            pair.transfer(true, &long);
            assert_eq!(pair.b.received, long);
            let told = pair.b.told();
            assert_eq!(
                told[0],
                Event::TransferBegins(Bytes::from_static(&[2, 1, 1]))
            );
            assert_eq!(told.last(), Some(&Event::Received(5000)));
            assert_eq!(checkpoints(&told), 4);
            assert_eq!(pair.a.told().last(), Some(&Event::Transferred(1)));
            pair.b.association.please_turn(7).unwrap();
            pair.run();
            assert_eq!(pair.a.told(), [Event::TurnPlease(7)]);
            pair.a.association.give_turn().unwrap();
            pair.run();
            assert_eq!(pair.b.told(), [Event::TurnGiven]);
            assert!(!pair.a.association.has_turn() && pair.b.association.has_turn());
            pair.transfer(false, b"short");
            assert_eq!(pair.a.received, b"short");
            assert_eq!(pair.b.told(), [Event::Transferred(1)]);
            pair.a.told();
            pair.b.association.release().unwrap();
            pair.run();
            assert_eq!(pair.a.told(), [Event::ReleaseIndication]);
            pair.a.association.accept_release().unwrap();
            pair.run();
            assert_eq!(pair.b.told(), [Event::Released]);
            assert_eq!(pair.a.told(), []);
            assert!(pair.a.closed && pair.b.closed);
        }
    }
}

#[test]
fn both_sides_know_what_was_agreed_on() {
    for (proposed, accepted, agreed) in [(1, 64, 1), (64, 2, 2), (0, 5, 5), (8, 0, 0)] {
        let mut pair = Pair::plain(99);
        let open = OpenRequest {
            checkpoint_size: proposed,
            window_size: 9,
            ..request(Mode::Normal)
        };
        pair.a.association.open(open).unwrap();
        pair.run();
        let [Event::OpenIndication(indication)] = &pair.b.told()[..] else {
            panic!("an indication")
        };
        assert_eq!(indication.checkpoint_size, proposed);
        assert_eq!(indication.called.transport.as_deref(), Some(&b"mta"[..]));
        assert_eq!(indication.called.session.as_deref(), Some(&b"s"[..]));
        assert_eq!(indication.called.presentation.as_deref(), Some(&b"p"[..]));
        assert_eq!(indication.identifier, Some(identifier(1)));
        assert!(matches!(&indication.data, ConnectionData::Open(Some(_))));
        assert_eq!(pair.b.association.timer(), None);
        let accept = AcceptRequest {
            checkpoint_size: accepted,
            ..accepting()
        };
        pair.b.association.accept(accept).unwrap();
        pair.run();
        let [Event::Opened(opened)] = &pair.a.told()[..] else {
            panic!("open")
        };
        assert_eq!((opened.checkpoint_size, opened.window_size), (agreed, 3));
        assert!(opened.turn && !opened.recovered);
        assert_eq!(opened.user_data, accepting().user_data);
        assert_eq!(pair.a.association.context(&names::MTSE), Some(5));
        assert_eq!(pair.b.association.context(&names::MTSE), Some(5));
        pair.transfer(true, &apdu(3000));
        let points = if agreed == 0 {
            0
        } else {
            2999 / (agreed as usize * 1024)
        };
        assert_eq!(checkpoints(&pair.b.told()), points);
        assert_eq!(pair.b.received.len(), 3000);
    }
}

#[test]
fn the_responder_may_have_the_turn_and_a_monologue_stays_one() {
    for mode in MODES {
        let open = OpenRequest {
            responder_has_turn: true,
            dialogue_mode: DialogueMode::Monologue,
            ..request(mode)
        };
        let mut pair = Pair::open_with(open, Pair::plain(50));
        assert!(pair.b.association.has_turn());
        assert!(pair.a.association.please_turn(1).is_err());
        assert!(pair.b.association.give_turn().is_err());
        assert!(pair.a.association.transfer(5).is_err());
        pair.transfer(false, &apdu(2000));
        assert_eq!(pair.a.received, apdu(2000));
    }
}

#[test]
fn nothing_is_confirmed_before_the_host_confirms() {
    for mode in MODES {
        let mut pair = Pair::open(mode, 17);
        pair.b.willing = false;
        pair.transfer(true, &apdu(900));
        assert_eq!(pair.b.told().last(), Some(&Event::Received(900)));
        assert_eq!(pair.a.told(), []);
        assert_eq!(pair.a.association.timer(), Some(Timer::Transfer));
        assert!(pair.a.association.broken().unwrap().ended);
        // PLEASE TOKENS before the acknowledgement.
        pair.b.association.please_turn(0).unwrap();
        pair.run();
        assert_eq!(pair.a.told(), [Event::TurnPlease(0)]);
        pair.b.association.confirm().unwrap();
        assert!(pair.b.association.confirm().is_err());
        pair.run();
        assert_eq!(pair.a.told(), [Event::Transferred(1)]);
        assert_eq!(pair.a.association.timer(), None);
    }
}

#[test]
fn the_window_stops_the_sender() {
    let mut pair = Pair::open(Mode::Normal, usize::MAX);
    pair.b.willing = false;
    pair.transfer(true, &apdu(10 * 1024));
    assert_eq!(pair.b.received.len(), 3 * 1024);
    assert_eq!(
        (pair.a.association.room(), pair.a.association.timer()),
        (0, Some(Timer::Transfer))
    );
    assert!(pair.b.association.secured(7).is_err());
    pair.b.association.secured(2).unwrap();
    assert!(pair.b.association.secured(1).is_err());
    pair.run();
    assert_eq!(pair.a.association.room(), 1024);
    let told = pair.a.told();
    let [Event::CheckpointConfirmed(broken)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(
        broken.checkpoint,
        Checkpoint {
            serial: 2,
            position: 2048
        }
    );
}

#[test]
fn no_more_waits_than_the_limit() {
    let limits = Limits {
        unwritten_max: 4096,
        tpdu_size: 2048,
        ..Limits::default()
    };
    let config = ResponderConfig::new(Profile::mts_transfer());
    let open = OpenRequest {
        checkpoint_size: 0,
        ..request(Mode::Normal)
    };
    let mut pair = Pair::plain(1000);
    pair.a.association.open(open.clone()).unwrap();
    let mut pair = Pair::new(limits, config, 1000);
    pair.a.association.open(open).unwrap();
    pair.run();
    pair.b
        .association
        .accept(AcceptRequest {
            checkpoint_size: 0,
            ..accepting()
        })
        .unwrap();
    pair.run();
    let whole = apdu(1_000_000);
    pair.a.association.transfer(1_000_000).unwrap();
    let mut rest = Bytes::from(whole.clone());
    let taken = pair.a.association.supply(&mut rest).unwrap();
    assert!(
        taken <= 8192 && pair.a.association.unwritten() <= 8192,
        "{taken}"
    );
    assert_eq!(pair.a.association.supply(&mut rest), Ok(0));
    pair.supply(true, &whole[taken..]);
    assert_eq!(pair.b.received, whole);
    assert_eq!(pair.a.told().last(), Some(&Event::Transferred(1)));
}

#[test]
fn a_transfer_is_interrupted_and_resumed_on_the_same_association() {
    for mode in MODES {
        let mut pair = Pair::open(mode, 31);
        let whole = apdu(4000);
        pair.a.association.transfer(4000).unwrap();
        pair.supply(true, &whole[..3000]);
        pair.a.told();
        pair.a
            .association
            .interrupt(Exception::LocalUserError)
            .unwrap();
        assert_eq!(pair.a.association.timer(), Some(Timer::Transfer));
        pair.run();
        let second = Checkpoint {
            serial: 2,
            position: 2048,
        };
        let interrupted = Event::TransferInterrupted(second, Exception::LocalUserError);
        assert_eq!(pair.b.told().last(), Some(&interrupted));
        let [Event::NotTransferred(Some(broken))] = &pair.a.told()[..] else {
            panic!("what can be resumed")
        };
        pair.transfer(true, b"another in between");
        assert_eq!(pair.a.told(), [Event::Transferred(2)]);
        pair.b.told();
        let from = pair.a.association.resume(broken).unwrap();
        assert_eq!((from.activity, from.checkpoint), (3, second));
        pair.run();
        let [Event::ResumeIndication(resume)] = &pair.b.told()[..] else {
            panic!("an indication")
        };
        assert_eq!((resume.session.clone(), resume.checkpoint), (None, 2));
        assert_eq!(
            (&resume.old_activity[..], &resume.activity[..]),
            (&[2, 1, 1][..], &[2, 1, 3][..])
        );
        pair.supply(true, &whole[2048..]);
        assert_eq!(pair.b.told(), [], "nothing happens before the answer");
        pair.b.received = whole[..2048].to_vec();
        pair.b.association.continue_from(2048).unwrap();
        pair.run();
        assert_eq!(pair.b.received, whole);
        assert_eq!(pair.b.told().last(), Some(&Event::Received(4000)));
        assert_eq!(pair.a.told().last(), Some(&Event::Transferred(3)));
    }
}

#[test]
fn a_transfer_is_discarded() {
    for mode in MODES {
        let mut pair = Pair::open(mode, 5);
        pair.a.association.transfer(4000).unwrap();
        pair.supply(true, &apdu(2500));
        pair.a.told();
        pair.b.told();
        pair.a.association.discard(Exception::NonSpecific).unwrap();
        pair.run();
        assert_eq!(
            pair.b.told(),
            [Event::TransferDiscarded(Exception::NonSpecific)]
        );
        assert_eq!(pair.a.told(), [Event::NotTransferred(None)]);
        pair.transfer(true, b"next");
        assert_eq!(pair.a.told(), [Event::Transferred(2)]);
    }
}

#[test]
fn a_receiver_refuses_a_transfer() {
    for mode in MODES {
        for (reason, checkpoints, resumable) in [
            (Exception::LocalUserError, 2, true),
            (Exception::LocalUserError, 0, false),
            (Exception::ReceivingAbilityJeopardized, 2, false),
            (Exception::UnrecoverableProceduralError, 2, false),
        ] {
            let mut pair = Pair::open(mode, 5);
            pair.a.association.transfer(9000).unwrap();
            pair.supply(true, &apdu(500 + checkpoints * 1024));
            pair.a.told();
            pair.b.told();
            pair.b.association.refuse_transfer(reason).unwrap();
            pair.run();
            let told = pair.a.told();
            assert_eq!(told[0], Event::Exception(reason));
            let left = matches!(&told[1..], [Event::NotTransferred(Some(_))]);
            assert_eq!(left, resumable, "{told:?}");
            let told = pair.b.told();
            let interrupted = matches!(&told[..], [Event::TransferInterrupted(..)]);
            assert_eq!(interrupted, resumable, "{told:?}");
            pair.transfer(true, b"next");
            assert_eq!(pair.a.told(), [Event::Transferred(2)]);
        }
    }
}

#[test]
fn an_unknown_activity_is_refused_and_a_completed_one_confirmed_again() {
    for mode in MODES {
        let broken = Broken {
            session: identifier(9),
            activity: 77,
            checkpoint: Checkpoint {
                serial: 1,
                position: 1024,
            },
            length: 4000,
            ended: true,
        };
        let mut pair = Pair::open(mode, 64);
        pair.a.association.resume(&broken).unwrap();
        pair.supply(true, &apdu(4000)[1024..]);
        let told = pair.b.told();
        let [Event::ResumeIndication(resume)] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(resume.session, Some(identifier(9)));
        pair.b
            .association
            .refuse_transfer(Exception::UnrecoverableProceduralError)
            .unwrap();
        pair.run();
        assert!(pair.a.told().contains(&Event::NotTransferred(None)));
        assert_eq!(
            pair.b.told(),
            [Event::TransferDiscarded(Exception::NonSpecific)]
        );
        pair.a.association.resume(&broken).unwrap();
        pair.run();
        pair.b.told();
        pair.b.association.already_received().unwrap();
        pair.supply(true, &apdu(4000)[1024..]);
        assert_eq!(pair.a.told().last(), Some(&Event::Transferred(2)));
        assert_eq!(
            pair.b.told(),
            [Event::Reconfirmed(Bytes::from_static(&[2, 1, 2]))]
        );
        assert!(pair.b.received.is_empty());
    }
}

#[test]
fn a_completed_activity_is_not_discarded() {
    for mode in MODES {
        for has in [true, false] {
            let broken = Broken {
                session: identifier(9),
                activity: 77,
                checkpoint: Checkpoint::default(),
                length: 4000,
                ended: true,
            };
            let mut pair = Pair::open(mode, 64);
            assert!(pair.a.association.resume(&broken).is_err());
            pair.a.association.discard_broken(&broken).unwrap();
            pair.run();
            assert!(matches!(&pair.b.told()[..], [Event::ResumeIndication(_)]));
            match has {
                true => pair.b.association.already_received().unwrap(),
                false => pair.b.association.continue_from(0).unwrap(),
            }
            pair.run();
            let completed = AbortReason::TransferCompleted;
            let expected = match has {
                true => vec![
                    Event::Transferred(1),
                    Event::Aborted(AbortCause::ReliableTransfer(completed), None),
                ],
                false => vec![Event::NotTransferred(None)],
            };
            assert_eq!(pair.a.told(), expected);
        }
    }
}

#[test]
fn a_discard_that_crosses_the_confirmation_is_a_transfer() {
    for mode in MODES {
        for discards in [true, false] {
            let mut pair = Pair::open(mode, 64);
            pair.b.willing = false;
            pair.transfer(true, &apdu(1500));
            pair.a.told();
            assert_eq!(pair.b.told().last(), Some(&Event::Received(1500)));
            match discards {
                true => pair.a.association.discard(Exception::NonSpecific).unwrap(),
                false => pair
                    .a
                    .association
                    .interrupt(Exception::NonSpecific)
                    .unwrap(),
            }
            pair.b.association.secured(1).unwrap();
            pair.b.association.confirm().unwrap();
            pair.run();
            let completed = AbortReason::TransferCompleted;
            let cause = AbortCause::ReliableTransfer(completed);
            assert_eq!(
                pair.a.told(),
                [Event::Transferred(1), Event::Aborted(cause, None)]
            );
            let ours = AbortCause::Ours(completed);
            assert_eq!(pair.b.told(), [Event::Aborted(ours, None)]);
        }
    }
}

#[test]
fn a_discard_before_the_confirmation_is_none() {
    let mut pair = Pair::open(Mode::Normal, 64);
    pair.b.willing = false;
    pair.transfer(true, &apdu(500));
    pair.b.told();
    pair.a.association.discard(Exception::NonSpecific).unwrap();
    pair.run();
    assert_eq!(
        pair.b.told(),
        [Event::TransferDiscarded(Exception::NonSpecific)]
    );
    assert!(pair.b.association.confirm().is_err());
    assert_eq!(pair.a.told(), [Event::NotTransferred(None)]);
}

#[test]
fn octets_before_the_end_of_the_connection_count() {
    let mut pair = Pair::open(X410, usize::MAX);
    pair.b.willing = false;
    pair.transfer(true, b"last");
    pair.b.association.confirm().unwrap();
    let Some(Output::Write(pieces)) = pair.b.association.poll() else {
        panic!("an acknowledgement")
    };
    pair.a.association.receive(pieces.into_bytes());
    pair.a.association.ended();
    pair.run();
    let told = pair.a.told();
    assert!(
        matches!(
            &told[..],
            [
                Event::Transferred(1),
                Event::Aborted(AbortCause::Transport(_), None)
            ]
        ),
        "{told:?}"
    );
}

#[test]
fn a_segment_that_lacks_much_is_cut_off() {
    let open = OpenRequest {
        checkpoint_size: 0,
        ..request(Mode::Normal)
    };
    for (length, cut) in [(1_000_000, false), (2_000_000, true)] {
        let mut pair = Pair::plain(usize::MAX);
        pair.a.association.open(open.clone()).unwrap();
        pair.run();
        pair.b
            .association
            .accept(AcceptRequest {
                checkpoint_size: 0,
                ..accepting()
            })
            .unwrap();
        pair.run();
        pair.a.told();
        pair.a.association.transfer(length).unwrap();
        pair.supply(true, &apdu(5000));
        pair.b.told();
        pair.a.association.discard(Exception::NonSpecific).unwrap();
        pair.run();
        let problem = AbortReason::LocalSystemProblem;
        let told = pair.a.told();
        let aborted = matches!(&told[..], [Event::Aborted(AbortCause::Ours(_), Some(_))]);
        assert_eq!(aborted, cut, "{told:?}");
        let seen = match cut {
            true => Event::Aborted(AbortCause::ReliableTransfer(problem), None),
            false => Event::TransferDiscarded(Exception::NonSpecific),
        };
        assert_eq!(pair.b.told(), [seen]);
    }
}

#[test]
fn an_apdu_has_no_more_checkpoints_than_there_are_numbers() {
    let mut pair = Pair::open(Mode::Normal, 99);
    assert!(pair.a.association.transfer(1_000_000 * 1024).is_err());
    pair.a.association.transfer(999_000 * 1024).unwrap();
    let mut pair = Pair::open(Mode::Normal, 99);
    let mut broken = Broken {
        session: identifier(9),
        activity: 1,
        checkpoint: Checkpoint {
            serial: 999_998,
            position: 1024,
        },
        length: 4000,
        ended: false,
    };
    assert!(pair.a.association.resume(&broken).is_err());
    broken.checkpoint = Checkpoint {
        serial: 5,
        position: 4000,
    };
    assert!(pair.a.association.resume(&broken).is_err());
}

#[test]
fn the_timer_of_a_transfer_waits_for_the_peer_and_not_for_the_host() {
    let mut pair = Pair::open(X410, usize::MAX);
    pair.b.willing = false;
    pair.transfer(true, &apdu(2500));
    assert_eq!(pair.b.association.timer(), None, "the APDU is complete");
    pair.b.association.confirm().unwrap();
    pair.run();
    pair.transfer(true, &apdu(20_000));
    assert_eq!(pair.a.association.timer(), Some(Timer::Transfer));
    assert_eq!(pair.b.association.timer(), None, "the window is full");
    pair.b.association.secured(2).unwrap();
    assert_eq!(pair.b.association.timer(), Some(Timer::Transfer));
    pair.run();
    assert_eq!(pair.a.association.timer(), None, "the host has to supply");
}

#[test]
fn an_association_is_recovered_by_its_name() {
    for mode in MODES {
        let open = OpenRequest {
            data: ConnectionData::Recover(identifier(4)),
            ..request(mode)
        };
        let mut pair = Pair::plain(8);
        pair.a.association.open(open).unwrap();
        pair.run();
        let [Event::OpenIndication(indication)] = &pair.b.told()[..] else {
            panic!("an indication")
        };
        assert_eq!(indication.data, ConnectionData::Recover(identifier(4)));
        pair.b.association.accept(accepting()).unwrap();
        pair.run();
        let [Event::Opened(opened)] = &pair.a.told()[..] else {
            panic!("open")
        };
        assert!(opened.recovered && opened.user_data.is_none());
    }
}

#[test]
fn aborts_have_their_reasons() {
    for (mode, versions, user_data, seen) in [
        (
            Mode::Normal,
            3,
            Some("020105"),
            AbortCause::User(Some(crate::testing::hex("020105"))),
        ),
        (Mode::Normal, 2, None, AbortCause::User(None)),
        (Mode::Normal, 1, Some("020105"), AbortCause::User(None)),
        (
            X410,
            1,
            Some("020105"),
            AbortCause::ReliableTransfer(AbortReason::LocalSystemProblem),
        ),
    ] {
        for early in [false, true] {
            let open = OpenRequest {
                session_versions: versions,
                ..request(mode)
            };
            let mut pair = match versions {
                1 if mode == Mode::Normal => {
                    let data = ConnectionData::Open(None);
                    Pair::open_with(OpenRequest { data, ..open }, Pair::plain(5))
                }
                _ => Pair::open_with(open, Pair::plain(5)),
            };
            pair.a.association.transfer(3000).unwrap();
            pair.supply(true, &apdu(1500));
            pair.a.told();
            pair.b.told();
            let (from, to) = match early {
                true => (&mut pair.b, &mut pair.a),
                false => (&mut pair.a, &mut pair.b),
            };
            from.association.abort(user_data.map(crate::testing::hex));
            assert_eq!(from.association.timer(), Some(Timer::Tim));
            assert!(to.events.is_empty());
            pair.run();
            let (from, to) = match early {
                true => (&mut pair.b, &mut pair.a),
                false => (&mut pair.a, &mut pair.b),
            };
            let told = to.told();
            let [Event::Aborted(cause, broken)] = &told[..] else {
                panic!("{told:?}")
            };
            assert_eq!((cause, broken.is_some()), (&seen, early));
            let told = from.told();
            assert!(
                matches!(&told[..], [Event::Aborted(AbortCause::Requested, _)]),
                "{told:?}"
            );
            assert!(pair.a.closed && pair.b.closed);
        }
    }
}

#[test]
fn timers_are_wanted_and_their_end_closes() {
    let mut pair = Pair::plain(99);
    assert_eq!(pair.b.association.timer(), Some(Timer::Association));
    pair.a.association.open(request(Mode::Normal)).unwrap();
    assert_eq!(pair.a.association.timer(), Some(Timer::Association));
    pair.a.association.expired(Timer::Tim);
    pair.a.association.expired(Timer::Association);
    let mut outputs = Vec::new();
    while let Some(output) = pair.a.association.poll() {
        outputs.push(output);
    }
    assert!(matches!(
        outputs.first(),
        Some(Output::Event(Event::Aborted(
            AbortCause::Expired(Timer::Association),
            None
        )))
    ));
    assert!(matches!(outputs.last(), Some(Output::Close)));
    let mut pair = Pair::open(Mode::Normal, 99);
    pair.b.willing = false;
    pair.transfer(true, b"lost");
    pair.a.association.expired(Timer::Transfer);
    pair.run();
    let told = pair.a.told();
    assert!(
        matches!(
            &told[..],
            [Event::Aborted(
                AbortCause::Expired(Timer::Transfer),
                Some(_)
            )]
        ),
        "{told:?}"
    );
    let temporary = AbortCause::ReliableTransfer(AbortReason::TemporaryProblem);
    assert_eq!(pair.b.told().last(), Some(&Event::Aborted(temporary, None)));
    assert!(pair.a.closed && pair.b.closed);
}

#[test]
fn the_peer_that_does_not_close_is_closed_by_the_timer() {
    let mut pair = Pair::open(Mode::Normal, 99);
    pair.left = 0;
    pair.a.association.abort(None);
    pair.run();
    assert!(!pair.a.closed);
    pair.a.association.expired(Timer::Tim);
    pair.run();
    assert!(pair.a.closed);
}

#[test]
fn requests_without_a_place_are_refused() {
    let mut pair = Pair::plain(99);
    assert!(pair.b.association.open(request(Mode::Normal)).is_err());
    assert!(pair.a.association.transfer(1).is_err());
    assert!(pair.a.association.accept(accepting()).is_err());
    let mut pair = Pair::open(Mode::Normal, 99);
    assert!(pair.a.association.open(request(Mode::Normal)).is_err());
    assert!(pair.a.association.transfer(0).is_err());
    assert!(pair.a.association.please_turn(1).is_err());
    assert!(pair.b.association.give_turn().is_err());
    assert!(pair.b.association.release().is_err());
    assert!(pair.a.association.confirm().is_err());
    assert!(pair.a.association.continue_from(0).is_err());
    assert!(
        pair.a
            .association
            .interrupt(Exception::NonSpecific)
            .is_err()
    );
    assert!(
        pair.a
            .association
            .supply(&mut Bytes::from_static(b"x"))
            .is_ok_and(|taken| taken == 0)
    );
    pair.a.association.transfer(5).unwrap();
    assert!(pair.a.association.release().is_err());
    assert!(pair.a.association.transfer(5).is_err());
    assert!(pair.a.association.give_turn().is_err());
}

#[test]
fn an_apdu_above_the_limit_ends_the_association() {
    let limits = Limits {
        apdu_max: 1000,
        ..Limits::default()
    };
    let pair = Pair::new(limits, ResponderConfig::new(Profile::mts_transfer()), 100);
    let mut pair = Pair::open_with(request(X410), pair);
    pair.transfer(true, &apdu(1001));
    let ours = AbortCause::Ours(AbortReason::LocalSystemProblem);
    assert_eq!(pair.b.told().last(), Some(&Event::Aborted(ours, None)));
}
