use super::*;
use crate::testing::hex;
use bytes::Bytes;
use vere_ber::Pieces;

mod table;

fn connecting(user_data: Bytes) -> Connecting {
    Connecting {
        user_data,
        called: Some(Bytes::from_static(b"MTA")),
        ..Connecting::default()
    }
}

/// Carries octets from one session to the other, `chunk` octets at a time.
fn carry(from: &mut Session, to: &mut Session, chunk: usize) {
    while let Some((octets, end)) = from.take_output() {
        let octets = octets.into_bytes();
        let mut parts: Vec<&[u8]> = octets.chunks(chunk).collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            to.receive(Bytes::copy_from_slice(part), false);
        }
        to.receive(Bytes::copy_from_slice(last), end);
    }
}

fn events(of: &mut Session) -> Vec<SessionEvent> {
    std::iter::from_fn(|| of.poll()).collect()
}

fn config(versions: u8) -> SessionConfig {
    SessionConfig {
        versions,
        ..SessionConfig::default()
    }
}

/// Two sessions that are established; the initiator has the tokens.
pub(super) fn established(versions: u8, chunk: usize) -> (Session, Session) {
    let mut a = Session::initiator(config(versions));
    let mut b = Session::responder(config(versions));
    a.connect(connecting(Bytes::from_static(b"hello"))).unwrap();
    a.transport_connected();
    carry(&mut a, &mut b, chunk);
    assert!(matches!(
        &events(&mut b)[..],
        [SessionEvent::ConnectIndication(_)]
    ));
    b.accept(Accepting::default()).unwrap();
    carry(&mut b, &mut a, chunk);
    assert!(matches!(
        &events(&mut a)[..],
        [SessionEvent::ConnectConfirm(_)]
    ));
    assert!(a.has_tokens() && !b.has_tokens());
    (a, b)
}

#[test]
fn a_connect_of_another_stack_is_read_and_refused() {
    // The session of libiec61850's MMS client, in many public captures: duplex, which RTSE does not use.
    let head = "0d18 0506130100160102 14020002 33020001 34020001 c1024142";
    let Ok(Spdu::Connect(connect)) = Spdu::read(&hex(head), false) else {
        panic!("a connect")
    };
    assert_eq!(connect.item.versions, version::TWO);
    assert_eq!(connect.requirements, 2);
    assert_eq!(connect.calling.as_ref().unwrap(), &hex("0001"));
    assert_eq!(connect.user_data, "AB");
    let mut called = Session::responder(SessionConfig::default());
    called.receive(hex(head), true);
    let refusal = called.take_output().unwrap().0.into_bytes();
    assert_eq!(refusal, hex("0c 0a 110101 14020249 320185"));
    assert_eq!(called.state(), State::Sta16);
}

fn check(spdu: &Spdu, octets: &str) {
    let written = spdu.write();
    assert_eq!(written, hex(octets), "{spdu:?}");
    let second = spdu.kind().category() == 2;
    let from = if second { 2 } else { 0 };
    assert_eq!(&Spdu::read(&written.slice(from..), second).unwrap(), spdu);
}

// Identifiers and orders of X.225 clause 8.3, as the dissector of Wireshark and the source of ISODE 8.0 have them.
#[test]
fn spdus_of_activities_have_the_octets_of_the_recommendation() {
    let resume = ActivityResume {
        called: None,
        connection: ConnectionIdentifier {
            user: Some(hex("1401 61")),
            common: Some(hex("1701 62")),
            additional: None,
        },
        old_activity: hex("020107"),
        serial: 12,
        activity: hex("020109"),
    };
    let procedural = Exception::UnrecoverableProceduralError;
    for (spdu, octets) in [
        (Spdu::MinorSyncPoint(1, true), "0100 3103 2a0131"),
        (
            Spdu::MinorSyncPoint(999_999, false),
            "0100 310b 0f0101 2a06393939393939",
        ),
        (Spdu::MinorSyncAck(10), "0200 3204 2a023130"),
        (Spdu::ActivityStart(hex("020101")), "0100 2d05 2903020101"),
        (
            Spdu::ActivityInterrupt(Exception::LocalUserError),
            "0100 1903 320105",
        ),
        (Spdu::ActivityInterruptAck, "0200 1a00"),
        (
            Spdu::ActivityDiscard(Exception::NonSpecific),
            "0100 3903 320100",
        ),
        (Spdu::ActivityDiscardAck, "0200 3a00"),
        (Spdu::ActivityEnd(3), "0100 2903 2a0133"),
        (Spdu::ActivityEndAck(3), "0200 2a03 2a0133"),
        (
            Spdu::ExceptionData(procedural, Bytes::new()),
            "0200 3003 320106",
        ),
        (Spdu::ExceptionReport(hex("aa")), "0200 0003 3101aa"),
        (
            Spdu::ActivityResume(resume),
            "0100 1d1a 2113 0a03140161 0b03170162 2903020107 2a023132 2903020109",
        ),
    ] {
        check(&spdu, octets);
    }
}

