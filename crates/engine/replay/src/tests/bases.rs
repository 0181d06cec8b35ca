//! Values of the chain below the changes of a journal.

use super::*;
use crate::bases::{bases, has_base};
use crate::rows::{Key, inode_key};

fn base(key: &[u8], value: Option<&[u8]>) -> Part {
    Part::Base(Change {
        key: key.to_vec(),
        value: value.map(<[u8]>::to_vec),
    })
}

#[test]
fn rows_of_files_have_bases() {
    assert!(has_base(&inode_key(Inode(5))));
    let of_file = |key: Key<'_>| has_base(&key.encode());
    assert!(!of_file(Key::Writer(3)));
    assert!(!of_file(Key::Pack(3)));
    assert!(!of_file(Key::Extents {
        inode: Inode(5),
        offset: 0,
    }));
    assert!(!has_base(b""));
}

#[test]
fn the_first_base_counts_until_a_merge_tells_another() {
    let mut records = vec![
        (1, vec![base(b"early", Some(b"0"))]),
        (5, vec![base(b"k", Some(b"1")), base(b"new", None)]),
        (6, vec![base(b"k", Some(b"2"))]),
    ];
    let found = bases(&records, |_| 5);
    assert_eq!(found.len(), 2);
    assert_eq!(found[&b"k"[..]], Some(b"1".to_vec()));
    assert_eq!(found[&b"new"[..]], None);
    for (number, mark) in (3..).zip([Part::Follows(won(2)), brought(2, 0, &[]), Part::Piece(0)]) {
        let value = [number];
        records.push((7, vec![base(b"k", Some(&value)), mark]));
        let found = bases(&records, |_| 5);
        assert_eq!(found[&b"k"[..]], Some(value.to_vec()));
    }
    // Each row has a separate position, the first without a commit.
    let since = |key: &[u8]| if key == b"k" { 8 } else { 1 };
    let found = bases(&records, since);
    assert_eq!(found.len(), 2);
    assert_eq!(found[&b"early"[..]], Some(b"0".to_vec()));
    assert!(found.contains_key(&b"new"[..]));
}
