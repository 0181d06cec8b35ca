//! Knowledge of a journal before the log is read.

use super::*;
use crate::{has_waiting, newest_known, newest_placed, remembered};

#[test]
fn the_newest_commit_of_the_chain_is_remembered() {
    assert_eq!(remembered(&vec![(0, vec![reserved()])]), Some(None));
    // Any commit of the log may be the commit on its way.
    assert_eq!(remembered(&vec![(0, vec![begun(2, 5, &[])])]), None);
    let records = vec![
        (0, vec![Part::Won(won(4)), Part::Follows(won(6))]),
        (9, vec![begun(7, 5, &[]), Part::Won(won(5))]),
    ];
    assert_eq!(remembered(&records), Some(Some(won(6))));
    assert_eq!(newest_known(&records), Some(won(6)));
}

#[test]
fn a_newer_state_makes_earlier_knowledge_void() {
    let mut records = vec![(0, vec![Part::Won(won(8))]), (9, vec![brought(5, 0, &[])])];
    assert_eq!(newest_known(&records), Some(won(5)));
    assert_eq!(newest_placed(&records), Some(won(5)));
    records.push((12, vec![Part::Won(won(6))]));
    assert_eq!(newest_known(&records), Some(won(6)));
}

#[test]
fn the_newest_place_is_that_of_a_commit_of_the_log() {
    let lacking = |of| Part::Follows(won(of).without_place());
    let mut records = vec![(0, vec![lacking(3)])];
    assert_eq!(newest_placed(&records), None);
    assert_eq!(newest_known(&records), Some(won(3).without_place()));
    records.push((9, vec![Part::Won(won(4)), Part::Won(won(2)), lacking(6)]));
    assert_eq!(newest_placed(&records), Some(won(4)));
    assert_eq!(newest_known(&records), Some(won(6).without_place()));
    // A copy with the commit once more takes no place away; the log gives a place.
    records.push((12, vec![lacking(4)]));
    assert_eq!(newest_placed(&records), Some(won(4)));
    records.push((15, vec![Part::Won(won(6))]));
    assert_eq!(newest_placed(&records), Some(won(6)));
    assert_eq!(newest_known(&records), Some(won(6)));
}

#[test]
fn changes_behind_the_newest_commit_wait() {
    let of = |parts: Vec<(u64, Vec<Part>)>| has_waiting(&parts);
    assert!(!of(vec![(0, vec![reserved(), Part::Drop(vec![1])])]));
    assert!(of(vec![(0, vec![row(b"k", b"1")])]));
    assert!(of(vec![(0, vec![cut(5)])]));
    let commit = |through, exceptions: &[(u64, u64)]| {
        vec![
            (10, vec![row(b"k", b"1")]),
            (20, vec![begun(4, through, exceptions)]),
            (30, vec![Part::Won(won(4)), Part::Won(won(3))]),
        ]
    };
    assert!(!of(commit(11, &[])));
    assert!(of(commit(10, &[])), "the position itself is behind");
    assert!(of(commit(11, &[(5, 3)])), "content waits");
    // A commit begun, and not known to be in the chain, may be nowhere.
    let mut begun_only = commit(11, &[]);
    begun_only.pop();
    assert!(of(begun_only));
    let mut more = commit(11, &[]);
    more.push((40, vec![cut(5)]));
    assert!(of(more));
}
