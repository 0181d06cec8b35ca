//! Records of the journal.

use super::*;
use crate::content::UnsentId;
use crate::format::seal::TAG;
use crate::posix::ContentChange;
use crate::record::{Begun, Brought, Part, Won, decode, encode, room_of};
use crate::rows::Extent;
use crate::tree::Change;
use vere_ports::files::Inode;

const COMMIT: MailId = MailId(*b"commit commit co");
const WON: Won = Won {
    commit: COMMIT,
    generation: 4,
    uid_validity: 7,
    uid: 11,
};

fn row(key: &[u8], value: Option<&[u8]>) -> Part {
    Part::Row(Change {
        key: key.to_vec(),
        value: value.map(<[u8]>::to_vec),
    })
}

fn write(data: Vec<u8>) -> Part {
    Part::Content(ContentChange::Write {
        inode: Inode(2),
        offset: 3,
        id: UnsentId(4),
        skip: 5,
        data: data.into(),
    })
}

fn chunk() -> ContentChange {
    ContentChange::Chunk {
        inode: Inode(2),
        offset: 3,
        length: 4,
        extent: Extent {
            pack: PackNumber(5),
            at: 68,
            sealed_len: 30,
        },
        skip: 6,
    }
}

/// Every kind of part, with its octets behind kind and length.
fn all() -> Vec<(Part, Vec<u8>)> {
    let number = |number: u64| number.to_le_bytes().to_vec();
    let short = |number: u32| number.to_le_bytes().to_vec();
    let won = [COMMIT.0.to_vec(), number(4), short(7), short(11)].concat();
    let cut = ContentChange::Cut {
        inode: Inode(2),
        from: 3,
        to: 9,
    };
    let begun = Begun {
        commit: COMMIT,
        parent: MailId([1; 16]),
        through: 99,
        exceptions: vec![(2, 50), (3, 60)],
    };
    let reserved = Part::Reserved {
        writer: 1,
        sequence: 2,
        block: 3,
    };
    let chunk_octets = [
        number(2),
        number(3),
        short(4),
        number(5),
        short(68),
        short(30),
        short(6),
    ];
    let begun_octets = [
        [COMMIT.0, [1; 16]].concat(),
        [99, 2, 50, 3, 60].map(number).concat(),
    ];
    let brought = Brought {
        won: WON,
        through: 99,
        exceptions: vec![(2, 50)],
    };
    let brought_octets = [won.clone(), [99, 2, 50].map(number).concat()].concat();
    let base = Part::Base(Change {
        key: b"key".to_vec(),
        value: Some(b"value".to_vec()),
    });
    vec![
        (row(b"key", Some(b"value")), b"\x03\0key\x01value".to_vec()),
        (row(b"key", None), b"\x03\0key\0".to_vec()),
        (row(b"key", Some(b"")), b"\x03\0key\x01".to_vec()),
        (
            write(b"data".to_vec()),
            [[2, 3, 4].map(number).concat(), short(5), b"data".to_vec()].concat(),
        ),
        (Part::Content(cut), [2, 3, 9].map(number).concat()),
        (reserved, [vec![1, 0], number(2), short(3)].concat()),
        (Part::Begun(begun), begun_octets.concat()),
        (Part::Won(WON), won.clone()),
        (Part::Content(chunk()), chunk_octets.concat()),
        (Part::Follows(WON), won),
        (Part::Drop(b"key".to_vec()), b"key".to_vec()),
        (
            Part::Moved(Inode(2), Some(Inode(9))),
            [2, 9].map(number).concat(),
        ),
        (Part::Moved(Inode(2), None), [2, 0].map(number).concat()),
        (Part::Adopts(COMMIT), COMMIT.0.to_vec()),
        (Part::Brought(brought), brought_octets),
        (base, b"\x03\0key\x01value".to_vec()),
        (Part::Piece(5), short(5)),
    ]
}

const KINDS: [u8; 17] = [1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14];

#[test]
fn octets_of_every_part() {
    let mut whole = (Vec::new(), Vec::new());
    for ((part, body), kind) in all().into_iter().zip(KINDS) {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        let octets = [&[kind][..], &length, &body].concat();
        assert_eq!(encode(std::slice::from_ref(&part)), octets, "{part:?}");
        whole.0.push(part);
        whole.1.extend(octets);
    }
    assert_eq!(encode(&whole.0), whole.1);
    assert_eq!(decode(&whole.1.into()), Some(whole.0));
    assert_eq!(decode(&Bytes::new()), Some(Vec::new()));
}

/// A version of later may know further parts, or longer ones: no part is guessed.
#[test]
fn octets_that_are_no_record_are_refused() {
    for (part, _) in all() {
        let octets = encode(std::slice::from_ref(&part));
        for end in 1..octets.len() {
            let cut = Bytes::copy_from_slice(&octets[..end]);
            assert_eq!(decode(&cut), None, "{part:?} cut at {end}");
        }
    }
    for (part, body) in all() {
        let kind = encode(std::slice::from_ref(&part))[0];
        // Text goes to the end of a part; all else has its length.
        let is_open = match &part {
            Part::Row(change) | Part::Base(change) => change.value.is_some(),
            _ => matches!(kind, 2 | 9),
        };
        let longer = [&[kind, body.len() as u8 + 1, 0, 0, 0][..], &body, b"x"].concat();
        let is_refused = decode(&longer.into()).is_none();
        assert_eq!(is_refused, !is_open, "{part:?}");
    }
    assert_eq!(decode(&Bytes::from_static(b"\x0c\0\0\0\0")), None);
    assert_eq!(decode(&Bytes::from_static(b"\0\0\0\0\0")), None);
}

/// A long record is sealed in its first buffer: the tag needs no second one.
#[test]
fn a_record_has_room_for_its_tag() {
    let long = vec![1; 100_000];
    for part in [write(long.clone()), row(&long[..300], Some(&long))] {
        let octets = encode(&[part]);
        assert!(octets.capacity() >= octets.len() + TAG);
        assert!(octets.capacity() < octets.len() + 200);
    }
}

/// Whoever packs parts into records counts on the bound.
#[test]
fn parts_are_no_longer_than_told() {
    let long = Begun {
        commit: COMMIT,
        parent: COMMIT,
        through: 1,
        exceptions: vec![(1, 2); 100],
    };
    let long_key = Part::Drop(vec![1; 300]);
    let more = [
        Part::Begun(long),
        long_key,
        row(&[1; 300], Some(&[2; 5_000])),
    ];
    for part in all().into_iter().map(|(part, _)| part).chain(more) {
        let octets = encode(std::slice::from_ref(&part)).len();
        let told = room_of(&part);
        assert!(
            (octets..=octets + 64).contains(&told),
            "{part:?}: {told}, {octets}"
        );
    }
}

#[test]
fn a_commit_of_a_copy_has_no_place() {
    assert!(WON.has_place());
    let lacking = WON.without_place();
    assert!(!lacking.has_place());
    assert_eq!((lacking.commit, lacking.generation), (COMMIT, 4));
    assert_eq!((lacking.uid_validity, lacking.uid), (0, 0));
}
