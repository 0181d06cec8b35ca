use proptest::prelude::*;

use super::*;
use crate::format::frames::Place;
use crate::format::ids::{ChunkId, PackNumber};
use crate::format::index::IndexEntry;
use crate::format::locator::MailCopy;

fn record() -> Record {
    Record {
        kind: RecordKind::Merge,
        lead_epoch: 0x0102_0304,
        generation: 0x0506_0708_090a_0b0c,
        parent: MailId(*b"parent parent pa"),
        time: -2,
        checkpoint: Some(Checkpoint {
            covers: NonZeroU64::new(0x0d0e).unwrap(),
            covered_uid: 0x0f10,
            root: Locator {
                pack: PackNumber(0x1112),
                mail: MailId(*b"pages pages page"),
                copy: MailCopy {
                    account: 1,
                    mailbox: 2,
                    uid: 3,
                },
                at: 68,
                sealed_len: 0x1314,
            },
        }),
        merged: vec![MailId(*b"loser loser lose")],
        ancestors: vec![Ancestor {
            generation: 0x1516,
            commit: MailId(*b"older older olde"),
        }],
        rows: vec![
            RowChange {
                key: b"\x02key".to_vec(),
                value: Some(b"value".to_vec()),
            },
            RowChange {
                key: b"gone".to_vec(),
                value: None,
            },
        ],
        index: Index {
            entries: vec![IndexEntry {
                place: Place {
                    at: 68,
                    sealed_len: 20,
                },
                chunk: ChunkId(*b"chunk chunk chun"),
                inode: 7,
                offset: 0,
            }],
        },
    }
}

fn plain() -> Record {
    Record {
        kind: RecordKind::Change,
        checkpoint: None,
        merged: Vec::new(),
        ancestors: Vec::new(),
        rows: Vec::new(),
        index: Index::default(),
        ..record()
    }
}

fn refused(octets: &[u8]) -> String {
    Record::decode(octets).unwrap_err().to_string()
}

