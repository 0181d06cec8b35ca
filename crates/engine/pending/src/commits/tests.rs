//! Who waits for what, and what is needed still, as changes wait, go, win and lose.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashSet;
use vere_ports::files::{CallId, Inode, Reply};
use vere_units::Timestamp;

use super::{Commits, Flight, INLINE_MAX, Snapshot, Want};
use crate::content::{Piece, Source, UnsentId};
use crate::format::commit::RowChange;
use crate::format::{MERGED_MAX, MailId, PackNumber};
use crate::rows::{Extent, Key, extents_key, inode_key};

const FILE: Inode = Inode(5);
const OTHER: Inode = Inode(6);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn key(number: u64) -> Vec<u8> {
    Key::Pack(number).encode()
}

fn keys(numbers: &[u64]) -> BTreeSet<Vec<u8>> {
    numbers.iter().map(|number| key(*number)).collect()
}

fn extent(pack: u64) -> Extent {
    Extent {
        pack: PackNumber(pack),
        at: 68,
        sealed_len: 30,
    }
}

fn flight(id: u8, rows: impl IntoIterator<Item = Vec<u8>>) -> Flight {
    let row = |key| RowChange { key, value: None };
    Flight {
        number: PackNumber(id.into()),
        id: MailId([id; 16]),
        octets: 100 + u32::from(id),
        has_content: false,
        from: 40,
        waiters: vec![(CallId(id.into()), Reply::Done)],
        pinned: Vec::new(),
        names: Vec::new(),
        checkpoint: None,
        rows: rows.into_iter().map(row).collect(),
        merged: Vec::new(),
        adopts: false,
        is_partial: false,
        included: BTreeSet::new(),
    }
}

fn snapshot(inode: Inode, since: u64) -> Snapshot {
    let source = Source::Chunk {
        extent: extent(1),
        skip: 0,
    };
    let piece = Piece { length: 9, source };
    Snapshot {
        inode,
        since,
        size: 9,
        pieces: vec![(0, piece)],
    }
}

fn want(inodes: &[Inode]) -> Want {
    Want::of(inodes.iter().copied().collect(), Vec::new())
}

#[test]
fn short_contents_are_short() {
    assert_eq!(INLINE_MAX, 65_536);
}

#[test]
fn a_want_covers_content_up_to_its_snapshot() {
    let mut want = want(&[FILE]);
    assert!(want.covers(FILE, u64::MAX));
    assert!(!want.covers(OTHER, 0));
    want.snapshots = Some(vec![snapshot(FILE, 7), snapshot(OTHER, 90)]);
    assert!(want.covers(FILE, 6) && want.covers(FILE, 7));
    assert!(!want.covers(FILE, 8));
    assert!(!want.covers(OTHER, 0));
}

#[test]
fn a_commit_finds_its_rows() {
    let flight = flight(1, keys(&[2, 4, 6]));
    assert_eq!(flight.row(&key(4)), Some(&flight.rows[1]));
    assert_eq!(flight.row(&key(5)), None);
}

#[test]
fn rows_wait_from_the_first_change_on() {
    let mut commits = Commits::default();
    assert!(commits.is_quiet());
    commits.quietly(key(1));
    assert!(commits.is_quiet() && commits.holds(&key(1)) && !commits.holds(&key(2)));
    commits.rows(keys(&[2, 3]).into_iter(), 70, at(5));
    commits.rows(keys(&[2, 4]).into_iter(), 80, at(9));
    assert!(!commits.is_quiet());
    assert_eq!((commits.pending(), commits.rows_unsettled()), (4, 4));
    assert_eq!(
        (commits.pending_from, commits.since),
        (Some(70), Some(at(5)))
    );
    assert_eq!(commits.due(Duration::from_millis(10)), Some(at(15)));
    commits.flights.push_back(flight(1, keys(&[1, 2])));
    commits.flights.push_back(flight(2, keys(&[1])));
    assert_eq!((commits.pending(), commits.rows_unsettled()), (4, 7));
}

#[test]
fn flights_and_wants_are_no_quiet() {
    let mut commits = Commits::default();
    commits.wants.push(want(&[]));
    assert!(!commits.is_quiet());
    commits.wants.clear();
    commits.flights.push_back(flight(1, []));
    assert!(!commits.is_quiet());
    assert_eq!(Commits::default().due(Duration::ZERO), None);
}

#[test]
fn the_oldest_need_counts() {
    let mut commits = Commits::default();
    assert_eq!(commits.needed(100), 100);
    commits.content(FILE, 60, at(1));
    commits.content(FILE, 90, at(2));
    assert_eq!((commits.needed(100), commits.since), (60, Some(at(1))));
    assert_eq!(commits.changed().collect::<Vec<_>>(), [FILE]);
    commits.hold_from(55);
    commits.hold_from(58);
    assert_eq!(commits.needed(100), 55);
    commits.flights.push_back(flight(1, []));
    assert_eq!(commits.needed(100), 40);
    commits.strays.push(Flight {
        from: 30,
        ..flight(2, [])
    });
    assert_eq!(commits.needed(100), 30);
}

