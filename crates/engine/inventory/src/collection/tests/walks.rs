//! Pages that kept checkpoints and snapshots reach.

use super::super::walk::Walk;
use super::id;
use crate::format::page::{Child, Page, encode_inner, encode_leaf};
use crate::format::{Locator, MailId, PackNumber};
use crate::rows::{Extent, Run, encode_extents, extents_key};
use vere_ports::files::Inode;

fn place(mail: MailId) -> Locator {
    Locator {
        pack: PackNumber(1),
        mail,
        at: 68,
        sealed_len: 100,
        ..Locator::default()
    }
}

fn inner(level: u8, below: &[u8]) -> Page {
    let child = |number: &u8| Child {
        place: place(id(*number)),
        inodes: 0,
        octets: 0,
    };
    let keys: Vec<[u8; 1]> = below.iter().map(|number| [*number]).collect();
    let rows: Vec<(&[u8], Child)> = keys
        .iter()
        .map(|key| &key[..])
        .zip(below.iter().map(child))
        .collect();
    Page::decode(encode_inner(level, &rows).into(), &place(id(1))).unwrap()
}

fn leaf() -> Page {
    let run = |pack| Run {
        length: 10,
        skip: 0,
        extent: (pack != 0).then_some(Extent {
            pack: PackNumber(pack),
            at: 68,
            sealed_len: 96,
        }),
    };
    let runs = encode_extents(&[run(5), run(0), run(6)]);
    let key = extents_key(Inode(7), 0);
    let rows: [(&[u8], &[u8]); 2] = [(&key, &runs), (&[3, 0, 0, 0, 0, 0, 0, 0, 9], b"x")];
    Page::decode(encode_leaf(&rows).into(), &place(id(1))).unwrap()
}

#[test]
fn a_walk_begins_at_every_root() {
    let mut walk = Walk::new([place(id(1))], [place(id(2))]);
    assert_eq!(walk.progress(), (0, 2));
    assert_eq!(walk.left.pop(), Some((place(id(2)), true, None)));
    assert_eq!(walk.left.pop(), Some((place(id(1)), false, None)));
    walk.done = 2;
    assert_eq!(walk.progress(), (2, 2));
}

#[test]
fn leaves_of_checkpoints_are_named_and_not_read() {
    let mut walk = Walk::new([], []);
    walk.take((false, None), &inner(1, &[3, 4])).unwrap();
    assert!(walk.left.is_empty());
    assert_eq!(walk.mails.len(), 2);
    walk.take((false, Some(2)), &inner(2, &[5])).unwrap();
    assert_eq!(walk.left, [(place(id(5)), false, Some(1))]);
    assert!(walk.mails.contains(&id(5)));
    walk.take((false, Some(0)), &leaf()).unwrap();
    assert!(walk.packs.is_empty());
}

#[test]
fn of_snapshots_every_leaf_and_its_packs_count() {
    let mut walk = Walk::new([], []);
    walk.take((true, None), &inner(1, &[3])).unwrap();
    assert_eq!(walk.left, [(place(id(3)), true, Some(0))]);
    walk.take((true, Some(0)), &leaf()).unwrap();
    assert_eq!(walk.packs.iter().copied().collect::<Vec<_>>(), [5, 6]);
}

#[test]
fn a_page_of_another_level_ends_the_walk() {
    let mut walk = Walk::new([], []);
    assert!(walk.take((false, Some(1)), &inner(2, &[3])).is_err());
    assert!(walk.take((false, Some(1)), &leaf()).is_err());
    assert!(walk.mails.is_empty() && walk.left.is_empty());
}
