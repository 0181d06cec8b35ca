use vere_units::{Timestamp, TraceId};

use super::*;
use crate::entry::{Entry, Kind};

fn entry() -> Entry {
    Entry {
        identifier: "id".to_owned(),
        about: Some("about".to_owned()),
        originator: Some("C=GB;S=Ö".to_owned()),
        recipients: vec!["C=GB;S=A".to_owned(), String::new(), "C=GB;S=C".to_owned()],
        source: "peer:mta2".to_owned(),
        destinations: vec!["file:a".to_owned()],
        content_type: Some("22".to_owned()),
        ..Entry::new(
            Timestamp::from_millis(1_000),
            TraceId::new(77),
            Kind::Report,
        )
    }
}

fn encoded(entry: &Entry) -> Vec<u8> {
    let mut octets = Vec::new();
    encode(entry, &mut octets);
    assert_eq!(octets.len() as u64, encoded_len(entry));
    octets
}

/// The octets as `docs/internals/archive.md` draws them.
#[test]
fn fields_have_the_drawn_octets() {
    let octets = encoded(&entry());
    let expected = [
        &1_000_u64.to_le_bytes()[..],
        &77_u64.to_le_bytes(),
        &[3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0],
        b"\x02\0\0\0id\x05\0\0\0about\x09\0\0\0C=GB;S=\xC3\x96",
        b"\x09\0\0\0peer:mta2\x02\0\0\x0022\x06\0\0\0file:a",
        b"\x08\0\0\0C=GB;S=A\0\0\0\0\x08\0\0\0C=GB;S=C",
    ];
    assert_eq!(octets, expected.concat());
    let fields = decode(&octets).unwrap();
    assert_eq!(
        (fields.at, fields.trace),
        (Timestamp::from_millis(1_000), TraceId::new(77))
    );
    assert_eq!(
        (fields.kind, fields.identifier, fields.about),
        (Kind::Report, "id", "about")
    );
    assert_eq!(
        (fields.originator, fields.source),
        ("C=GB;S=Ö", "peer:mta2")
    );
    assert_eq!(fields.content_type, "22");
    assert_eq!(fields.destinations.iter().collect::<Vec<_>>(), ["file:a"]);
    assert_eq!(
        fields.recipients.iter().collect::<Vec<_>>(),
        ["C=GB;S=A", "", "C=GB;S=C"]
    );
    assert_eq!(
        (fields.recipients.len(), fields.recipients.is_empty()),
        (3, false)
    );
    let none = encoded(&Entry::new(Timestamp::ZERO, TraceId::new(0), Kind::Message));
    assert!(decode(&none).unwrap().recipients.is_empty());
}

#[test]
fn cut_and_longer_fields_are_refused() {
    let octets = encoded(&entry());
    for cut in 0..octets.len() {
        assert_eq!(decode(&octets[..cut]), None, "{cut}");
    }
    assert_eq!(decode(&[&octets[..], b"\0"].concat()), None);
    // Each of these octets has one legal value, or is part of a count beyond the texts that follow.
    for at in 16..28 {
        let mut changed = octets.clone();
        changed[at] ^= 0x40;
        assert_eq!(decode(&changed), None, "{at}");
    }
    let mut text = octets;
    let place = text.iter().position(|octet| *octet == 0xC3).unwrap();
    text[place] = 0xFF;
    assert_eq!(decode(&text), None);
}

#[test]
fn kinds_have_names_and_codes() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(Kind::of_code(kind.code()), Some(kind));
    }
    assert_eq!(Kind::of_code(0), None);
    let said = "letter".parse::<Kind>().unwrap_err();
    assert_eq!(said, "expected message, probe or report; found \"letter\"");
}

#[test]
fn file_heads_are_read_as_written_and_flips_are_found() {
    let head = FileHead {
        nonce: 0x1122_3344_5566_7788,
        start: Timestamp::from_millis(1_795_910_400_000),
    };
    let octets = head.encode(FileKind::Segment);
    assert_eq!(&octets[..8], b"VEREARCH");
    assert_eq!(FileHead::decode(FileKind::Segment, &octets), Some(head));
    assert_eq!(FileHead::decode(FileKind::Index, &octets), None);
    let index = head.encode(FileKind::Index);
    assert_eq!(FileHead::decode(FileKind::Index, &index), Some(head));
    flips(&octets, |octets| {
        FileHead::decode(FileKind::Segment, octets).is_none()
    });
    // Another version with a right checksum is not this format.
    let mut other = octets;
    other[8] = 2;
    let sum = vere_checksum::crc32(&other[..60]);
    other[60..].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(FileHead::decode(FileKind::Segment, &other), None);
}

#[test]
fn entry_heads_are_read_as_written_and_flips_are_found() {
    let head = EntryHead {
        nonce: 7,
        offset: 64,
        meta: 100,
        meta_sum: 1,
        octets: 1_000,
        octets_sum: 2,
    };
    assert_eq!(
        (head.content(), head.end()),
        (64 + 48 + 100, 64 + 48 + 100 + 1_000)
    );
    let octets = head.encode();
    assert_eq!(EntryHead::decode(&octets, 7, 64), Some(head));
    assert_eq!(EntryHead::decode(&octets, 8, 64), None);
    assert_eq!(EntryHead::decode(&octets, 7, 65), None);
    flips(&octets, |octets| EntryHead::decode_any(octets).is_none());
    let with = |meta, octets| {
        EntryHead {
            meta,
            octets,
            ..head
        }
        .encode()
    };
    let most = META_OCTETS_MAX as u32;
    assert!(EntryHead::decode_any(&with(most, 1)).is_some());
    assert_eq!(EntryHead::decode_any(&with(most + 1, 1)), None);
    let most = u64::MAX - head.content();
    assert!(EntryHead::decode_any(&with(100, most)).is_some());
    assert_eq!(EntryHead::decode_any(&with(100, most + 1)), None);
}

#[test]
fn records_and_trailers_are_read_as_written_and_flips_are_found() {
    let entry = Record::Entry {
        offset: 64,
        octets: 1_000,
        meta: 100,
        sum: 5,
    };
    assert_eq!(Record::decode(&entry.encode()), Some(entry));
    flips(&entry.encode(), |octets| Record::decode(octets).is_none());
    let mut summary = Summary::default();
    for (at, octets) in [(5_000, 1), (3_000, 10), (9_000, 100)] {
        summary.add(Timestamp::from_millis(at), octets);
    }
    let (first, last) = (Timestamp::from_millis(3_000), Timestamp::from_millis(9_000));
    assert_eq!(
        summary,
        Summary {
            entries: 3,
            octets: 111,
            first,
            last
        }
    );
    let octets = summary.trailer(4_711);
    assert_eq!(Summary::of_trailer(&octets), Some((4_711, summary)));
    flips(&octets, |octets| Summary::of_trailer(octets).is_none());
    for cut in 0..octets.len() {
        assert_eq!(Summary::of_trailer(&octets[..cut]), None, "{cut}");
    }
    let long = Record::Entry {
        offset: 64,
        octets: 0,
        meta: META_OCTETS_MAX as u32 + 1,
        sum: 0,
    };
    assert_eq!(Record::decode(&long.encode()), None);
    assert_eq!(
        Summary::of_trailer(&[&entry.encode()[..], &[0; 32]].concat()),
        None
    );
}

/// Every change of a single bit is found.
fn flips(octets: &[u8], is_found: impl Fn(&[u8]) -> bool) {
    for bit in 0..octets.len() * 8 {
        let mut changed = octets.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(is_found(&changed), "bit {bit}");
    }
}