#[test]
fn a_rename_waits_for_changed_content_alone() {
    let mut commits = Commits::default();
    commits.barrier(FILE, 10);
    assert!(commits.barriers.is_empty());
    commits.content(FILE, 5, at(1));
    commits.barrier(FILE, 10);
    commits.included(FILE, 9);
    assert_eq!(commits.barriers.get(&FILE), Some(&10));
    assert_eq!(commits.changed.get(&FILE), Some(&9));
    commits.included(FILE, 10);
    assert!(commits.barriers.is_empty());
    commits.barrier(FILE, 20);
    commits.forget(FILE);
    assert!(commits.barriers.is_empty() && commits.changed.is_empty());
}

#[test]
fn content_moves_with_everyone_who_wants_it() {
    let mut commits = Commits::default();
    commits.content(FILE, 5, at(1));
    commits.barrier(FILE, 6);
    commits.wants.push(Want {
        snapshots: Some(vec![snapshot(FILE, 5), snapshot(Inode(9), 5)]),
        ..want(&[FILE])
    });
    commits.wants.push(want(&[Inode(9)]));
    commits.moved(FILE, Some(OTHER));
    assert_eq!(commits.changed.get(&OTHER), Some(&5));
    assert_eq!(commits.barriers.get(&OTHER), Some(&6));
    assert_eq!(commits.wants[0].inodes, BTreeSet::from([OTHER]));
    assert_eq!(commits.wants[1].inodes, BTreeSet::from([Inode(9)]));
    let taken = |commits: &Commits| {
        let taken = commits.wants[0].snapshots.iter().flatten();
        taken.map(|taken| taken.inode).collect::<Vec<_>>()
    };
    assert_eq!(taken(&commits), [OTHER, Inode(9)]);
    commits.moved(OTHER, None);
    assert_eq!(taken(&commits), [Inode(9)]);
    assert!(commits.changed.is_empty() && commits.barriers.is_empty());
    assert!(commits.wants[0].inodes.is_empty());
}

#[test]
fn wants_follow_packs_and_chunks() {
    let mut commits = Commits::default();
    let packs = |numbers: &[u64]| numbers.iter().copied().collect::<HashSet<u64>>();
    for numbers in [&[1, 2][..], &[3]] {
        commits.wants.push(Want {
            packs: packs(numbers),
            snapshots: Some(vec![snapshot(FILE, 1)]),
            ..want(&[FILE])
        });
    }
    commits.renumber(PackNumber(1), PackNumber(7));
    assert_eq!(commits.wants[0].packs, packs(&[2, 7]));
    assert_eq!(commits.wants[1].packs, packs(&[3]));
    commits.also(PackNumber(7), PackNumber(8));
    assert_eq!(commits.wants[0].packs, packs(&[2, 7, 8]));
    assert_eq!(commits.wants[1].packs, packs(&[3]));
    commits.relocate(&[(extent(1), extent(2))].into_iter().collect());
    let moved = commits.wants[1].snapshots.as_ref().unwrap();
    let source = Source::Chunk {
        extent: extent(2),
        skip: 0,
    };
    assert_eq!(moved[0].pieces[0].1.source, source);
    let unsent = Source::Unsent {
        id: UnsentId(1),
        skip: 0,
    };
    assert_ne!(unsent, source);
}

#[test]
fn chunks_of_commits_on_the_way_and_of_lost_ones_are_there() {
    let mut commits = Commits::default();
    let with = |id: u8, pack: u64| Flight {
        pinned: vec![(extent(pack), Bytes::from(vec![id]))],
        ..flight(id, [])
    };
    commits.flights.push_back(with(1, 11));
    commits.strays.push(with(2, 12));
    assert_eq!(commits.pinned(&extent(11)).unwrap()[..], [1]);
    assert_eq!(commits.pinned(&extent(12)).unwrap()[..], [2]);
    assert_eq!(commits.pinned(&extent(13)), None);
    let id = |id: u8| MailId([id; 16]);
    assert!(commits.is_stray(id(2)) && !commits.is_stray(id(1)));
    assert_eq!(commits.take_stray(id(1)), None);
    assert_eq!(commits.take_stray(id(2)), Some((PackNumber(2), 102)));
    assert!(!commits.is_stray(id(2)));
}

