use proptest::prelude::*;

use super::*;
use crate::format::keys::VolumeKey;

const FRAMED: [Kind; 5] = [
    Kind::Volume,
    Kind::Commit,
    Kind::Pages,
    Kind::Data,
    Kind::Probe,
];

fn keys() -> Keys {
    Keys::derive(&VolumeKey([7; 32]))
}

fn builder(kind: Kind) -> Builder {
    let pack = PackNumber::new(0x12, 0x31).unwrap();
    Builder::new(kind, VolumeId(*b"volume volume vo"), 1, 3, pack)
}

fn sample(kind: Kind) -> Sealed {
    let mut builder = builder(kind);
    builder
        .push(Codec::Plain, Bytes::from_static(b"content"))
        .unwrap();
    builder
        .push(Codec::Zstd, Bytes::from(vec![b'z'; 200]))
        .unwrap();
    builder
        .finish(Bytes::from_static(b"the last frame"), &keys())
        .unwrap()
}

#[test]
fn places_are_known_before_sealing() {
    let mut builder = builder(Kind::Data);
    assert_eq!((builder.octets(), builder.frames()), (68, 0));
    let first = builder
        .push(Codec::Plain, Bytes::from_static(b"abc"))
        .unwrap();
    assert_eq!((first.at, first.sealed_len, first.octets()), (68, 20, 24));
    assert_eq!((builder.octets(), builder.frames()), (92, 1));
    let second = builder.push(Codec::Plain, Bytes::new()).unwrap();
    assert_eq!((second.at, second.sealed_len), (92, 17));
    let sealed = builder.finish(Bytes::from_static(b"x"), &keys()).unwrap();
    let last = Place {
        at: 113,
        sealed_len: 18,
    };
    assert_eq!(sealed.places, [first, second, last]);
    assert_eq!(sealed.body.len(), 135);
    let opened = open(&sealed.body, &keys(), Some(sealed.mail_id())).unwrap();
    assert_eq!(opened.head, sealed.head);
    assert_eq!((opened.head.frames, opened.head.last_sealed_len), (3, 18));
    let expected = [(first, &b"abc"[..]), (second, b""), (last, b"x")];
    let found: Vec<_> = opened.frames.iter().map(|(at, c)| (*at, &c[..])).collect();
    assert_eq!(found, expected);
    assert_eq!(opened.last(), b"x");
}

#[test]
fn a_retry_yields_equal_octets() {
    assert_eq!(sample(Kind::Commit), sample(Kind::Commit));
    let mut ids: Vec<_> = FRAMED.map(|kind| sample(kind).mail_id()).to_vec();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), FRAMED.len());
}

#[test]
fn every_bit_of_every_kind_of_mail_counts() {
    for kind in FRAMED {
        let sealed = sample(kind);
        assert!(open(&sealed.body, &keys(), None).is_ok());
        for at in 0..sealed.body.len() {
            for bit in 0..8 {
                let mut changed = sealed.body.clone();
                changed[at] ^= 1 << bit;
                let found = open(&changed, &keys(), None);
                assert!(found.is_err(), "{kind}, bit {bit} of octet {at}");
            }
        }
        for cut in 0..sealed.body.len() {
            assert!(open(&sealed.body[..cut], &keys(), None).is_err());
        }
        let longer = [&sealed.body[..], b"\0"].concat();
        assert!(matches!(
            open(&longer, &keys(), None),
            Err(FormatError::Behind { found: 1, .. })
        ));
    }
}

/// As a forger who repairs the checksum of the head.
#[test]
fn heads_are_authenticated_beyond_their_checksum() {
    let sealed = sample(Kind::Data);
    for at in 0..64 {
        let mut changed = sealed.body.clone();
        changed[at] ^= 1;
        let sum = vere_checksum::crc32c(&changed[..64]);
        changed[64..68].copy_from_slice(&sum.to_le_bytes());
        assert!(open(&changed, &keys(), None).is_err(), "octet {at}");
        let place = sealed.places[0];
        let frame = &changed[place.at as usize..][..place.octets() as usize];
        let found = open_frame(&changed, frame, place.at, &keys(), sealed.mail_id());
        assert!(found.is_err(), "octet {at} and a single frame");
    }
}

