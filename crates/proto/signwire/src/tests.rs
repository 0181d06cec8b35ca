//! Frames there and back, cut, and drawn octet by octet.

use proptest::prelude::*;

use super::*;

fn request(octets: &[u8]) -> Result<Option<(u64, String)>, WireError> {
    let Some(frame) = Frame::read(octets)? else {
        return Ok(None);
    };
    Ok(Some((
        frame.number,
        format!("{:?}", Request::decode(&frame)?),
    )))
}

#[test]
fn golden_octets_of_version_1() {
    let mut octets = Vec::new();
    let sign = Request::Sign {
        algorithm: Algorithm::Ed25519Sha256,
        domain: "a.b",
        selector: "s",
        octets: b"xyz",
    };
    sign.encode(0x0102, &mut octets);
    let expected = [
        &[20, 0, 0, 0, 1, 2, 2, 1, 0, 0, 0, 0, 0, 0, 2, 3][..],
        b"a.b",
        &[1],
        b"sxyz",
    ]
    .concat();
    assert_eq!(octets, expected);
    let mut octets = Vec::new();
    let keys = Answer::Keys {
        holds_ms: 9,
        keys: vec![ActiveKey {
            algorithm: Algorithm::RsaSha256,
            selector: "r1".to_owned(),
        }],
    };
    keys.encode(3, &mut octets);
    let expected = [
        &[
            19, 0, 0, 0, 1, 129, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 1, 2,
        ][..],
        b"r1",
    ]
    .concat();
    assert_eq!(octets, expected);
}

fn waiting() -> Answer {
    Answer::Waiting {
        count: 3,
        pause_ms: 0,
        key: Some(WaitingKey {
            domain: "a.b".to_owned(),
            selector: "s".to_owned(),
            looks: 2,
            record: "p=AA".to_owned(),
        }),
    }
}

