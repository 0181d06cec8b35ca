//! The chosen root and leaves.

use std::collections::HashSet;

use super::super::choice::{Choice, Piece, choose};
use super::super::pages::{At, PageSeen, Pages};
use super::{at, inner, leaf};

const A: &[u8] = &[1, 1];
const M: &[u8] = &[2, 5];
const Z: &[u8] = &[3, 9];

fn pages(all: Vec<PageSeen>) -> Pages {
    let mut pages = Pages::default();
    let count = all.len();
    assert_eq!(pages.take(all), count);
    pages
}

fn chosen(all: Vec<PageSeen>) -> Option<Choice> {
    choose(&pages(all), &HashSet::new())
}

/// A tree of two leaves, with the root at frame 9.
fn tree(mail: u8, covers: u64) -> Vec<PageSeen> {
    vec![
        leaf(at(mail, 0), covers, A, &[2, 4]),
        leaf(at(mail, 1), covers, M, Z),
        inner(
            at(mail, 9),
            (1, covers),
            &[(A, at(mail, 0)), (M, at(mail, 1))],
        ),
    ]
}

fn piece(place: At, from: &[u8], until: Option<&[u8]>) -> Piece {
    Piece {
        range: (from.to_vec(), until.map(<[u8]>::to_vec)),
        at: place,
    }
}

#[test]
fn nothing_is_chosen_of_nothing() {
    assert_eq!(chosen(Vec::new()), None);
    // A root without any leaf tells no name.
    let root = tree(1, 5).pop().unwrap();
    assert_eq!(chosen(vec![root]), None);
}

#[test]
fn the_newest_whole_root_counts() {
    let mut all = tree(1, 5);
    all.extend(tree(2, 9));
    let choice = chosen(all.clone()).unwrap();
    assert_eq!((choice.covers, choice.is_whole), (9, true));
    assert_eq!((choice.missing, choice.spare), (0, 0));
    let expected = [piece(at(2, 0), b"", Some(M)), piece(at(2, 1), M, None)];
    assert_eq!(choice.pieces, expected);
    // Without a leaf of the newest root the older root counts, in any order.
    let lost = all.iter().position(|page| page.at == at(2, 1)).unwrap();
    all.remove(lost);
    all.reverse();
    let choice = chosen(all).unwrap();
    assert_eq!((choice.covers, choice.is_whole), (5, true));
    assert_eq!(choice.pieces.len(), 2);
}

#[test]
fn a_root_may_share_leaves_with_older_ones() {
    let mut all = tree(1, 5);
    all.push(leaf(at(2, 0), 6, M, Z));
    all.push(inner(at(2, 1), (1, 6), &[(A, at(1, 0)), (M, at(2, 0))]));
    let choice = chosen(all).unwrap();
    assert_eq!((choice.covers, choice.is_whole), (6, true));
    let expected = [piece(at(1, 0), b"", Some(M)), piece(at(2, 0), M, None)];
    assert_eq!(choice.pieces, expected);
}

#[test]
fn a_single_leaf_may_be_the_root() {
    let mut only = leaf(at(1, 0), 3, A, Z);
    only.is_last = true;
    let choice = chosen(vec![only.clone()]).unwrap();
    assert_eq!((choice.covers, choice.is_whole), (3, true));
    assert_eq!(choice.pieces, [piece(at(1, 0), b"", None)]);
    // A leaf in the middle of a mail belongs to a lost root.
    only.is_last = false;
    let choice = chosen(vec![only.clone()]).unwrap();
    assert_eq!(
        (choice.covers, choice.is_whole, choice.spare),
        (3, false, 1)
    );
    // And so does a leaf behind the root folder.
    only.is_last = true;
    only.first = M.to_vec();
    assert!(!chosen(vec![only]).unwrap().is_whole);
}

#[test]
fn an_inner_page_without_its_root_is_no_root() {
    // The newest root is lost; the first page below is whole.
    let mut all = tree(1, 5);
    let mut orphan = tree(2, 9);
    orphan[2].is_last = false;
    all.extend(orphan.clone());
    let choice = chosen(all).unwrap();
    assert_eq!((choice.covers, choice.is_whole), (5, true));
    // Alone the page serves for the page's own keys.
    let choice = chosen(orphan.clone()).unwrap();
    assert_eq!((choice.covers, choice.is_whole), (9, false));
    let end = [Z, &[0]].concat();
    let expected = [piece(at(2, 0), A, Some(M)), piece(at(2, 1), M, Some(&end))];
    assert_eq!(choice.pieces, expected);
    // A commit that names the page makes it a root.
    let named = HashSet::from([at(2, 9)]);
    let choice = choose(&pages(orphan), &named).unwrap();
    assert!(choice.is_whole);
    assert_eq!(choice.pieces[1], piece(at(2, 1), M, None));
}