#[test]
fn frames_open_alone() {
    let sealed = sample(Kind::Data);
    let whole = open(&sealed.body, &keys(), None).unwrap();
    let head = &sealed.body[..HEAD_OCTETS];
    let id = sealed.mail_id();
    for (place, content) in &whole.frames {
        let frame = &sealed.body[place.at as usize..][..place.octets() as usize];
        let found = open_frame(head, frame, place.at, &keys(), id);
        assert_eq!(found.as_ref(), Ok(content));
        assert!(open_frame(head, frame, place.at + 1, &keys(), id).is_err());
        assert!(open_frame(head, frame, place.at, &keys(), MailId([1; 16])).is_err());
        for at in 0..frame.len() {
            let mut changed = frame.to_vec();
            changed[at] ^= 0x10;
            assert!(open_frame(head, &changed, place.at, &keys(), id).is_err());
            assert!(open_frame(head, &frame[..at], place.at, &keys(), id).is_err());
        }
        let longer = [frame, b"\0"].concat();
        assert!(open_frame(head, &longer, place.at, &keys(), id).is_err());
    }
}

#[test]
fn the_reason_of_a_refusal_is_named() {
    let sealed = sample(Kind::Data);
    let text = |body: &[u8], keys: &Keys, expect| open(body, keys, expect).unwrap_err().to_string();
    let other = Keys::derive(&VolumeKey([8; 32]));
    assert_eq!(
        text(&sealed.body, &other, None),
        "frame at octet 68: expected a seal by the given key; found another seal"
    );
    let id = sealed.mail_id();
    assert_eq!(
        text(&sealed.body, &keys(), Some(MailId([0x11; 16]))),
        format!("mail id: expected 11111111111111111111111111111111; found {id}")
    );
    let slot = Head {
        kind: Kind::Slot,
        ..sealed.head
    };
    assert_eq!(
        text(&slot.encode(), &keys(), None),
        "kind of mail: expected a kind with frames; found 2"
    );
    assert!(builder(Kind::Slot).finish(Bytes::new(), &keys()).is_err());
    let empty = Head {
        frames: 0,
        last_sealed_len: 0,
        ..sealed.head
    };
    assert_eq!(
        text(&empty.encode(), &keys(), None),
        "sealed length of the last frame: expected 0; found 0"
    );
}

/// A frame's length in a head whose checksum is right; the seal would refuse it too, after memory was taken.
#[test]
fn lengths_are_checked_first() {
    let refused = |len: u32, head_len: u32| {
        let head = Head {
            frames: 1,
            last_sealed_len: head_len,
            ..sample(Kind::Data).head
        };
        let mut body = head.encode().to_vec();
        body.extend_from_slice(&len.to_le_bytes());
        body.extend_from_slice(&[0; 20]);
        let whole = open(&body, &keys(), None).unwrap_err().to_string();
        let frame = open_frame(&body[..68], &body[68..], 68, &keys(), head.mail);
        (whole, frame.unwrap_err().to_string())
    };
    assert_eq!(
        refused(16, 16).0,
        "sealed length of a frame: expected at least 17; found 16"
    );
    assert_eq!(
        refused((2 << 20) + 18, 0).0,
        "sealed length of a frame: expected at most 2097169; found 2097170"
    );
    assert_eq!(
        refused((2 << 20) + 17, 0).0,
        "frames of a mail: expected 2097169 more octets; found 20"
    );
    assert_eq!(
        refused(20, 19).0,
        "sealed length of the last frame: expected 19; found 20"
    );
    assert_eq!(
        refused(19, 19),
        (
            "frames of a mail: expected the end; found 1 more octets".into(),
            "octets of a frame: expected 19; found 20".into()
        )
    );
}

