use proptest::prelude::*;

use super::*;

pub(crate) fn sample() -> Envelope {
    Envelope {
        head: ScheduleHead {
            trace: TraceId::new(7),
            accepted: Timestamp::from_millis(1_000),
            seen: None,
            expires: None,
            not_before: Some(Timestamp::from_millis(2_000)),
            held_until: None,
            held_since: None,
            held_for: HoldCause::Operator,
            is_released: false,
            attempts: 3,
            delay_noticed: true,
            priority: 0,
            size: 1024,
            last_reply: Some("451 4.3.0 try later".to_owned()),
        },
        mail: Mail {
            reverse_path: Some("sender@example.org".to_owned()),
            envid: Some("QQ314159".to_owned()),
            ret: Some(Ret::Headers),
            smtputf8: true,
            body_type: BodyType::EightBitMime,
            tls: TlsWish::None,
            message_id: None,
            recipients: vec![
                Recipient {
                    address: "jörg@example.net".to_owned(),
                    notify: Notify::on(true, true, false),
                    orcpt: Some("rfc822;joerg@example.net".to_owned()),
                },
                Recipient {
                    address: "b@example.net".to_owned(),
                    notify: Notify::NEVER,
                    orcpt: None,
                },
            ],
        },
    }
}

#[test]
fn an_envelope_survives_its_record() {
    let envelope = sample();
    assert_eq!(Envelope::decode(&envelope.encode()), Ok(envelope));
}

/// A reader limited to version 1 must refuse a record that it would send in the clear.
#[test]
fn wishes_about_encryption_survive() {
    for (tls, version) in [
        (TlsWish::Required, 2),
        (TlsWish::Optional, 1),
        (TlsWish::None, 1),
    ] {
        let envelope = Envelope {
            mail: Mail {
                tls,
                ..sample().mail
            },
            ..sample()
        };
        let bytes = envelope.encode();
        assert_eq!(bytes[0], version);
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
    }
}

/// A reader without priorities reads such a record as a record without priority.
#[test]
fn a_priority_stands_behind_everything_else() {
    let plain = sample().encode();
    for priority in [PRIORITY_MIN, -1, 1, PRIORITY_MAX] {
        let envelope = Envelope {
            head: ScheduleHead {
                priority,
                ..sample().head
            },
            ..sample()
        };
        let bytes = envelope.encode();
        assert_eq!(bytes[..plain.len()], plain);
        assert_eq!(bytes[plain.len()..], priority.to_le_bytes());
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
    }
    let odd = [&plain[..], &[100]].concat();
    assert_eq!(Envelope::decode(&odd).map(|read| read.head.priority), Ok(9));
}

