//! Commits of the chain below the changes of a journal.

use super::*;
use crate::{Lacking, Replay};

#[test]
fn changes_lie_on_the_newest_commit_that_the_journal_knows() {
    let chain = [found(1), found(2), found(3), found(4)];
    let of = |records: Vec<(u64, Vec<Part>)>| Replay::of(&records, &chain, &[], None).unwrap();
    assert_eq!(of(Vec::new()).base, 4, "no knowledge, no changes");
    assert_eq!(of(vec![(0, vec![Part::Won(won(2))])]).base, 2);
    assert_eq!(
        of(vec![(0, vec![Part::Follows(won(3)), Part::Won(won(1))])]).base,
        3
    );
    assert_eq!(
        of(vec![(0, vec![begun(4, 7, &[]), Part::Won(won(2))])]).base,
        4
    );
    assert_eq!(of(vec![(0, vec![brought(3, 7, &[])])]).base, 3);
}

#[test]
fn a_log_without_a_commit_that_was_there_is_told() {
    let chain = [found(1), found(2)];
    let records = vec![(0, vec![Part::Won(won(5)), Part::Won(won(2))])];
    let lacking = Replay::of(&records, &chain, &[], None).unwrap_err();
    assert_eq!(lacking, Lacking { generation: 5 });
    // The opening itself tells of a commit known to be gone.
    assert!(Replay::of(&records, &chain, &[], Some(won(5))).is_ok());
    let other = Replay::of(&records, &chain, &[], Some(won(4)));
    assert_eq!(other.unwrap_err(), Lacking { generation: 5 });
}

#[test]
fn what_has_become_of_commits_on_their_way() {
    let records = vec![
        (0, vec![begun(3, 10, &[(5, 4)])]),
        (20, vec![begun(8, 30, &[])]),
        (40, vec![begun(9, 50, &[])]),
    ];
    let chain = [found(1), found(2), found(3), found_of(4, 9, 1, &[9])];
    let replay = Replay::of(&records, &chain, &[], None).unwrap();
    // The third is in the chain, the fourth has taken the ninth in, and the eighth is nowhere.
    assert_eq!(replay.abandoned, [id(8)]);
    let known = replay.brought(won(4));
    assert_eq!((known.through, known.exceptions), (50, Vec::new()));
    assert_eq!(replay.base, 4);
    // A change on top of the ninth does not lie on top of the merge.
    let mut more = records.clone();
    more.push((60, vec![row(b"k", b"1")]));
    let replay = Replay::of(&more, &chain, &[], None).unwrap();
    let known = replay.brought(won(4));
    assert_eq!((known.through, known.exceptions), (10, vec![(5, 4)]));
    assert_eq!(replay.base, 3);
    // The journal tells of the merge itself.
    for merge in [Part::Follows(won(4)), brought(4, 10, &[(5, 4)])] {
        let mut merged = records.clone();
        merged.push((60, vec![merge]));
        let replay = Replay::of(&merged, &chain, &[], None).unwrap();
        assert_eq!((replay.brought(won(4)).through, replay.base), (10, 4));
    }
    // A later commit of the mount is in the chain: earlier commits do not count as taken in.
    let mut later = records;
    later.push((60, vec![begun(4, 70, &[])]));
    let replay = Replay::of(&later, &chain, &[], None).unwrap();
    assert_eq!((replay.brought(won(4)).through, replay.base), (70, 4));
}

/// The chain is read from a checkpoint on, and the commit lies before.
#[test]
fn a_commit_before_the_first_one_that_was_read_counts() {
    let records = vec![
        (0, vec![begun(2, 10, &[(5, 4)]), Part::Won(won(2))]),
        (20, vec![Part::Follows(won(5))]),
    ];
    let chain = [found(4), found(5)];
    let replay = Replay::of(&records, &chain, &[], None).unwrap();
    assert!(replay.abandoned.is_empty());
    assert_eq!(replay.brought(won(5)).through, 10);
    assert_eq!(replay.brought(won(5)).exceptions, [(5, 4)]);
    assert_eq!(replay.base, 2);
}

#[test]
fn a_folder_that_went_on_elsewhere_has_no_writer() {
    let records = vec![(0, vec![reserved(), begun(2, 1, &[]), Part::Adopts(id(3))])];
    let of = |chain: &[Found], outside: &[Found]| {
        Replay::of(&records, chain, outside, None).unwrap().writer()
    };
    let ours = Some((WRITER, RESERVED, 5));
    assert_eq!(of(&[found(1), found_of(2, WRITER, 4, &[])], &[]), ours);
    assert_eq!(
        of(&[found(1)], &[found_of(3, WRITER, 5, &[])]),
        ours,
        "a merge of its own"
    );
    let other = found_of(4, WRITER, 5, &[]);
    assert_eq!(of(&[found(1), found(2), other], &[]), None);
    assert_eq!(
        of(&[found(1)], &[found_of(4, WRITER, 5, &[])]),
        None,
        "outside the chain"
    );
    assert_eq!(
        of(&[found(1), found(2), found_of(4, 9, 5, &[])], &[]),
        ours,
        "another writer"
    );
    // Commits of the writer below the base, or taken in by another mount, do not count.
    assert_eq!(of(&[found_of(1, WRITER, 4, &[]), found(2)], &[]), ours);
    let taken = [found(1), found(2), found_of(3, 9, 1, &[4])];
    assert_eq!(of(&taken, &[found_of(4, WRITER, 5, &[])]), ours);
    let none = Replay::of(&Vec::new(), &[found(1)], &[], None).unwrap();
    assert_eq!(none.writer(), None);
}

#[test]
fn a_stranded_folder_that_went_on_elsewhere_has_no_writer() {
    let records = vec![(
        0,
        vec![
            reserved(),
            begun(6, 1, &[]),
            Part::Adopts(id(7)),
            Part::Won(won(5)),
        ],
    )];
    let of = |chain: &[Found], outside: &[Found]| {
        Replay::stranded(&records, chain, outside)
            .writer()
            .is_some()
    };
    // Commits of the journal, and commits known to be in the chain.
    for number in [5, 6, 7] {
        assert!(
            of(&[found(1), found_of(number, WRITER, RESERVED, &[])], &[]),
            "{number}"
        );
    }
    // A forgotten commit of the journal: an old number, and a state no newer than the journal's.
    assert!(of(&[found_of(4, WRITER, RESERVED - 1, &[])], &[]));
    assert!(of(&[found_of(9, 9, RESERVED, &[])], &[]));
    // A number never given by the journal's writer, or a state never seen.
    assert!(!of(&[found_of(4, WRITER, RESERVED, &[])], &[]));
    assert!(!of(&[found_of(8, WRITER, 1, &[])], &[]));
    assert!(!of(&[found(1)], &[found_of(8, WRITER, 1, &[])]));
}