#[test]
fn spdus_of_connections_have_the_octets_of_the_recommendation() {
    let first = Enclosure {
        begin: true,
        end: false,
    };
    let abort = Abort {
        disconnect: 3,
        ..Abort::default()
    };
    let overflow = OverflowAccept {
        tsdu_maximum: (0, 0),
        versions: 2,
    };
    for (spdu, octets) in [
        (Spdu::DataTransfer(Enclosure::WHOLE), "0100 0100"),
        (Spdu::DataTransfer(first), "0100 0103 190101"),
        (
            Spdu::PleaseTokens(Tokens::DATA, hex("020103")),
            "0208 100101 c103020103",
        ),
        (Spdu::GiveTokensConfirm(Bytes::new()), "1500"),
        (Spdu::GiveTokensAck, "1600"),
        (Spdu::Finish(1, Bytes::new()), "0903 110101"),
        (Spdu::Disconnect(Bytes::new()), "0a00"),
        (Spdu::NotFinished(Bytes::new()), "0800"),
        (Spdu::AbortAccept, "1a00"),
        (Spdu::Abort(abort), "1903 110103"),
        (
            Spdu::ConnectDataOverflow(hex("61"), true),
            "0f06 190102 c10161",
        ),
        (Spdu::OverflowAccept(overflow), "1003 160102"),
    ] {
        check(&spdu, octets);
    }
}

#[test]
fn long_lengths_are_read_back() {
    for length in [254, 255, 256, 511, 512, 513, 10_240] {
        let connect = Spdu::Connect(Connect {
            item: Item {
                versions: 2,
                ..Item::default()
            },
            user_data: vec![7; length].into(),
            ..Connect::default()
        });
        let octets = connect.write();
        assert_eq!(Spdu::length(&octets), Some(octets.len()));
        assert_eq!(Spdu::read(&octets, false).unwrap(), connect, "{length}");
        let group = if length > 512 { 194 } else { 193 };
        assert!(octets.windows(1).any(|octet| octet[0] == group));
    }
}

#[test]
fn broken_spdus_are_refused() {
    for (octets, second, error) in [
        ("03 00", false, SpduError::Identifier(3)),
        ("3100", true, SpduError::Missing(42)),
        ("3103 2a0161", true, SpduError::Value(42)),
        ("3109 2a0731323334353637", true, SpduError::Value(42)),
        ("2d02 2901", true, SpduError::Length),
        ("2d09 290741424344454647", true, SpduError::Value(41)),
        ("2906 0f0101 2a0131", true, SpduError::Identifier(41)),
        ("0d04 2103 aaaa", false, SpduError::Length),
        ("1d0a 2103 2a0131 2903020109", true, SpduError::Missing(41)),
        ("0d ff 00", false, SpduError::Length),
    ] {
        assert_eq!(
            Spdu::read(&hex(octets), second).unwrap_err(),
            error,
            "{octets}"
        );
    }
    let many = Bytes::from([&[13, 130][..], &[99, 0].repeat(65)].concat());
    assert_eq!(Spdu::read(&many, false), Err(SpduError::Length));
}

