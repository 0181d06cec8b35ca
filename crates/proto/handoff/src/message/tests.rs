use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

const DELIVERY: Delivery<'_> = Delivery {
    number: 0x0807_0605_0403_0201,
    may_relay: true,
    head: b"head",
};

fn frame(delivery: &Delivery<'_>, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    delivery.encode(body.len(), &mut frame);
    frame.extend_from_slice(body);
    frame
}

fn said(answer: &Answer) -> Vec<u8> {
    let mut frame = Vec::new();
    answer.encode(&mut frame);
    frame
}

fn answers() -> [(Answer, &'static [u8]); 5] {
    let number = 3;
    [
        (
            Answer::Stored {
                number,
                id: "AB".to_owned(),
            },
            b"\x0c\0\0\0\x01\x81\x03\0\0\0\0\0\0\0AB",
        ),
        (
            Answer::Refused { number, refusal: 9 },
            b"\x0b\0\0\0\x01\x82\x03\0\0\0\0\0\0\0\x09",
        ),
        (
            Answer::Site {
                number,
                permanent: true,
                text: "no".to_owned(),
            },
            b"\x0d\0\0\0\x01\x83\x03\0\0\0\0\0\0\0\x01no",
        ),
        (Answer::State(None), b"\x03\0\0\0\x01\x84\0"),
        (Answer::State(Some(7)), b"\x03\0\0\0\x01\x84\x07"),
    ]
}

#[test]
fn golden_octets_of_version_1() {
    let expected = b"\x15\0\0\0\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08\x01\x04\0\0\0headx\n";
    assert_eq!(frame(&DELIVERY, b"x\n"), expected);
    assert_eq!(
        Delivery::decode(&expected[4..]),
        Ok((DELIVERY, &b"x\n"[..]))
    );
    for (answer, octets) in answers() {
        assert_eq!(said(&answer), octets);
        assert_eq!(Answer::decode(&octets[4..]), Ok(answer));
    }
}

#[test]
fn lengths_are_bounded_before_memory_is_taken() {
    assert_eq!(read_length([21, 0, 0, 0], 21), Ok(21));
    let error = read_length([22, 0, 0, 0], 21).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected at most 21 in length of the frame; found 22"
    );
    assert_eq!(frame_octets_max(10), 10 + HEAD_OCTETS_MAX + 15);
}

#[test]
fn every_cut_of_an_answer_is_an_error_or_a_shorter_text() {
    for (answer, octets) in answers() {
        for end in 4..octets.len() {
            match (Answer::decode(&octets[4..end]), &answer) {
                (Ok(Answer::Stored { id, .. }), _) => assert!("AB".starts_with(&id)),
                (Ok(Answer::Site { text, .. }), _) => assert!("no".starts_with(&text)),
                (decoded, _) => assert!(decoded.is_err(), "{decoded:?}"),
            }
        }
    }
    for end in 0..BEFORE_HEAD + 4 {
        assert!(Delivery::decode(&frame(&DELIVERY, b"")[4..4 + end]).is_err());
    }
}

#[test]
fn what_is_wrong_is_named() {
    let cases: [(&[u8], &str); 6] = [
        (b"\x02\x84\0", "expected version 1; found version 2"),
        (
            b"\x01\x85\0\0\0\0\0\0\0\0",
            "expected a kind for this side; found kind 133",
        ),
        (b"\x01\x84\0.", "expected the end; found 1 more octets"),
        (
            b"\x01\x82\0\0\0\0\0\0\0\0",
            "expected 1 octets in refusal; found 0",
        ),
        (
            b"\x01\x83\0\0\0\0\0\0\0\0\x02",
            "expected 0 or 1 in permanence; found 2",
        ),
        (
            b"\x01\x81\0\0\0\0\0\0\0\0\xff",
            "expected UTF-8 in queue id; found other octets",
        ),
    ];
    for (octets, expected) in cases {
        assert_eq!(Answer::decode(octets).unwrap_err().to_string(), expected);
    }
    assert_eq!(Delivery::decode(b"\x01\x81"), Err(HandoffError::Kind(129)));
    let long = [
        &b"\x01\x81\0\0\0\0\0\0\0\0"[..],
        &[b'x'; ANSWER_OCTETS_MAX + 1],
    ]
    .concat();
    assert!(Answer::decode(&long).is_err());
}

proptest! {
    #[test]
    fn what_is_decoded_has_one_form(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok((delivery, body)) = Delivery::decode(&octets) {
            prop_assert_eq!(&frame(&delivery, body)[4..], &octets[..]);
        }
        if let Ok(answer) = Answer::decode(&octets) {
            prop_assert_eq!(&said(&answer)[4..], &octets[..]);
        }
    }
}
