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
