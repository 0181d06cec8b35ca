use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::*;

const NUMBER: u64 = 0x0807_0605_0403_0201;

fn asked(request: &Request<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    request.encode(&mut frame);
    frame
}

fn said(answer: &Answer) -> Vec<u8> {
    let mut frame = Vec::new();
    answer.encode(&mut frame);
    frame
}

fn whole(frame: &[u8]) -> &[u8] {
    let (length, rest) = frame.split_first_chunk().expect("a length");
    assert_eq!(u32::from_le_bytes(*length) as usize, rest.len());
    rest
}

fn requests() -> [(Request<'static>, &'static [u8]); 5] {
    let message = Message {
        number: NUMBER,
        until: 0x0102,
        envelope: b"env",
        body: b"text",
    };
    let number = NUMBER;
    let destination = "example.org";
    [
        (
            Request::Find {
                number,
                destination,
            },
            b"\x15\0\0\0\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08example.org",
        ),
        (
            Request::Open { number },
            b"\x0a\0\0\0\x01\x02\x01\x02\x03\x04\x05\x06\x07\x08",
        ),
        (
            Request::Send(message),
            b"\x1d\0\0\0\x01\x03\x01\x02\x03\x04\x05\x06\x07\x08\x02\x01\0\0\0\0\0\0\x03\0\0\0envtext",
        ),
        (
            Request::Quit { number },
            b"\x0a\0\0\0\x01\x04\x01\x02\x03\x04\x05\x06\x07\x08",
        ),
        (
            Request::Forget { number },
            b"\x0a\0\0\0\x01\x05\x01\x02\x03\x04\x05\x06\x07\x08",
        ),
    ]
}

fn outcome() -> Outcome {
    Outcome {
        disposition: 1,
        from_remote: true,
        status: "4.2.1".to_owned(),
        reply: "450 4.2.1 busy".to_owned(),
    }
}

fn sessions() -> TlsSessions {
    TlsSessions {
        sessions: 258,
        policy: 1,
        domain: "b.c".to_owned(),
        lines: vec!["v: 1".to_owned(), String::new()],
        mx: vec!["*.c".to_owned()],
        failed: Some(TlsFailed {
            kind: 10,
            sender: None,
            receiver: Some(std::net::Ipv4Addr::new(192, 0, 2, 1).into()),
            host: "a.c".to_owned(),
            reason: "no".to_owned(),
        }),
    }
}