#[test]
fn an_activity_is_sent_and_confirmed() {
    for chunk in [1, 3, 1000] {
        let (mut a, mut b) = established(3, chunk);
        a.activity_start(hex("020101")).unwrap();
        a.data(Pieces::from(vec![1; 10]), false).unwrap();
        a.data(Pieces::from(vec![2; 5]), true).unwrap();
        assert_eq!(a.sync_minor(), Ok(1));
        a.data(Pieces::from(vec![3; 5]), true).unwrap();
        a.activity_end().unwrap();
        carry(&mut a, &mut b, chunk);
        let seen = events(&mut b);
        assert_eq!(seen[0], SessionEvent::ActivityStart(hex("020101")));
        let octets: usize = seen
            .iter()
            .map(|event| match event {
                SessionEvent::Data(octets, _) => octets.len(),
                _ => 0,
            })
            .sum();
        let ends = seen
            .iter()
            .filter(|event| matches!(event, SessionEvent::Data(_, true)));
        assert_eq!((octets, ends.count()), (20, 2));
        assert_eq!(seen.last(), Some(&SessionEvent::ActivityEnd(2)));
        // PLEASE TOKENS comes before the acknowledgements that are owed.
        b.token_please(Tokens::DATA, hex("020100")).unwrap();
        b.sync_minor_response(1).unwrap();
        assert!(b.sync_minor_response(2).is_err());
        b.activity_end_response().unwrap();
        carry(&mut b, &mut a, chunk);
        assert_eq!(
            events(&mut a),
            [
                SessionEvent::TokenPlease(Tokens::DATA, hex("020100")),
                SessionEvent::SyncMinorConfirm(1),
                SessionEvent::ActivityEndConfirm,
            ]
        );
        a.control_give().unwrap();
        carry(&mut a, &mut b, chunk);
        carry(&mut b, &mut a, chunk);
        assert_eq!(events(&mut b), [SessionEvent::ControlGive]);
        assert!(b.has_tokens() && a.state() == State::Sta713);
        b.release(Bytes::new()).unwrap();
        carry(&mut b, &mut a, chunk);
        assert_eq!(events(&mut a), [SessionEvent::Release(Bytes::new())]);
        a.release_response(Bytes::new()).unwrap();
        assert_eq!(a.timer(), Some(SessionTimer::Tim));
        carry(&mut a, &mut b, chunk);
        let end = [
            SessionEvent::ReleaseConfirm(Bytes::new()),
            SessionEvent::TransportDisconnect,
        ];
        assert_eq!(events(&mut b), end);
        a.transport_disconnected();
        assert_eq!((events(&mut a), a.state()), (vec![], State::Sta01));
    }
}

#[test]
fn please_tokens_may_carry_an_acknowledgement() {
    let (mut a, mut b) = established(2, 1000);
    a.activity_start(hex("020101")).unwrap();
    a.data(Pieces::from(vec![1]), true).unwrap();
    a.sync_minor().unwrap();
    carry(&mut a, &mut b, 1000);
    a.receive(hex("0208 100101 c103020103 3203 2a0131"), true);
    assert_eq!(
        events(&mut a),
        [
            SessionEvent::SyncMinorConfirm(1),
            SessionEvent::TokenPlease(Tokens::DATA, hex("020103")),
        ]
    );
}