#[test]
fn lost_commits_wait_again() {
    let mut commits = Commits::default();
    commits.based.insert(key(1));
    let merged = vec![MailId([9; 16])];
    commits.flights.push_back(Flight {
        merged: merged.clone(),
        has_content: true,
        from: 33,
        ..flight(1, keys(&[1]))
    });
    commits.flights.push_back(Flight {
        adopts: true,
        from: 3,
        merged,
        has_content: true,
        ..flight(2, keys(&[1]))
    });
    commits.lose(at(8));
    let ids: Vec<u8> = commits.abandoned.iter().map(|id| id.0[0]).collect();
    assert_eq!(ids, [1, 9, 2]);
    assert!(commits.based.is_empty() && commits.flights.is_empty());
    assert_eq!(
        (commits.pending_from, commits.since),
        (Some(33), Some(at(8)))
    );
    assert_eq!(commits.strays.len(), 1);
    assert_eq!(commits.wants.len(), 1);
    assert_eq!(commits.take_waiters(), [CallId(1), CallId(2)]);
    assert!(commits.take_replies().is_empty());
}

#[test]
fn everyone_who_waits_is_taken_once() {
    let mut commits = Commits::default();
    let waiters = vec![(CallId(7), Reply::Done)];
    commits.wants.push(Want::of(BTreeSet::new(), waiters));
    commits.flights.push_back(flight(1, []));
    assert_eq!(commits.take_replies().len(), 2);
    assert!(commits.take_waiters().is_empty() && commits.flights.len() == 1);
}

#[test]
fn a_merge_leaves_other_rows_to_wait() {
    let mut commits = Commits::default();
    commits.quietly(key(1));
    commits.wait_for(BTreeSet::new(), 20, at(3));
    assert_eq!((commits.pending(), commits.since), (0, None));
    commits.wait_for(keys(&[2]), 20, at(3));
    assert!(commits.holds(&key(2)));
    assert_eq!(
        (commits.pending_from, commits.since),
        (Some(20), Some(at(3)))
    );
}

#[test]
fn a_commit_replaces_no_more_than_it_can_name() {
    let mut commits = Commits {
        abandoned: vec![MailId([1; 16]); MERGED_MAX + 2],
        ..Commits::default()
    };
    assert_eq!(commits.take_abandoned().len(), MERGED_MAX);
    assert_eq!(commits.take_abandoned().len(), 2);
    assert!(commits.take_abandoned().is_empty());
}

#[test]
fn rows_are_settled_that_no_change_and_no_commit_has() {
    let rows = |keys: &[Vec<u8>]| flight(1, keys.iter().cloned()).rows;
    let inode = inode_key(FILE).to_vec();
    let all = rows(&[key(1), key(2), key(3), inode.clone()]);
    let settled = |commits: &Commits| {
        let settled = commits.settled(&all);
        settled.map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let mut commits = Commits::default();
    assert_eq!(settled(&commits).len(), 4);
    commits.quietly(key(1));
    commits.flights.push_back(flight(2, keys(&[2])));
    assert_eq!(settled(&commits), [key(3), inode.clone()]);
    commits.content(OTHER, 1, at(1));
    assert_eq!(settled(&commits).len(), 2);
    commits.content(FILE, 1, at(1));
    assert_eq!(settled(&commits), [key(3)]);
}

#[test]
fn content_of_partial_commits_is_settled_with_all_its_rows() {
    let all = || Commits {
        included: BTreeSet::from([FILE]),
        ..Commits::default()
    };
    let (row, extents) = (inode_key(FILE).to_vec(), extents_key(FILE, 9).to_vec());
    let others = [inode_key(OTHER).to_vec(), extents_key(OTHER, 0).to_vec()];
    let mut commits = all();
    others.iter().for_each(|key| commits.quietly(key.clone()));
    commits.flights.push_back(flight(1, others.clone()));
    commits.content(OTHER, 1, at(1));
    assert_eq!(commits.take_settled(), [FILE]);
    assert!(commits.take_settled().is_empty());
    for key in [&row, &extents] {
        let mut commits = all();
        commits.quietly(key.clone());
        assert!(commits.take_settled().is_empty());
        commits.pending.clear();
        commits.flights.push_back(flight(1, [key.clone()]));
        assert!(commits.take_settled().is_empty());
        commits.flights.clear();
        commits.content(FILE, 1, at(1));
        assert!(commits.take_settled().is_empty());
        commits.forget(FILE);
        assert_eq!(commits.take_settled(), [FILE]);
    }
}

#[test]
fn a_whole_commit_has_the_content_of_partial_ones_before() {
    let mut commits = Commits {
        included: BTreeSet::from([FILE, OTHER, Inode(7)]),
        ..Commits::default()
    };
    commits.flights.push_back(Flight {
        included: BTreeSet::from([OTHER]),
        ..flight(1, [])
    });
    commits.has_all(&BTreeSet::from([FILE, OTHER]));
    assert_eq!(commits.included, BTreeSet::from([OTHER, Inode(7)]));
}