#[test]
fn golden_octets_of_waiting_keys() {
    let mut octets = Vec::new();
    Request::Waiting.encode(4, &mut octets);
    assert_eq!(octets, [10, 0, 0, 0, 1, 5, 4, 0, 0, 0, 0, 0, 0, 0]);
    octets.clear();
    let seen = Request::Seen {
        domain: "a.b",
        selector: "s",
    };
    seen.encode(5, &mut octets);
    let expected = [
        &[16, 0, 0, 0, 1, 6, 5, 0, 0, 0, 0, 0, 0, 0][..],
        b"\x03a.b\x01s",
    ]
    .concat();
    assert_eq!(octets, expected);
    let frame = Frame::read(&octets).unwrap().unwrap();
    assert_eq!(Request::decode(&frame), Ok(seen));
    octets.clear();
    waiting().encode(6, &mut octets);
    let expected = [
        &[32, 0, 0, 0, 1, 132, 6, 0, 0, 0, 0, 0, 0, 0][..],
        &[3, 0, 0, 0, 0, 0, 0, 0],
        b"\x03a.b\x01s\x02\0\0\0p=AA",
    ]
    .concat();
    assert_eq!(octets, expected);
    octets.clear();
    Answer::Activated.encode(7, &mut octets);
    assert_eq!(octets, [10, 0, 0, 0, 1, 133, 7, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn waiting_keys_decode_to_equal_ones_with_a_bound() {
    let none = Answer::Waiting {
        count: 0,
        pause_ms: 5_000,
        key: None,
    };
    for answer in [waiting(), none, Answer::Activated] {
        let mut octets = Vec::new();
        answer.encode(6, &mut octets);
        let frame = Frame::read(&octets).unwrap().unwrap();
        assert_eq!(Answer::decode(&frame), Ok(answer));
    }
    let mut octets = Vec::new();
    waiting().encode(6, &mut octets);
    let frame = Frame::read(&octets).unwrap().unwrap();
    for content in 9..frame.content.len() - 4 {
        let cut = Frame {
            content: &frame.content[..content],
            ..frame
        };
        assert_eq!(Answer::decode(&cut), Err(WireError::Content), "{content}");
    }
    let long = [frame.content, &[b'A'; RECORD_OCTETS_MAX]].concat();
    let long = Frame {
        content: &long,
        ..frame
    };
    assert_eq!(Answer::decode(&long), Err(WireError::Content));
}

fn certificate() -> Answer {
    Answer::Certificate {
        revision: 5,
        count: 2,
        certificate: Some(Certificate {
            name: "a.b".to_owned(),
            fingerprint: [7; 32],
            schemes: vec![0x0403],
            chain: vec![b"own".to_vec(), b"ca".to_vec()],
        }),
    }
}

#[test]
fn golden_octets_of_certificates_and_handshakes() {
    let mut octets = Vec::new();
    Request::Certificate { index: 0x0102 }.encode(4, &mut octets);
    assert_eq!(octets, [12, 0, 0, 0, 1, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
    octets.clear();
    let handshake = Request::Handshake {
        scheme: 0x0804,
        certificate: [9; 32],
        octets: b"xy",
    };
    handshake.encode(5, &mut octets);
    let expected = [
        &[46, 0, 0, 0, 1, 4, 5, 0, 0, 0, 0, 0, 0, 0, 4, 8][..],
        &[9; 32],
        b"xy",
    ]
    .concat();
    assert_eq!(octets, expected);
    octets.clear();
    certificate().encode(6, &mut octets);
    let expected = [
        &[73, 0, 0, 0, 1, 131, 6, 0, 0, 0, 0, 0, 0, 0][..],
        &[5, 0, 0, 0, 0, 0, 0, 0, 2, 0],
        b"\x03a.b",
        &[7; 32],
        &[1, 3, 4],
        b"\x02\x03\0\0\0own\x02\0\0\0ca",
    ]
    .concat();
    assert_eq!(octets, expected);
}

#[test]
fn certificates_decode_to_equal_ones_and_no_cut_one_does() {
    let mut octets = Vec::new();
    certificate().encode(6, &mut octets);
    let frame = Frame::read(&octets).unwrap().unwrap();
    assert_eq!(Answer::decode(&frame), Ok(certificate()));
    for content in 11..frame.content.len() {
        let cut = Frame {
            content: &frame.content[..content],
            ..frame
        };
        assert_eq!(Answer::decode(&cut), Err(WireError::Content), "{content}");
    }
    let beyond = Answer::Certificate {
        revision: 1,
        count: 0,
        certificate: None,
    };
    octets.clear();
    beyond.encode(6, &mut octets);
    let frame = Frame::read(&octets).unwrap().unwrap();
    assert_eq!(Answer::decode(&frame), Ok(beyond));
}

#[test]
fn a_chain_has_a_bound() {
    let mut octets = Vec::new();
    let Answer::Certificate {
        revision,
        count,
        certificate: Some(mut long),
    } = certificate()
    else {
        unreachable!()
    };
    long.chain = vec![Vec::new(); CHAIN_MAX + 1];
    long.schemes = vec![1; SCHEMES_MAX + 1];
    let certificate = Some(long);
    let answer = Answer::Certificate {
        revision,
        count,
        certificate,
    };
    answer.encode(1, &mut octets);
    let frame = Frame::read(&octets).unwrap().unwrap();
    let Ok(Answer::Certificate {
        certificate: Some(cut),
        ..
    }) = Answer::decode(&frame)
    else {
        panic!("expected a certificate")
    };
    assert_eq!(
        (cut.chain.len(), cut.schemes.len()),
        (CHAIN_MAX, SCHEMES_MAX)
    );
    // 14 octets of head, 10 of the list, 4 of the name, 32 of the fingerprint: the count of schemes.
    for count in [SCHEMES_MAX as u8 + 1, u8::MAX] {
        octets[60] = count;
        let frame = Frame::read(&octets).unwrap().unwrap();
        assert_eq!(Answer::decode(&frame), Err(WireError::Content));
    }
}

#[test]
fn every_cut_waits_for_more_and_every_length_is_checked() {
    let mut octets = Vec::new();
    Request::Keys {
        domain: "example.org",
    }
    .encode(1, &mut octets);
    for end in 0..octets.len() {
        assert_eq!(Frame::read(&octets[..end]), Ok(None), "cut at {end}");
    }
    let mut long = octets.clone();
    long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(Frame::read(&long), Err(WireError::Length(_))));
    long[..4].copy_from_slice(&9_u32.to_le_bytes());
    assert_eq!(Frame::read(&long), Err(WireError::Length(9)));
    let mut newer = octets.clone();
    newer[4] = 2;
    assert_eq!(Frame::read(&newer), Err(WireError::Version(2)));
    let mut other = octets;
    other[5] = 77;
    assert_eq!(request(&other), Err(WireError::Kind(77)));
}

#[test]
fn what_is_too_long_for_a_frame_is_refused_by_its_reader() {
    let mut octets = Vec::new();
    let sign = Request::Sign {
        algorithm: Algorithm::RsaSha256,
        domain: "a",
        selector: "s",
        octets: &vec![0; FRAME_OCTETS_MAX],
    };
    sign.encode(1, &mut octets);
    assert!(matches!(Frame::read(&octets), Err(WireError::Length(_))));
    let most = Request::Sign {
        algorithm: Algorithm::RsaSha256,
        domain: &"d".repeat(255),
        selector: &"s".repeat(255),
        octets: &vec![7; SIGN_OCTETS_MAX],
    };
    octets.clear();
    most.encode(2, &mut octets);
    let frame = Frame::read(&octets).unwrap().expect("whole");
    assert_eq!(Request::decode(&frame), Ok(most));
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![Just(Algorithm::RsaSha256), Just(Algorithm::Ed25519Sha256)]
}

fn answer() -> impl Strategy<Value = Answer> {
    let key = (algorithm(), "[a-z0-9.-]{0,60}").prop_map(|(algorithm, selector)| ActiveKey {
        algorithm,
        selector,
    });
    prop_oneof![
        (any::<u32>(), prop::collection::vec(key, 0..=KEYS_MAX))
            .prop_map(|(holds_ms, keys)| Answer::Keys { holds_ms, keys }),
        prop::collection::vec(any::<u8>(), 0..600).prop_map(Answer::Signed),
        prop_oneof![
            Just(Reason::NoKey),
            Just(Reason::NotUnderstood),
            Just(Reason::Failed)
        ]
        .prop_map(Answer::Refused),
    ]
}

proptest! {
    #[test]
    fn requests_survive(
        number in any::<u64>(), algorithm in algorithm(), domain in "[a-z0-9.-]{0,255}",
        selector in "[a-z0-9.-]{0,255}", octets in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let sign = Request::Sign { algorithm, domain: &domain, selector: &selector, octets: &octets };
        let mut encoded = Vec::new();
        sign.encode(number, &mut encoded);
        let frame = Frame::read(&encoded).unwrap().unwrap();
        prop_assert_eq!((frame.number, frame.octets), (number, encoded.len()));
        prop_assert_eq!(Request::decode(&frame), Ok(sign));
    }

    #[test]
    fn answers_survive(number in any::<u64>(), answer in answer()) {
        let mut encoded = Vec::new();
        answer.encode(number, &mut encoded);
        let frame = Frame::read(&encoded).unwrap().unwrap();
        prop_assert_eq!(frame.number, number);
        prop_assert_eq!(Answer::decode(&frame), Ok(answer));
    }
}