#[test]
fn an_activity_is_interrupted_resumed_and_discarded() {
    let (mut a, mut b) = established(1, 7);
    a.activity_start(hex("020101")).unwrap();
    a.data(Pieces::from(vec![1; 10]), false).unwrap();
    carry(&mut a, &mut b, 7);
    events(&mut b);
    a.activity_interrupt(Exception::LocalUserError).unwrap();
    carry(&mut a, &mut b, 7);
    assert_eq!(
        events(&mut b).last(),
        Some(&SessionEvent::ActivityInterrupt(Exception::LocalUserError))
    );
    b.activity_interrupt_response().unwrap();
    carry(&mut b, &mut a, 7);
    assert_eq!(events(&mut a), [SessionEvent::ActivityInterruptConfirm]);
    let resume = ActivityResume {
        old_activity: hex("020101"),
        serial: 4,
        activity: hex("020102"),
        ..ActivityResume::default()
    };
    a.activity_resume(resume.clone()).unwrap();
    a.data(Pieces::from(vec![1]), true).unwrap();
    assert_eq!(a.sync_minor(), Ok(5));
    carry(&mut a, &mut b, 7);
    assert_eq!(events(&mut b)[0], SessionEvent::ActivityResume(resume));
    b.exception_report(Exception::LocalUserError, Bytes::new())
        .unwrap();
    a.data(Pieces::from(vec![9; 100]), true).unwrap();
    assert_eq!(a.sync_minor(), Ok(6));
    carry(&mut a, &mut b, 7);
    carry(&mut b, &mut a, 7);
    assert_eq!(a.state(), State::Sta20);
    assert!(a.data(Pieces::new(), true).is_err());
    a.activity_discard(Exception::NonSpecific).unwrap();
    carry(&mut a, &mut b, 7);
    assert_eq!(
        events(&mut b),
        [SessionEvent::ActivityDiscard(Exception::NonSpecific)]
    );
    b.activity_discard_response().unwrap();
    carry(&mut b, &mut a, 7);
    assert_eq!(
        events(&mut a).last(),
        Some(&SessionEvent::ActivityDiscardConfirm)
    );
    assert_eq!((a.state(), b.state()), (State::Sta713, State::Sta713));
    assert!(a.has_tokens());
}

#[test]
fn long_user_data_propose_version_2_and_overflow() {
    for length in [512, 513, 10_240, 10_241, 100_000] {
        let mut a = Session::initiator(SessionConfig::default());
        let mut b = Session::responder(SessionConfig::default());
        let data = Bytes::from(vec![5; length]);
        a.connect(connecting(data.clone())).unwrap();
        a.transport_connected();
        let first = if length > 10_240 {
            State::Sta02B
        } else {
            State::Sta02A
        };
        assert_eq!(a.state(), first);
        for _ in 0..2 {
            carry(&mut a, &mut b, 4000);
            carry(&mut b, &mut a, 4000);
        }
        let Some(SessionEvent::ConnectIndication(connect)) = b.poll() else {
            panic!("an indication of {length}")
        };
        assert_eq!(connect.user_data, data);
        assert_eq!(connect.item.versions, if length > 512 { 2 } else { 3 });
        assert_eq!((a.state(), b.state()), (State::Sta02A, State::Sta08));
    }
}

#[test]
fn version_1_holds_512_octets_and_9_of_an_abort() {
    let mut a = Session::initiator(config(1));
    assert!(a.connect(connecting(vec![0; 513].into())).is_err());
    let (mut a, mut b) = established(1, 99);
    assert_eq!((a.version(), b.version()), (1, 1));
    assert!(b.token_please(Tokens::DATA, vec![0; 513].into()).is_err());
    a.abort(vec![1; 9].into());
    carry(&mut a, &mut b, 99);
    let end = [
        SessionEvent::UserAbort(vec![1; 9].into()),
        SessionEvent::TransportDisconnect,
    ];
    assert_eq!(events(&mut b), end);
    let (mut a, mut b) = established(1, 99);
    a.abort(vec![1; 10].into());
    carry(&mut a, &mut b, 99);
    assert_eq!(events(&mut b)[0], SessionEvent::UserAbort(Bytes::new()));
}

#[test]
fn versions_without_a_common_one_are_refused() {
    let mut a = Session::initiator(config(1));
    let mut b = Session::responder(config(2));
    a.connect(connecting(Bytes::new())).unwrap();
    a.transport_connected();
    carry(&mut a, &mut b, 99);
    carry(&mut b, &mut a, 99);
    let Some(SessionEvent::Refused(refuse)) = a.poll() else {
        panic!("a refusal")
    };
    assert_eq!(refuse.reason, RefuseReason::Version);
    assert_eq!(refuse.versions, Some(2));
}

