use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

const PREFIX: Prefix = Prefix {
    number: 0x0807_0605_0403_0201,
    may_relay: true,
    head: 4,
    body: 2,
};
const BODY_MAX: usize = 1_000;

fn octets(prefix: &Prefix) -> [u8; PREFIX_OCTETS] {
    let mut octets = Vec::new();
    prefix.encode(&mut octets);
    octets.try_into().unwrap()
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
    let expected = b"\x15\0\0\0\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08\x01\x04\0\0\0";
    assert_eq!(&octets(&PREFIX), expected);
    assert_eq!(Prefix::decode(expected, BODY_MAX), Ok(PREFIX));
    for (answer, octets) in answers() {
        assert_eq!(said(&answer), octets);
        assert_eq!(Answer::decode(&octets[4..]), Ok(answer));
    }
}

#[test]
fn lengths_are_bounded_before_memory_is_taken() {
    let of = |head, body| {
        let prefix = Prefix {
            head,
            body,
            ..PREFIX
        };
        let decoded = Prefix::decode(&octets(&prefix), BODY_MAX);
        decoded
            .map(|decoded| assert_eq!(decoded, prefix))
            .map_err(|error| error.to_string())
    };
    assert_eq!(of(HEAD_OCTETS_MAX, BODY_MAX), Ok(()));
    assert_eq!(of(0, 0), Ok(()));
    let text = |text: &str| Err(text.to_owned());
    assert_eq!(
        of(0, 1_001),
        text("expected at most 1000 in text; found 1001")
    );
    assert_eq!(
        of(HEAD_OCTETS_MAX + 1, 0),
        text("expected at most 8388608 in length of the head; found 8388609")
    );
    assert_eq!(
        of(HEAD_OCTETS_MAX, 1_001),
        text("expected at most 8389623 in length of the frame; found 8389624")
    );
    // The frame ends within the prefix, or within the head.
    let with = |place: usize, octet| {
        let mut octets = octets(&PREFIX);
        octets[place] = octet;
        Prefix::decode(&octets, BODY_MAX).map_err(|error| error.to_string())
    };
    assert_eq!(
        with(0, 18),
        Err("expected 4 octets in head; found 3".to_owned())
    );
    assert_eq!(
        with(0, 14),
        Err("expected 4 octets in head; found 0".to_owned())
    );
    assert_eq!(
        with(4, 2),
        Err("expected version 1; found version 2".to_owned())
    );
    assert_eq!(
        with(5, 129),
        Err("expected a kind for this side; found kind 129".to_owned())
    );
    assert_eq!(
        with(14, 2),
        Err("expected 0 or 1 in permission to relay; found 2".to_owned())
    );
    assert_eq!(answer_length([0, 16, 0, 0]), Ok(4_096));
    let error = answer_length([1, 16, 0, 0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected at most 4096 in length of the answer; found 4097"
    );
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
}

proptest! {
    #[test]
    fn what_is_decoded_has_one_form(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(answer) = Answer::decode(&octets) {
            prop_assert_eq!(&said(&answer)[4..], &octets[..]);
        }
    }

    #[test]
    fn a_prefix_has_one_form(of in any::<[u8; PREFIX_OCTETS]>()) {
        if let Ok(prefix) = Prefix::decode(&of, usize::MAX) {
            prop_assert_eq!(octets(&prefix), of);
        }
    }
}