#[test]
fn mails_have_bounds() {
    let mut full = builder(Kind::Data);
    let big = Bytes::from(vec![0; FRAME_OCTETS_MAX]);
    let longer = Bytes::from(vec![0; FRAME_OCTETS_MAX + 1]);
    let text = |found: Result<Place, FormatError>| found.unwrap_err().to_string();
    assert_eq!(
        text(full.push(Codec::Zstd, longer)),
        "octets of content: expected at most 2097152; found 2097153"
    );
    full.push(Codec::Plain, big.clone()).unwrap();
    let room = MAIL_OCTETS_MAX - full.octets() - FRAME_OVERHEAD;
    let over = big.slice(..room + 1);
    assert_eq!(
        text(full.push(Codec::Plain, over)),
        "octets of a mail: expected at most 4194304; found 4194305"
    );
    let sealed = full.finish(big.slice(..room), &keys()).unwrap();
    assert_eq!(sealed.body.len(), MAIL_OCTETS_MAX);
    assert!(open(&sealed.body, &keys(), None).is_ok());
    let longer = [&sealed.body[..], b"\0"].concat();
    assert!(matches!(
        open(&longer, &keys(), None),
        Err(FormatError::Above { .. })
    ));

    let mut packed = builder(Kind::Pages);
    for _ in 0..8 {
        packed.push(Codec::Zstd, big.clone()).unwrap();
    }
    assert_eq!(
        text(packed.push(Codec::Zstd, Bytes::from_static(b"."))),
        "octets of content of a mail: expected at most 16777216; found 16777217"
    );
    let sealed = packed.finish(Bytes::new(), &keys()).unwrap();
    let opened = open(&sealed.body, &keys(), None).unwrap();
    assert_eq!(opened.frames.len(), 9);

    let mut many = builder(Kind::Data);
    for _ in 1..FRAMES_MAX {
        many.push(Codec::Plain, Bytes::new()).unwrap();
    }
    let sealed = many.finish(Bytes::new(), &keys()).unwrap();
    let opened = open(&sealed.body, &keys(), None).unwrap();
    assert_eq!(opened.frames.len(), FRAMES_MAX);
}

/// As by a writer with the keys that does not keep the bound: 9 frames of 2 MiB in some hundred octets.
#[test]
fn content_of_all_frames_is_bounded_on_reading() {
    let mut packed = builder(Kind::Pages);
    let big = Bytes::from(vec![0; FRAME_OCTETS_MAX]);
    for _ in 0..9 {
        packed.push(Codec::Zstd, big.clone()).unwrap();
        packed.content = 0;
    }
    let sealed = packed.finish(Bytes::new(), &keys()).unwrap();
    assert!(sealed.body.len() < 2_000);
    assert_eq!(
        open(&sealed.body, &keys(), None).unwrap_err().to_string(),
        "octets of content: expected at most 0; found 2097152"
    );
}

#[test]
fn more_frames_than_the_bound_are_refused() {
    let mut many = builder(Kind::Data);
    for _ in 0..FRAMES_MAX {
        many.push(Codec::Plain, Bytes::new()).unwrap();
    }
    let found = many.finish(Bytes::new(), &keys());
    assert_eq!(
        found.unwrap_err().to_string(),
        "frames of a mail: expected at most 4096; found 4097"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn mails_there_and_back(
        kind in 0_usize..5,
        frames in proptest::collection::vec((any::<bool>(), proptest::collection::vec(0_u8..4, 0..300)), 0..6),
        last: Vec<u8>,
    ) {
        let mut builder = builder(FRAMED[kind]);
        let mut expected = Vec::new();
        for (packed, content) in frames {
            let codec = if packed { Codec::Zstd } else { Codec::Plain };
            let content = Bytes::from(content);
            expected.push((builder.push(codec, content.clone()).unwrap(), content));
        }
        let sealed = builder.finish(last.clone().into(), &keys()).unwrap();
        expected.push((*sealed.places.last().unwrap(), last.into()));
        let opened = open(&sealed.body, &keys(), Some(sealed.mail_id())).unwrap();
        prop_assert_eq!(opened.frames, expected);
    }

    #[test]
    fn any_octets_are_refused_without_a_panic(octets: Vec<u8>) {
        prop_assert!(open(&octets, &keys(), None).is_err());
        prop_assert!(open_frame(&octets, &octets, 0, &keys(), MailId::NONE).is_err());
    }
}