#[test]
fn a_lost_leaf_leaves_a_gap_for_other_leaves() {
    let mut all = tree(2, 9);
    all.remove(1);
    // Two older states of the lost keys, and an older state of known keys.
    all.push(leaf(at(7, 0), 7, &[2, 6], &[2, 8]));
    all.push(leaf(at(6, 0), 6, M, Z));
    all.push(leaf(at(8, 0), 8, A, &[2, 1]));
    let choice = chosen(all).unwrap();
    assert_eq!((choice.covers, choice.is_whole), (9, false));
    assert_eq!((choice.missing, choice.spare), (1, 2));
    let (near, behind) = ([2, 8, 0], [3, 9, 0]);
    let expected = [
        piece(at(2, 0), b"", Some(M)),
        piece(at(6, 0), M, Some(&[2, 6])),
        piece(at(7, 0), &[2, 6], Some(&near)),
        piece(at(6, 0), &near, Some(&behind)),
    ];
    assert_eq!(choice.pieces, expected);
}

#[test]
fn of_broken_roots_the_one_with_most_leaves_counts() {
    let mut newer = tree(2, 9);
    newer.remove(0);
    let mut older = vec![
        leaf(at(1, 0), 5, A, &[2, 1]),
        leaf(at(1, 1), 5, &[2, 2], &[2, 3]),
    ];
    older.push(inner(
        at(1, 9),
        (1, 5),
        &[(A, at(1, 0)), (&[2, 2], at(1, 1)), (M, at(1, 7))],
    ));
    let all: Vec<PageSeen> = newer.iter().chain(&older).cloned().collect();
    let choice = chosen(all).unwrap();
    assert_eq!((choice.covers, choice.missing), (5, 1));
    // The gap is filled by the newer leaf.
    assert!(choice.pieces.iter().any(|piece| piece.at == at(2, 1)));
    // With as many leaves the newer root counts.
    older.remove(0);
    let all: Vec<PageSeen> = older.into_iter().chain(newer).collect();
    let choice = chosen(all).unwrap();
    assert_eq!((choice.covers, choice.missing), (9, 1));
}

#[test]
fn leaves_alone_serve_newest_first() {
    let all = vec![leaf(at(1, 0), 4, A, Z), leaf(at(2, 0), 6, &[2, 2], &[2, 4])];
    let choice = chosen(all).unwrap();
    assert_eq!(
        (choice.covers, choice.is_whole, choice.spare),
        (6, false, 2)
    );
    let expected = [
        piece(at(1, 0), A, Some(&[2, 2])),
        piece(at(2, 0), &[2, 2], Some(&[2, 4, 0])),
        piece(at(1, 0), &[2, 4, 0], Some(&[3, 9, 0])),
    ];
    assert_eq!(choice.pieces, expected);
}

/// No two pieces share a key, and the pieces are in order, whatever is lost.
#[test]
fn pieces_never_overlap() {
    let mut all = Vec::new();
    for generation in 1..=6_u8 {
        let mut below: Vec<(Vec<u8>, At)> = Vec::new();
        for number in 0..5_u8 {
            let width = 10 + generation % 3;
            let first = if number == 0 {
                A.to_vec()
            } else {
                vec![2, number * width]
            };
            let last = vec![2, number * width + width - 1];
            let place = at(generation, number.into());
            all.push(leaf(place, generation.into(), &first, &last));
            below.push((first, place));
        }
        let below: Vec<(&[u8], At)> = below.iter().map(|(key, at)| (&key[..], *at)).collect();
        all.push(inner(at(generation, 9), (1, generation.into()), &below));
    }
    let mut seed = 1_u64;
    for _ in 0..500 {
        let mut kept = all.clone();
        kept.retain(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 62 != 0
        });
        let Some(choice) = chosen(kept.clone()) else {
            assert!(kept.iter().all(|page| page.level > 0));
            continue;
        };
        for pair in choice.pieces.windows(2) {
            let end = pair[0].range.1.as_ref().unwrap();
            assert!(pair[0].range.0 < *end && *end <= pair[1].range.0);
        }
        // Every key of a surviving leaf has a piece.
        let has = |key: &[u8]| {
            choice.pieces.iter().any(|piece| {
                let (from, until) = &piece.range;
                from.as_slice() <= key && until.as_ref().is_none_or(|until| key < until.as_slice())
            })
        };
        let leaves = kept.iter().filter(|page| page.level == 0);
        let lost = leaves.filter(|leaf| !has(&leaf.first) || !has(&leaf.last));
        assert_eq!(lost.count(), 0);
    }
}

#[test]
fn a_page_at_a_wrong_level_is_no_page_below() {
    let mut all = tree(1, 5);
    all[2].level = 2;
    let choice = chosen(all).unwrap();
    assert!(!choice.is_whole);
    assert_eq!(choice.spare, 2);
}