#[test]
fn octets_of_a_record() {
    let octets = record().encode().unwrap();
    let expected: [&[u8]; 12] = [
        b"\x01\x02\x01\0\x04\x03\x02\x01\x0c\x0b\x0a\x09\x08\x07\x06\x05",
        b"parent parent pa\xfe\xff\xff\xff\xff\xff\xff\xff",
        b"\x0e\x0d\0\0\0\0\0\0\x10\x0f\0\0\0\0\0\0",
        b"\x12\x11\0\0\0\0\0\0pages pages page\x01\0\x02\0\x03\0\0\0\x44\0\0\0\x14\x13\0\0",
        b"\x01\0loser loser lose",
        b"\x01\x16\x15\0\0\0\0\0\0older older olde",
        b"\x02\0\0\0",
        b"\x01\x04\x02key\x05value",
        b"\x02\x04gone",
        b"\x01\0\x01\0",
        b"\x44\0\0\0\x14\0\0\0chunk chunk chun",
        b"\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ];
    assert_eq!(octets, expected.concat());
    assert_eq!(Record::decode(&octets), Ok(record()));
    for cut in 0..octets.len() {
        assert!(Record::decode(&octets[..cut]).is_err(), "{cut} octets");
    }
    assert!(Record::decode(&[&octets[..], b"\0"].concat()).is_err());
}

#[test]
fn a_record_without_lists() {
    let octets = plain().encode().unwrap();
    assert_eq!(octets.len(), 96 + 2 + 4 + 4);
    assert_eq!(octets[40..], [&[0; 62][..], &[1, 0, 0, 0]].concat());
    assert_eq!(Record::decode(&octets), Ok(plain()));
    for kind in RecordKind::ALL {
        let record = Record { kind, ..plain() };
        assert_eq!(Record::decode(&record.encode().unwrap()), Ok(record));
    }
}

#[test]
fn fields_have_meanings() {
    let octets = plain().encode().unwrap();
    let with = |at: usize, octet: u8| {
        let mut changed = octets.clone();
        changed[at] = octet;
        refused(&changed)
    };
    assert_eq!(
        with(0, 2),
        "format of a commit record: expected version 1; found 2"
    );
    assert_eq!(with(1, 0), "kind of commit: expected 1 to 4; found 0");
    assert_eq!(with(1, 5), "kind of commit: expected 1 to 4; found 5");
    assert_eq!(
        with(2, 2),
        "flags of a commit: expected 0 or 1 (ancestors); found 2"
    );
    assert_eq!(
        with(2, 1),
        "ancestors of a commit with the flag: expected at least 1; found 0"
    );
    let zeros = "commit record: expected zeros in reserved octets; found other octets";
    assert_eq!(with(3, 1), zeros);
    for at in 48..96 {
        assert_eq!(with(at, 1), zeros, "octet {at} without a checkpoint");
    }
    let mut covered = record().encode().unwrap();
    covered[52] = 1;
    assert_eq!(refused(&covered), zeros);
}

#[test]
fn changes_of_rows_have_meanings() {
    let mut octets = plain().encode().unwrap();
    octets[98] = 1;
    octets.insert(102, 3);
    octets.insert(103, 0);
    assert_eq!(
        refused(&octets),
        "change of a row: expected 1 (put) or 2 (remove); found 3"
    );
    octets[102] = 2;
    let rows = Record::decode(&octets).unwrap().rows;
    let removed = RowChange {
        key: Vec::new(),
        value: None,
    };
    assert_eq!(rows, [removed]);
}

#[test]
fn records_have_bounds() {
    let text = |record: Record| record.encode().unwrap_err().to_string();
    let most = Record {
        merged: vec![MailId::NONE; MERGED_MAX],
        ancestors: vec![record().ancestors[0]; ANCESTORS_MAX],
        ..plain()
    };
    let octets = most.encode().unwrap();
    assert_eq!(Record::decode(&octets), Ok(most.clone()));
    let mut more = most.clone();
    more.merged.push(MailId::NONE);
    assert_eq!(
        text(more),
        "merged commits: expected at most 1024; found 1025"
    );
    let mut more = most;
    more.ancestors.push(record().ancestors[0]);
    assert_eq!(text(more), "ancestors: expected at most 32; found 33");
    let mut rows = plain();
    rows.rows = vec![record().rows[1].clone(); 16_385];
    assert_eq!(text(rows), "rows: expected at most 16384; found 16385");
}

#[test]
fn bounds_hold_on_reading() {
    let plain = plain().encode().unwrap();
    let with = |at: usize, octets: &[u8]| {
        let mut changed = plain.clone();
        changed[at..at + octets.len()].copy_from_slice(octets);
        refused(&changed)
    };
    assert_eq!(
        with(96, &1_025_u16.to_le_bytes()),
        "merged commits: expected at most 1024; found 1025"
    );
    assert_eq!(
        with(98, &16_385_u32.to_le_bytes()),
        "rows: expected at most 16384; found 16385"
    );
    let mut flagged = record().encode().unwrap();
    flagged[114] = 33;
    assert_eq!(
        refused(&flagged),
        "ancestors: expected at most 32; found 33"
    );
}

proptest! {
    #[test]
    fn records_there_and_back(
        generation: u64,
        time: i64,
        covers in 0_u64..3,
        rows in proptest::collection::vec((any::<Vec<u8>>(), any::<Option<Vec<u8>>>()), 0..8),
        merged in proptest::collection::vec(any::<[u8; 16]>(), 0..3),
        ancestors in proptest::collection::vec(any::<(u64, [u8; 16])>(), 0..3),
    ) {
        let ancestor = |(generation, commit)| Ancestor { generation, commit: MailId(commit) };
        let record = Record {
            generation,
            time,
            checkpoint: NonZeroU64::new(covers).map(|covers| Checkpoint {
                covers,
                covered_uid: 9,
                root: Locator::default(),
            }),
            rows: rows.into_iter().map(|(key, value)| RowChange { key, value }).collect(),
            merged: merged.into_iter().map(MailId).collect(),
            ancestors: ancestors.into_iter().map(ancestor).collect(),
            ..record()
        };
        prop_assert_eq!(Record::decode(&record.encode().unwrap()), Ok(record));
    }

    #[test]
    fn octets_that_read_have_one_form(at in 0_usize..200, octet: u8) {
        let mut octets = record().encode().unwrap();
        let at = at % octets.len();
        octets[at] = octet;
        if let Ok(record) = Record::decode(&octets) {
            prop_assert_eq!(record.encode(), Ok(octets));
        }
    }
}
