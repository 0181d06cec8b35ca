//! Changes that no commit has.

use super::*;
use crate::Replay;
use crate::rows::inode_key;

/// Waiting rows with their positions, and files with the position of their first change.
type Pending = (Vec<(Vec<u8>, u64)>, Vec<(u64, u64)>);

fn of(records: &Vec<(u64, Vec<Part>)>) -> Pending {
    let replay = Replay::of(records, &[found(1), found(2)], &[], None).unwrap();
    let pending = replay.pending(records);
    let rows = pending.rows.into_iter().map(|(key, (at, _))| (key, at));
    let contents = pending.contents.into_iter();
    let contents: Vec<(u64, u64)> = contents.map(|(at, of)| (at, of.inode().0)).collect();
    let rows: Vec<(Vec<u8>, u64)> = rows.collect();
    assert_eq!(
        replay.has_changes(records),
        !contents.is_empty() || has_rows(records, &replay)
    );
    (rows, contents)
}

/// A row void again is a change too.
fn has_rows(records: &[(u64, Vec<Part>)], replay: &Replay) -> bool {
    records.iter().any(|(at, parts)| {
        parts
            .iter()
            .any(|part| matches!(part, Part::Row(change) if *at >= replay.since_of(&change.key)))
    })
}

#[test]
fn rows_behind_the_commit_are_pending_once() {
    let records = vec![
        (5, vec![row(b"old", b"1"), row(b"again", b"1")]),
        (10, vec![begun(2, 10, &[])]),
        (10, vec![row(b"at", b"1")]),
        (20, vec![row(b"again", b"2"), row(b"void", b"1")]),
        (30, vec![row(b"again", b"3"), Part::Drop(b"void".to_vec())]),
    ];
    let (rows, contents) = of(&records);
    assert_eq!(rows, [(b"again".to_vec(), 30), (b"at".to_vec(), 10)]);
    assert!(contents.is_empty());
    // A drop before the commit does not concern a later change.
    let records = vec![
        (5, vec![Part::Drop(b"k".to_vec())]),
        (10, vec![begun(2, 10, &[])]),
        (20, vec![row(b"k", b"1")]),
    ];
    assert_eq!(of(&records).0, [(b"k".to_vec(), 20)]);
    assert!(
        of(&vec![
            (5, vec![row(b"k", b"1")]),
            (10, vec![begun(2, 10, &[])])
        ])
        .0
        .is_empty()
    );
}

/// The inode and the content of a file may be in the commit as of an earlier position.
#[test]
fn an_excepted_file_is_pending_from_its_own_position() {
    let inode = inode_key(Inode(5)).to_vec();
    let records = vec![
        (2, vec![cut(5), row(&inode, b"1")]),
        (4, vec![cut(5), cut(6)]),
        (6, vec![row(&inode, b"2"), row(b"k", b"1")]),
        (10, vec![begun(2, 10, &[(5, 4)])]),
        (12, vec![cut(6)]),
    ];
    let (rows, contents) = of(&records);
    assert_eq!(rows, [(inode, 6)]);
    assert_eq!(contents, [(4, 5), (12, 6)]);
}

#[test]
fn contents_follow_their_moves() {
    let to = |from, to: Option<u64>| Part::Moved(Inode(from), to.map(Inode));
    let records = vec![
        (2, vec![cut(5), cut(6), cut(7)]),
        (4, vec![to(5, Some(8)), to(6, None)]),
        (6, vec![to(8, Some(9)), cut(5), cut(6)]),
        (8, vec![to(7, Some(5))]),
    ];
    let (_, contents) = of(&records);
    assert_eq!(contents, [(2, 9), (2, 5), (6, 5), (6, 6)]);
    // The new inode waits from an earlier position than the commit's end.
    let records = vec![
        (2, vec![cut(5)]),
        (4, vec![to(5, Some(8))]),
        (6, vec![begun(2, 6, &[(8, 1)])]),
    ];
    assert_eq!(of(&records).1, [(2, 8)]);
    let records = vec![
        (2, vec![cut(5)]),
        (4, vec![to(5, Some(8))]),
        (6, vec![begun(2, 6, &[(8, 3)])]),
    ];
    assert!(of(&records).1.is_empty());
}

/// Several records about a merge count as a single record.
#[test]
fn pieces_of_a_merge_are_changes_like_others() {
    let merged = |records: Vec<Vec<Part>>| {
        let mut all = vec![
            (2, vec![cut(5), row(b"a", b"1"), row(b"b", b"1")]),
            (4, vec![Part::Follows(won(1))]),
        ];
        all.extend((10..).zip(records));
        of(&all)
    };
    let parts = || {
        vec![
            Part::Moved(Inode(5), Some(Inode(6))),
            row(b"a", b"2"),
            Part::Drop(b"b".to_vec()),
            cut(6),
            brought(2, 0, &[]),
        ]
    };
    let (rows, contents) = merged(vec![parts()]);
    let pieces = parts().into_iter().zip(0..);
    let pieces = pieces.map(|(part, number)| vec![Part::Piece(number), part]);
    let (rows_of_pieces, contents_of_pieces) = merged(pieces.collect());
    let keys = |rows: Vec<(Vec<u8>, u64)>| rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(rows), [b"a"]);
    assert_eq!(keys(rows_of_pieces), [b"a"]);
    let inodes = |all: Vec<(u64, u64)>| all.into_iter().map(|(_, of)| of).collect::<Vec<_>>();
    assert_eq!(inodes(contents), [6, 6]);
    assert_eq!(inodes(contents_of_pieces), [6, 6]);
}