fn answers() -> [(Answer, &'static [u8]); 10] {
    let number = 3;
    let outcomes = Outcomes {
        usable: true,
        reports_taken_over: true,
        recipients: vec![outcome()],
    };
    [
        (
            Answer::Found {
                number,
                site: "a:25".to_owned(),
            },
            b"\x0e\0\0\0\x01\x81\x03\0\0\0\0\0\0\0a:25",
        ),
        (
            Answer::Unroutable {
                number,
                extent: Extent::Ever,
                status: 1,
                reply: "no".to_owned(),
            },
            b"\x0e\0\0\0\x01\x82\x03\0\0\0\0\0\0\0\x02\x01no",
        ),
        (
            Answer::Opened {
                number,
                remote: "mx".to_owned(),
                security: "clear".to_owned(),
            },
            b"\x15\0\0\0\x01\x83\x03\0\0\0\0\0\0\0\x02\0\0\0mxclear",
        ),
        (
            Answer::Sent { number, outcomes },
            b"\x2c\0\0\0\x01\x84\x03\0\0\0\0\0\0\0\x03\x01\0\0\0\x01\x01\x05\0\0\x004.2.1\x0e\0\0\x00450 4.2.1 busy",
        ),
        (
            Answer::Unsent {
                number,
                usable: true,
            },
            b"\x0b\0\0\0\x01\x85\x03\0\0\0\0\0\0\0\x01",
        ),
        (
            Answer::Closed { number },
            b"\x0a\0\0\0\x01\x86\x03\0\0\0\0\0\0\0",
        ),
        (
            Answer::Failed { number },
            b"\x0a\0\0\0\x01\x87\x03\0\0\0\0\0\0\0",
        ),
        (
            Answer::Counts(vec![(7, 258)]),
            b"\x0b\0\0\0\x01\x88\x01\0\0\0\x07\x02\x01\0\0",
        ),
        (Answer::Beat, b"\x02\0\0\0\x01\x89"),
        (
            Answer::Sessions(Box::new(sessions())),
            b"\x4a\0\0\0\x01\x8a\x02\x01\0\0\x01\x03\0\0\0b.c\x02\0\0\0\x04\0\0\0v: 1\0\0\0\0\
              \x01\0\0\0\x03\0\0\0*.c\x01\x0a\0\x01\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01\
              \x03\0\0\0a.c\x02\0\0\0no",
        ),
    ]
}

#[test]
fn golden_octets_of_version_1() {
    for (request, expected) in requests() {
        assert_eq!(asked(&request), expected, "{request:?}");
        assert_eq!(Request::decode(whole(expected)), Ok(request));
    }
    for (answer, expected) in answers() {
        assert_eq!(said(&answer), expected, "{answer:?}");
        assert_eq!(Answer::decode(whole(expected)), Ok(answer));
    }
}

/// A cut frame is an error, or a frame with a shorter text at the end.
#[test]
fn a_cut_frame_is_no_other_frame() {
    for (request, frame) in requests() {
        let whole = whole(frame);
        for end in 0..whole.len() {
            match Request::decode(&whole[..end]) {
                Ok(cut) => assert!(
                    matches!(cut, Request::Find { .. } | Request::Send(_)) && cut != request
                ),
                Err(error) => assert!(matches!(error, HandoffError::Short { .. }), "{error}"),
            }
        }
    }
    for (answer, frame) in answers() {
        let whole = whole(frame);
        for end in 0..whole.len() {
            match Answer::decode(&whole[..end]) {
                Ok(cut) => assert_ne!(cut, answer),
                Err(error) => assert!(matches!(error, HandoffError::Short { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn octets_behind_the_last_field_are_refused() {
    let longer = |frame: Vec<u8>| [whole(&frame), b"x"].concat();
    let open = longer(asked(&Request::Open { number: 1 }));
    assert_eq!(Request::decode(&open), Err(HandoffError::Trailing(1)));
    for answer in [Answer::Beat, Answer::Closed { number: 1 }] {
        let frame = longer(said(&answer));
        assert_eq!(Answer::decode(&frame), Err(HandoffError::Trailing(1)));
    }
}

#[test]
fn values_and_lengths_have_bounds() {
    let version = Request::decode(b"\x02\x01").unwrap_err();
    assert_eq!(version.to_string(), "expected version 1; found version 2");
    assert_eq!(
        Request::decode(b"\x01\x63\0\0\0\0\0\0\0\0"),
        Err(HandoffError::Kind(0x63))
    );
    assert_eq!(
        Answer::decode(b"\x01\x01\0\0\0\0\0\0\0\0"),
        Err(HandoffError::Kind(1))
    );
    let long = "x".repeat(SHORT_OCTETS_MAX);
    let find = asked(&Request::Find {
        number: 1,
        destination: &long,
    });
    assert!(matches!(
        Request::decode(whole(&find)),
        Err(HandoffError::TooMuch { .. })
    ));
    for (frame, field) in [
        (
            &b"\x01\x84\0\0\0\0\0\0\0\0\x04\0\0\0\0"[..],
            "the bits 1 and 2",
        ),
        (b"\x01\x82\0\0\0\0\0\0\0\0\x03\0", "extent"),
        (b"\x01\x84\0\0\0\0\0\0\0\0\0\x01\0\0\0\x03\0", "disposition"),
        (b"\x01\x84\0\0\0\0\0\0\0\0\0\0\0\x01\0", "65535"),
        (b"\x01\x88\x01\x01\0\0", "256"),
        (b"\x01\x83\0\0\0\0\0\0\0\0\x01\0\x01\0", "65536"),
        (b"\x01\x8a\0\0\0\0\x03", "policy"),
        (b"\x01\x8a\0\0\0\0\0\0\x01\0\0", "255"),
        (b"\x01\x8a\0\0\0\0\0\0\0\0\0\x11\0\0\0", "16"),
        (
            b"\x01\x8a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x0b",
            "kind of a failure",
        ),
    ] {
        let error = Answer::decode(frame).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
    assert!(request_length([0xff; 4]).is_err());
    assert!(answer_length([0xff; 4]).is_err());
    assert_eq!(request_length([2, 1, 0, 0]), Ok(258));
}

#[test]
fn the_longest_destination_fits_and_no_longer_one() {
    let of = |octets: usize| {
        let destination = "x".repeat(octets);
        let find = Request::Find {
            number: 1,
            destination: &destination,
        };
        let frame = asked(&find);
        Request::decode(whole(&frame)).map(|decoded| assert_eq!(decoded, find))
    };
    assert_eq!(of(DESTINATION_OCTETS_MAX), Ok(()));
    let error = of(DESTINATION_OCTETS_MAX + 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected at most 4096 in frame without a message; found 4097"
    );
}

/// The lengths of the longest frames, from a short frame and the limits of its fields.
#[test]
fn the_longest_message_and_answer_fit_and_no_longer_ones() {
    let field = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
    let empty = Message {
        number: 1,
        until: 0,
        envelope: b"",
        body: b"",
    };
    let empty = asked(&Request::Send(empty));
    // The spool's records have texts of 2 GiB at most.
    let longest = whole(&empty).len() + ENVELOPE_OCTETS_MAX + 2 * 1_024 * 1_024 * 1_024;
    assert_eq!(request_length(field(longest)), Ok(longest));
    assert!(request_length(field(longest + 1)).is_err());
    let most = Outcome {
        status: "4".repeat(64),
        reply: "x".repeat(4_096),
        ..outcome()
    };
    let of = |results: usize| {
        let outcomes = Outcomes {
            usable: true,
            reports_taken_over: true,
            recipients: vec![most.clone(); results],
        };
        let answer = Answer::Sent {
            number: 1,
            outcomes,
        };
        whole(&said(&answer)).len()
    };
    let longest = of(0) + 65_535 * (of(1) - of(0));
    assert_eq!(answer_length(field(longest)), Ok(longest));
    assert!(answer_length(field(longest + 1)).is_err());
}

#[test]
fn every_answer_about_a_number_says_the_number() {
    for (answer, _) in answers() {
        let about_none = matches!(
            answer,
            Answer::Counts(_) | Answer::Beat | Answer::Sessions(_)
        );
        assert_eq!(answer.number(), (!about_none).then_some(3), "{answer:?}");
    }
}

#[test]
fn long_replies_are_cut_at_a_character() {
    let reply = format!("{}é", "x".repeat(4_095));
    let outcomes = Outcomes {
        usable: false,
        reports_taken_over: false,
        recipients: vec![Outcome { reply, ..outcome() }],
    };
    let answer = Answer::Sent {
        number: 1,
        outcomes,
    };
    match Answer::decode(whole(&said(&answer))) {
        Ok(Answer::Sent { outcomes, .. }) => {
            assert_eq!(outcomes.recipients[0].reply, "x".repeat(4_095));
        }
        other => panic!("{other:?}"),
    }
}

/// A courier cuts what is too long, so that no gateway refuses the frame.
#[test]
fn long_sessions_are_cut() {
    let long = "é".repeat(200);
    let many = TlsSessions {
        domain: long.clone(),
        lines: vec![long.clone(); 20],
        ..sessions()
    };
    let frame = said(&Answer::Sessions(Box::new(many)));
    match Answer::decode(whole(&frame)) {
        Ok(Answer::Sessions(cut)) => {
            assert_eq!(cut.domain, "é".repeat(127));
            assert_eq!(cut.lines, vec!["é".repeat(127); 16]);
            assert_eq!(cut.failed, sessions().failed);
        }
        other => panic!("{other:?}"),
    }
}

fn any_sessions() -> impl Strategy<Value = TlsSessions> {
    let list = || vec(".{0,40}", 0..16);
    let failed = (
        0..FAILURES,
        any::<Option<u32>>(),
        any::<Option<[u16; 8]>>(),
        ".{0,40}",
        ".{0,40}",
    );
    let failed = failed.prop_map(|(kind, sender, receiver, host, reason)| TlsFailed {
        kind,
        sender: sender.map(|bits| std::net::Ipv4Addr::from_bits(bits).into()),
        receiver: receiver.map(|parts| std::net::IpAddr::from(parts).to_canonical()),
        host,
        reason,
    });
    let failed = proptest::option::of(failed);
    let parts = (any::<u32>(), 0..3_u8, ".{0,40}", list(), list(), failed);
    parts.prop_map(
        |(sessions, policy, domain, lines, mx, failed)| TlsSessions {
            sessions,
            policy,
            domain,
            lines,
            mx,
            failed,
        },
    )
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let parts = (0..=2_u8, any::<bool>(), "[0-9.]{0,8}", ".{0,40}");
    parts.prop_map(|(disposition, from_remote, status, reply)| Outcome {
        disposition,
        from_remote,
        status,
        reply,
    })
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        (any::<u64>(), ".{0,40}").prop_map(|(number, site)| Answer::Found { number, site }),
        (any::<u64>(), any::<u8>(), ".{0,40}").prop_map(|(number, status, reply)| {
            Answer::Unroutable {
                number,
                extent: Extent::Site,
                status,
                reply,
            }
        }),
        (any::<u64>(), ".{0,40}", ".{0,40}").prop_map(|(number, remote, security)| {
            Answer::Opened {
                number,
                remote,
                security,
            }
        }),
        (
            any::<u64>(),
            any::<bool>(),
            any::<bool>(),
            vec(any_outcome(), 0..5)
        )
            .prop_map(
                |(number, usable, reports_taken_over, recipients)| Answer::Sent {
                    number,
                    outcomes: Outcomes {
                        usable,
                        reports_taken_over,
                        recipients
                    }
                }
            ),
        vec(any::<(u8, u32)>(), 0..9).prop_map(Answer::Counts),
        Just(Answer::Beat),
        any_sessions().prop_map(|sessions| Answer::Sessions(Box::new(sessions))),
    ]
}

proptest! {
    #[test]
    fn answers_survive_their_octets(answer in any_answer()) {
        prop_assert_eq!(Answer::decode(whole(&said(&answer))), Ok(answer));
    }

    #[test]
    fn messages_survive_their_octets(number: u64, until: u64, envelope: Vec<u8>, body: Vec<u8>) {
        let request = Request::Send(Message { number, until, envelope: &envelope, body: &body });
        let frame = asked(&request);
        prop_assert_eq!(Request::decode(whole(&frame)), Ok(request));
    }

    /// Whatever is read is written with the same octets.
    #[test]
    fn any_octets_are_refused_or_mean_one_thing(octets: Vec<u8>, kind in 1..=5_u8, answer in 129..=138_u8) {
        for kind in [kind, answer] {
            let frame = [&[VERSION, kind][..], &octets].concat();
            if let Ok(request) = Request::decode(&frame) {
                let again = asked(&request);
                prop_assert_eq!(whole(&again), &frame[..]);
            }
            if let Ok(answer) = Answer::decode(&frame) {
                let again = said(&answer);
                prop_assert_eq!(whole(&again), &frame[..]);
            }
        }
    }
}