/// A reader limited to versions 1 and 2 must refuse a held record that it would deliver.
#[test]
fn a_hold_stands_behind_everything_else_in_version_3() {
    for (until, tls) in [(0x0102, TlsWish::None), (u64::MAX, TlsWish::Required)] {
        let plain = Envelope {
            mail: Mail {
                tls,
                ..sample().mail
            },
            ..sample()
        };
        let envelope = Envelope {
            head: ScheduleHead {
                held_until: Some(Timestamp::from_millis(until)),
                ..plain.head.clone()
            },
            ..plain.clone()
        };
        let (mut expected, bytes) = (plain.encode(), envelope.encode());
        expected[0] = 3;
        expected.push(0);
        expected.extend_from_slice(&until.to_le_bytes());
        assert_eq!(bytes, expected);
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        for end in 0..bytes.len() {
            assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}

/// An older reader skips the field.
#[test]
fn since_when_a_hold_is_stands_behind_its_end() {
    let without = Envelope {
        head: ScheduleHead {
            held_until: Some(Timestamp::from_millis(9)),
            ..sample().head
        },
        ..sample()
    };
    let envelope = Envelope {
        head: ScheduleHead {
            held_since: Some(Timestamp::from_millis(5)),
            ..without.head.clone()
        },
        ..without.clone()
    };
    let (plain, bytes) = (without.encode(), envelope.encode());
    assert_eq!(bytes, [&plain[..], &5_u64.to_le_bytes()].concat());
    assert_eq!(Envelope::decode(&bytes), Ok(envelope));
    for end in plain.len() + 1..bytes.len() {
        assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
}

/// An older reader skips the field, and a newer cause leaves the message held.
#[test]
fn the_cause_of_a_hold_stands_behind_its_times() {
    let times = [None, Some(Timestamp::from_millis(5))];
    for (since, seen) in times
        .iter()
        .flat_map(|since| times.map(|seen| (*since, seen)))
    {
        let head = ScheduleHead {
            held_until: Some(Timestamp::from_millis(9)),
            held_since: since,
            seen,
            held_for: HoldCause::Sending,
            ..sample().head
        };
        let envelope = Envelope { head, ..sample() };
        let bytes = envelope.encode();
        assert_eq!(Envelope::decode(&bytes), Ok(envelope.clone()));
        let (end, rest) = bytes.split_last().unwrap();
        assert_eq!(*end, 1);
        let cause = |bytes: &[u8]| Envelope::decode(bytes).unwrap().head.held_for;
        assert_eq!(cause(rest), HoldCause::Operator);
        assert_eq!(cause(&[rest, &[77]].concat()), HoldCause::Operator);
        // The cause is forgotten with the hold.
        let mut free = envelope;
        free.head.held_until = None;
        let read = Envelope::decode(&free.encode()).unwrap();
        assert_eq!(read.head.held_for, HoldCause::Operator);
    }
}

/// An older reader skips the field of a waiting message, and takes an operator for the cause of a hold.
#[test]
fn a_release_stands_behind_everything_else() {
    let time = Some(Timestamp::from_millis(9));
    for (held_until, held_for, end) in [
        (None, HoldCause::Operator, 128),
        (time, HoldCause::Operator, 128),
        (time, HoldCause::Sending, 129),
    ] {
        for seen in [None, time] {
            let head = ScheduleHead {
                held_until,
                held_for,
                seen,
                is_released: true,
                ..sample().head
            };
            let envelope = Envelope { head, ..sample() };
            let bytes = envelope.encode();
            assert_eq!(bytes.last(), Some(&end));
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        }
    }
}

/// An older reader skips the field: every reader stops before unknown fields.
#[test]
fn when_it_was_first_seen_stands_behind_everything_else() {
    let seen = Some(Timestamp::from_millis(0x0908));
    for (until, since) in [(None, None), (Some(9), None), (Some(9), Some(5))] {
        let without = Envelope {
            head: ScheduleHead {
                held_until: until.map(Timestamp::from_millis),
                held_since: since.map(Timestamp::from_millis),
                ..sample().head
            },
            ..sample()
        };
        let envelope = Envelope {
            head: ScheduleHead {
                seen,
                ..without.head.clone()
            },
            ..without.clone()
        };
        let (mut expected, bytes) = (without.encode(), envelope.encode());
        match (until, since) {
            (None, _) => expected.push(0),
            (Some(_), None) => expected.extend_from_slice(&[0; 8]),
            _ => {}
        }
        assert_eq!(bytes, [&expected[..], &[8, 9, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!(Envelope::decode(&bytes), Ok(envelope));
        for end in expected.len() + 1..bytes.len() {
            assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}

/// An older reader skips the field and delivers by age.
#[test]
fn the_own_end_stands_behind_everything_else() {
    let own = Some(Timestamp::from_millis(0x0908));
    let plain = sample().encode();
    let mut envelope = sample();
    envelope.head.expires = own;
    let bytes = envelope.encode();
    // No priority, not seen, no cause.
    let expected = [&plain[..], &[0; 10], &[8, 9, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(bytes, expected);
    assert_eq!(Envelope::decode(&bytes[..plain.len() + 10]), Ok(sample()));
    for end in plain.len() + 11..bytes.len() {
        assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
    let none = [&expected[..plain.len() + 10], &[0; 8]].concat();
    assert_eq!(Envelope::decode(&none), Ok(sample()));
    let more = [&expected[..], b"fields of a newer program"].concat();
    assert_eq!(Envelope::decode(&more), Ok(envelope));
}

#[test]
fn a_lifetime_stays_when_the_acceptance_moves() {
    let at = Timestamp::from_millis;
    let mut head = sample().head;
    let age = std::time::Duration::from_millis(50);
    assert_eq!((head.lifetime(), head.end(age)), (None, at(1_050)));
    head.accept_at(at(700));
    assert_eq!((head.accepted, head.expires), (at(700), None));
    head.expires = Some(at(1_000));
    assert_eq!(head.lifetime(), Some(std::time::Duration::from_millis(300)));
    assert_eq!(head.end(age), at(1_000));
    head.accept_at(at(5_000));
    assert_eq!((head.accepted, head.expires), (at(5_000), Some(at(5_300))));
    // An end before the acceptance has come.
    head.expires = Some(at(1));
    assert_eq!(head.lifetime(), Some(std::time::Duration::ZERO));
}

/// Any head that the schedule makes: the cause is of a hold, and no time is the epoch.
fn head() -> impl Strategy<Value = ScheduleHead> {
    let time = || (1_u64..).prop_map(Timestamp::from_millis);
    let maybe = move || proptest::option::of(time());
    let cause = prop_oneof![
        Just(HoldCause::Operator),
        Just(HoldCause::Sending),
        Just(HoldCause::Quarantine)
    ];
    let hold = proptest::option::of((time(), maybe(), cause));
    let times = (time(), maybe(), maybe(), maybe(), hold);
    let rest = (any::<bool>(), any::<u16>(), any::<bool>(), -9_i8..=9);
    let reply = proptest::option::of("[a-z ]{1,40}");
    (times, rest, any::<u32>(), reply).prop_map(|(times, rest, size, last_reply)| {
        let (accepted, seen, expires, not_before, hold) = times;
        let (is_released, attempts, delay_noticed, priority) = rest;
        ScheduleHead {
            seen,
            expires,
            not_before,
            held_until: hold.map(|hold| hold.0),
            held_since: hold.and_then(|hold| hold.1),
            held_for: hold.map(|hold| hold.2).unwrap_or_default(),
            is_released,
            attempts,
            delay_noticed,
            priority,
            size,
            last_reply,
            ..ScheduleHead::new(TraceId::new(accepted.as_millis() / 2), accepted, 0)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_head_survives_its_record(head in head()) {
        let envelope = Envelope { head, ..sample() };
        let bytes = envelope.encode();
        prop_assert_eq!(Envelope::decode(&bytes), Ok(envelope.clone()));
        // The end of attempts takes nothing from what older programs read.
        if envelope.head.expires.is_some() {
            let mut older = envelope;
            older.head.expires = None;
            prop_assert_eq!(Envelope::decode(&bytes[..bytes.len() - 8]), Ok(older));
        }
    }

    #[test]
    fn no_octets_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Envelope::decode(&bytes);
    }
}

#[test]
fn an_acceptance_in_the_future_is_one_at_first_sight() {
    let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
    let mut envelope = Envelope {
        head: ScheduleHead {
            accepted: at(1_000),
            ..sample().head
        },
        ..sample()
    };
    assert!(!envelope.head.see(at(971)) && !envelope.head.see(at(1_000)));
    assert_eq!(envelope.head.accepted_by(at(971)), at(971));
    assert!(envelope.head.see(at(500)) && !envelope.head.see(at(600)));
    assert_eq!(envelope.head.accepted_by(at(600)), at(500));
    // The clock was behind even then.
    assert!(envelope.head.see(at(400)));
    assert_eq!(envelope.head.accepted_by(at(450)), at(400));
    // Once the clock has reached the acceptance, the record counts; the clock that saw the message may have been
    // wrong.
    assert_eq!(envelope.head.accepted_by(at(1_000)), at(1_000));
}

#[test]
fn every_cut_is_an_error_and_never_a_panic() {
    let bytes = sample().encode();
    for end in 0..bytes.len() {
        assert!(Envelope::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn a_newer_version_is_named() {
    let mut bytes = sample().encode();
    bytes[0] = 9;
    assert_eq!(Envelope::decode(&bytes), Err(EnvelopeError::Version(9)));
}

#[test]
fn golden_bytes_of_version_1() {
    let envelope = Envelope {
        head: ScheduleHead {
            not_before: None,
            delay_noticed: false,
            last_reply: None,
            ..sample().head
        },
        mail: Mail {
            envid: None,
            recipients: vec![Recipient {
                address: "b@c".to_owned(),
                notify: Notify::default(),
                orcpt: None,
            }],
            reverse_path: None,
            ..sample().mail
        },
    };
    let expected = [
        &[
            1,
            1 | 2 | 16,
            3,
            0,
            7,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0xe8,
            3,
            0,
            0,
            0,
            0,
            0,
            0,
        ][..],
        &[0; 8],
        &[0, 4, 0, 0],
        &[0; 8],
        &[1, 0, 0, 3, 0, b'b', b'@', b'c', 0, 0],
    ]
    .concat();
    assert_eq!(envelope.encode(), expected);
}

#[test]
fn notify_words_follow_rfc_3461() {
    assert!(Notify::default().failure() && Notify::default().delay());
    assert!(!Notify::default().success() && !Notify::default().given());
    assert!(!Notify::NEVER.failure() && Notify::NEVER.given());
    assert!(!Notify::on(true, false, false).failure());
}