#[test]
fn ssdus_are_cut_to_the_tsdu_maximum_size() {
    // A peer that proposes 128 octets in both directions, and the tokens at the responder.
    let mut b = Session::responder(SessionConfig::default());
    b.receive(
        hex("0d15 050f 130100 150400800080 160102 1a0115 14020249"),
        true,
    );
    assert!(matches!(b.poll(), Some(SessionEvent::ConnectIndication(_))));
    b.accept(Accepting::default()).unwrap();
    b.take_output();
    b.activity_start(hex("020101")).unwrap();
    b.take_output();
    b.data(Pieces::from(vec![1; 100]), false).unwrap();
    b.data(Pieces::from(vec![2; 200]), true).unwrap();
    let tsdus: Vec<Bytes> = std::iter::from_fn(|| b.take_output())
        .map(|(octets, end)| {
            assert!(end);
            octets.into_bytes()
        })
        .collect();
    let lengths: Vec<usize> = tsdus.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [128, 128, 65]);
    assert_eq!(&tsdus[0][..7], &hex("0100 0103 190101")[..]);
    assert_eq!(&tsdus[1][..7], &hex("0100 0103 190100")[..]);
    assert_eq!(&tsdus[2][..7], &hex("0100 0103 190102")[..]);
    let (mut a, mut c) = established(2, 99);
    a.activity_start(hex("020101")).unwrap();
    carry(&mut a, &mut c, 99);
    events(&mut c);
    for tsdu in tsdus {
        c.receive(tsdu, true);
    }
    let ends: Vec<bool> = events(&mut c)
        .iter()
        .map(|event| matches!(event, SessionEvent::Data(_, true)))
        .collect();
    assert_eq!(ends, [false, false, true]);
}

#[test]
fn an_abort_ends_the_tsdu_that_is_being_sent() {
    let (mut a, mut b) = established(2, 5);
    a.activity_start(hex("020101")).unwrap();
    a.data(Pieces::from(vec![1; 10]), false).unwrap();
    a.abort(hex("aa"));
    carry(&mut a, &mut b, 5);
    let seen = events(&mut b);
    assert!(
        seen.contains(&SessionEvent::UserAbort(hex("aa"))),
        "{seen:?}"
    );
}

#[test]
fn spdus_of_category_2_do_not_stand_alone_and_not_together() {
    for octets in [
        "2d05 2903020101",
        "0100 2d05 2903020101 3103 2a0131",
        "1500 1500",
        "0100 1500",
    ] {
        let (_, mut b) = established(2, 99);
        b.receive(hex(octets), true);
        assert!(
            matches!(b.poll(), Some(SessionEvent::ProviderAbort(_))),
            "{octets}"
        );
        let abort = b.take_output().unwrap().0.into_bytes();
        assert_eq!(abort, hex("1903 110105"));
        assert_eq!(b.state(), State::Sta16);
    }
}

#[test]
fn long_spdus_are_refused_before_they_are_there() {
    let mut b = Session::responder(SessionConfig {
        spdu_max: 1000,
        ..SessionConfig::default()
    });
    b.receive(hex("0d ff 0400"), false);
    assert!(matches!(
        b.poll(),
        Some(SessionEvent::ProviderAbort(Fault::Malformed(
            SpduError::TooLong(1000)
        )))
    ));
}

#[test]
fn a_tsdu_may_end_with_no_octets() {
    let (_, mut b) = established(2, 99);
    b.receive(hex("0100 2d05 2903020101"), false);
    assert_eq!(b.poll(), None);
    b.receive(Bytes::new(), true);
    assert_eq!(b.poll(), Some(SessionEvent::ActivityStart(hex("020101"))));
}

#[test]
fn an_accept_without_token_settings_leaves_them_as_proposed() {
    for (responder, here) in [(false, true), (true, false)] {
        let mut a = Session::initiator(SessionConfig::default());
        let request = Connecting {
            responder_has_tokens: responder,
            ..Connecting::default()
        };
        a.connect(request).unwrap();
        a.transport_connected();
        a.take_output();
        a.receive(hex("0e0c 0506 130100 160102 14020249"), true);
        assert!(matches!(a.poll(), Some(SessionEvent::ConnectConfirm(_))));
        assert_eq!(a.has_tokens(), here);
    }
}
