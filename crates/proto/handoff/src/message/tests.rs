use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;
use crate::question::Spf;

const NUMBER: u64 = 0x0807_0605_0403_0201;
const PREFIX: Prefix = Prefix {
    number: NUMBER,
    may_relay: true,
    spf: Some(SpfResults {
        sender: Spf::SoftFail,
        helo: None,
    }),
    ahead: 9,
    facts: 3,
    results: 1,
    head: 4,
    body: 2,
};
const BODY_MAX: usize = 1_000;

fn octets(frame: Frame) -> Vec<u8> {
    let mut octets = Vec::new();
    frame.encode(&mut octets);
    octets
}

/// Decodes the opening and the fields of a frame, and nothing behind.
fn decoded(octets: &[u8], body_max: usize) -> Result<Frame, HandoffError> {
    let (opening, rest) = octets.split_first_chunk().unwrap();
    let opening = Opening::decode(opening, body_max)?;
    opening.frame(&rest[..opening.fields()], body_max)
}

fn frames() -> [(Frame, &'static [u8]); 4] {
    let part = |client: &str| {
        Frame::Part(Part {
            number: NUMBER,
            place: 3,
            client: client.parse().unwrap(),
            octets: 5,
        })
    };
    [
        (
            Frame::Message(PREFIX),
            b"\x2a\0\0\0\x04\x01\x01\x02\x03\x04\x05\x06\x07\x08\x01\x05\x09\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x04\0\0\0",
        ),
        (
            part("192.0.2.1"),
            b"\x27\0\0\0\x04\x02\x01\x02\x03\x04\x05\x06\x07\x08\x03\0\0\0\0\0\0\0\
              \0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01",
        ),
        (
            part("2001:db8::1"),
            b"\x27\0\0\0\x04\x02\x01\x02\x03\x04\x05\x06\x07\x08\x03\0\0\0\0\0\0\0\
              \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01",
        ),
        (
            Frame::Forget { number: NUMBER },
            b"\x0a\0\0\0\x04\x03\x01\x02\x03\x04\x05\x06\x07\x08",
        ),
    ]
}

fn said(answer: &Answer) -> Vec<u8> {
    let mut frame = Vec::new();
    answer.encode(&mut frame);
    frame
}

fn answers() -> [(Answer, &'static [u8]); 7] {
    let number = 3;
    [
        (
            Answer::Stored {
                number,
                id: "AB".to_owned(),
            },
            b"\x0c\0\0\0\x04\x81\x03\0\0\0\0\0\0\0AB",
        ),
        (
            Answer::Refused { number, refusal: 9 },
            b"\x0b\0\0\0\x04\x82\x03\0\0\0\0\0\0\0\x09",
        ),
        (
            Answer::Site {
                number,
                permanent: true,
                text: "no".to_owned(),
            },
            b"\x0d\0\0\0\x04\x83\x03\0\0\0\0\0\0\0\x01no",
        ),
        (Answer::State(None), b"\x03\0\0\0\x04\x84\0"),
        (Answer::State(Some(7)), b"\x03\0\0\0\x04\x84\x07"),
        (
            Answer::Kept { number },
            b"\x0a\0\0\0\x04\x85\x03\0\0\0\0\0\0\0",
        ),
        (
            Answer::Gone { number, ends: true },
            b"\x0b\0\0\0\x04\x86\x03\0\0\0\0\0\0\0\x01",
        ),
    ]
}

#[test]
fn golden_octets_of_the_version() {
    for (frame, expected) in frames() {
        assert_eq!(octets(frame), expected);
        assert_eq!(decoded(expected, BODY_MAX), Ok(frame));
    }
    for (answer, octets) in answers() {
        assert_eq!(said(&answer), octets);
        assert_eq!(Answer::decode(&octets[4..]), Ok(answer));
    }
}

#[test]
fn all_results_of_spf_have_an_octet_and_no_other_octet_is_valid() {
    assert_eq!(SpfResults::of_octet(0), Some(None));
    let mut octets = vec![0];
    for sender in Spf::ALL.iter().copied() {
        for helo in Spf::ALL.iter().copied().map(Some).chain([None]) {
            let results = SpfResults { sender, helo };
            let octet = SpfResults::octet(Some(results));
            assert_eq!(SpfResults::of_octet(octet), Some(Some(results)));
            octets.push(octet);
        }
    }
    octets.sort_unstable();
    octets.dedup();
    assert_eq!(octets.len(), 1 + 7 * 8);
    let valid = (0..=u8::MAX).filter(|octet| SpfResults::of_octet(*octet).is_some());
    assert_eq!(valid.collect::<Vec<_>>(), octets);
}

#[test]
fn lengths_are_bounded_before_memory_is_taken() {
    let of = |frame: Frame| {
        let decoded = decoded(&octets(frame), BODY_MAX);
        decoded
            .map(|decoded| assert_eq!(decoded, frame))
            .map_err(|error| error.to_string())
    };
    let message = |head, body| {
        of(Frame::Message(Prefix {
            head,
            body,
            ..PREFIX
        }))
    };
    let part = |octets| {
        of(Frame::Part(Part {
            number: NUMBER,
            place: u64::MAX,
            client: "192.0.2.1".parse().unwrap(),
            octets,
        }))
    };
    assert_eq!(message(HEAD_OCTETS_MAX, BODY_MAX), Ok(()));
    assert_eq!(message(0, 0), Ok(()));
    assert_eq!(part(PART_OCTETS_MAX), Ok(()));
    let text = |text: &str| Err(text.to_owned());
    assert_eq!(
        message(0, 1_001),
        text("expected at most 1000 in text; found 1001")
    );
    assert_eq!(
        message(HEAD_OCTETS_MAX + 1, 0),
        text("expected at most 8388608 in length of the head; found 8388609")
    );
    assert_eq!(
        message(
            HEAD_OCTETS_MAX,
            BODY_MAX + FACTS_OCTETS_MAX + RESULTS_OCTETS_MAX + 100
        ),
        text("expected at most 8586250 in length of the frame; found 8586352")
    );
    assert_eq!(
        part(PART_OCTETS_MAX + 1),
        text("expected at most 2097152 in part; found 2097153")
    );
    assert_eq!(answer_length([0, 16, 0, 0]), Ok(4_096));
    let error = answer_length([1, 16, 0, 0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected at most 4096 in length of the answer; found 4097"
    );
}

/// The frame ends within its fields, or within the head, or a field has an impossible value.
#[test]
fn a_frame_that_cannot_be_is_refused() {
    let with = |place: usize, octet| {
        let mut octets = octets(Frame::Message(PREFIX));
        octets[place] = octet;
        decoded(&octets, BODY_MAX).map_err(|error| error.to_string())
    };
    let text = |text: &str| Err(text.to_owned());
    assert_eq!(
        with(0, 39),
        text("expected 8 octets in frame before the text; found 7")
    );
    assert_eq!(with(0, 31), text("expected 32 octets in frame; found 31"));
    assert_eq!(with(4, 2), text("expected version 4; found version 2"));
    assert_eq!(
        with(5, 129),
        text("expected a kind for this side; found kind 129")
    );
    assert_eq!(
        with(14, 2),
        text("expected 0 or 1 in permission to relay; found 2")
    );
    assert_eq!(
        with(15, 8),
        text("expected two results of 0 to 7 each in result of SPF; found 8")
    );
    assert_eq!(
        decoded(b"\x0b\0\0\0\x04\x03\0\0\0\0\0\0\0\0", BODY_MAX).map_err(|error| error.to_string()),
        text("expected at most 0 in frame; found 1")
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
        (b"\x02\x84\0", "expected version 4; found version 2"),
        (
            b"\x04\x87\0\0\0\0\0\0\0\0",
            "expected a kind for this side; found kind 135",
        ),
        (b"\x04\x84\0.", "expected the end; found 1 more octets"),
        (
            b"\x04\x82\0\0\0\0\0\0\0\0",
            "expected 1 octets in refusal; found 0",
        ),
        (
            b"\x04\x83\0\0\0\0\0\0\0\0\x02",
            "expected 0 or 1 in permanence; found 2",
        ),
        (
            b"\x04\x81\0\0\0\0\0\0\0\0\xff",
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
    fn a_frame_has_one_form(of in any::<[u8; OPENING_OCTETS + FIELDS_OCTETS_MAX]>(), kind in 1_u8..4) {
        let mut of = of;
        (of[4], of[5]) = (VERSION, kind);
        if let Ok(frame) = decoded(&of, usize::MAX) {
            let octets = octets(frame);
            prop_assert_eq!(&octets[..], &of[..octets.len()]);
        }
    }
}
