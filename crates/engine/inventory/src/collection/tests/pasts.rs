//! Commits and pages of the past without a use, and losers merged by the chain.

use std::collections::HashSet;
use std::time::Duration;

use super::super::history::History;
use super::super::losers::Losers;
use super::{commit, copy, id, subject};
use crate::format::{Kind, Locator, Subject};
use crate::inspect::{Inspected, Suspect, Verdict};
use crate::rows::StateRow;

/// A history whose oldest checkpoint with pages covers generation 6, at UID 60 of the log.
fn history() -> History {
    let state = |generation: u8, has_pages: bool| {
        let row = StateRow {
            commit: id(generation),
            uid: u32::from(generation) * 10,
            time_ms: 0,
            superseded_ms: 1,
            root: Locator {
                at: u32::from(has_pages),
                ..Locator::default()
            },
        };
        (u64::from(generation), row)
    };
    let states = vec![state(3, false), state(6, true), state(9, true)];
    let history = History::new(states, Some(9), (100, Duration::ZERO));
    assert_eq!(history.oldest.map(|(at, _)| at), Some(6));
    history
}

/// The log, each commit at ten times the number.
fn log() -> Vec<(u32, Subject)> {
    (1..=9)
        .map(|number| (u32::from(number) * 10, commit(number)))
        .collect()
}

#[test]
fn commits_below_the_oldest_checkpoint_go_oldest_first() {
    let old = history().old_commits(&log(), &|_| false);
    let expected: Vec<_> = (1..=5_u8)
        .map(|number| (u32::from(number) * 10, id(number)))
        .collect();
    assert_eq!(old, expected);
    // Content keeps its commit.
    let has_row = |subject: &Subject| subject.mail == id(2);
    let old = history().old_commits(&log(), &has_row);
    assert_eq!(
        old.iter().map(|(uid, _)| *uid).collect::<Vec<_>>(),
        [10, 30, 40, 50]
    );
}

#[test]
fn every_mail_of_an_old_commit_goes_and_no_commit_beside_the_chain() {
    let mut log = log();
    log.insert(4, (45, commit(4)));
    let beside = subject(Kind::Commit, 77, Some(3), Some(4));
    log.insert(4, (44, beside));
    // A forged generation ends the walk: commits below cannot be told.
    let old = history().old_commits(&log, &|_| false);
    let uids: Vec<u32> = old.iter().map(|(uid, _)| *uid).collect();
    assert_eq!(uids, [10, 20, 30, 40, 45, 50]);
    let gap: Vec<(u32, Subject)> = log
        .iter()
        .filter(|(_, of)| of.mail != id(3))
        .copied()
        .collect();
    let old = history().old_commits(&gap, &|_| false);
    assert_eq!(
        old.iter().map(|(uid, _)| *uid).collect::<Vec<_>>(),
        [40, 45, 50]
    );
    log[2].1.generation = Some(8);
    let old = history().old_commits(&log, &|_| false);
    assert_eq!(
        old.iter().map(|(uid, _)| *uid).collect::<Vec<_>>(),
        [40, 45, 50]
    );
}

#[test]
fn a_walk_begins_at_a_commit_that_a_row_names() {
    // The listing ends before the oldest checkpoint: generation 3 begins the walk.
    let old = history().old_commits(&log()[..4], &|_| false);
    assert_eq!(
        old.iter().map(|(uid, _)| *uid).collect::<Vec<_>>(),
        [10, 20]
    );
    assert_eq!(history().old_commits(&[], &|_| false), []);
    assert_eq!(history().old_commits(&log()[..2], &|_| false), []);
    assert_eq!(History::default().old_commits(&log(), &|_| false), []);
}

#[test]
fn copies_go_by_generation_and_pages_by_reach() {
    let pages = |mail, covers| subject(Kind::Pages, mail, None, Some(covers));
    let copies = [
        (copy(2, 4, 1), commit(5)),
        (copy(2, 4, 2), commit(6)),
        (copy(2, 4, 3), commit(2)),
        (copy(2, 5, 4), pages(51, 5)),
        (copy(2, 5, 5), pages(52, 5)),
        (copy(2, 5, 6), pages(61, 6)),
        (copy(2, 4, 7), subject(Kind::Commit, 8, Some(7), None)),
    ];
    let reached = HashSet::from([id(52)]);
    let has_row = |subject: &Subject| subject.mail == id(2);
    let history = history();
    let old = |reached| {
        let old = history.old_copies(&copies, &has_row, reached);
        old.into_iter()
            .map(|(copy, _)| copy.uid)
            .collect::<Vec<_>>()
    };
    assert_eq!(old(Some(&reached)), [1, 4]);
    // A page that could not be read may name any page.
    assert_eq!(old(None), [1]);
    assert_eq!(History::default().old_copies(&copies, &has_row, None), []);
    let lead = [
        (4, pages(51, 5)),
        (5, pages(52, 5)),
        (6, pages(61, 6)),
        (7, subject(Kind::Commit, 5, Some(4), Some(5))),
    ];
    let old = history.old_pages(&lead, &reached);
    assert_eq!(old, [(4, pages(51, 5))]);
    assert_eq!(History::default().old_pages(&lead, &reached), []);
}

fn suspect(uid: u32, subject: Subject) -> Suspect {
    Suspect {
        copy: copy(1, 1, uid),
        uid_validity: 7,
        subject,
    }
}

fn good(merged: &[u8]) -> Verdict {
    Verdict::Good(Inspected {
        places: Vec::new(),
        merged: merged.iter().map(|number| id(*number)).collect(),
    })
}

/// A log with a loser beside commit 4.
fn with_loser() -> (Vec<(u32, Subject)>, Subject) {
    let loser = subject(Kind::Commit, 77, Some(3), Some(4));
    let mut log = log();
    log.insert(4, (44, loser));
    (log, loser)
}

#[test]
fn a_loser_goes_when_a_verified_commit_names_it() {
    let (log, loser) = with_loser();
    let mut losers = Losers::of(&history(), &log, &|_| false);
    let asked: Vec<u32> = losers.suspects(1, 7).map(|of| of.copy.uid).collect();
    // The loser, and commits behind, or of the loser's generation at least.
    assert_eq!(asked, [44, 40, 50, 60]);
    assert!(losers.suspects(1, 7).all(|of| of.uid_validity == 7));
    assert!(losers.is_held(id(5)) && losers.is_held(id(4)) && !losers.is_held(id(3)));
    assert_eq!(losers.merged(&|_| false), []);
    losers.judge(&[(suspect(44, loser), good(&[]))]);
    losers.judge(&[(suspect(50, commit(5)), good(&[77]))]);
    assert!(!losers.is_held(id(5)) && losers.is_held(id(4)));
    assert_eq!(losers.merged(&|_| false), [(44, id(77))]);
}

#[test]
fn a_forged_or_unread_loser_stays() {
    let (log, loser) = with_loser();
    for verdict in [Verdict::Bad(String::new()), Verdict::Unread(String::new())] {
        let mut losers = Losers::of(&history(), &log, &|_| false);
        losers.judge(&[
            (suspect(50, commit(5)), good(&[77])),
            (suspect(44, loser), verdict),
        ]);
        assert_eq!(losers.merged(&|_| true), []);
    }
    // By a mount's own knowledge a good loser goes.
    let mut losers = Losers::of(&history(), &log, &|_| false);
    losers.judge(&[(suspect(44, loser), good(&[]))]);
    assert_eq!(losers.merged(&|mail| mail == id(77)), [(44, id(77))]);
    assert_eq!(losers.merged(&|mail| mail == id(4)), []);
    // An unread namer is held, a damaged namer is not.
    losers.judge(&[(suspect(50, commit(5)), Verdict::Unread(String::new()))]);
    assert!(losers.is_held(id(5)));
    losers.judge(&[(suspect(50, commit(5)), Verdict::Bad(String::new()))]);
    assert!(!losers.is_held(id(5)));
    // Mails elsewhere are no losers.
    let mut elsewhere = suspect(60, commit(6));
    elsewhere.copy.mailbox = 17;
    losers.judge(&[(elsewhere, good(&[]))]);
    assert!(losers.is_held(id(6)));
}

#[test]
fn without_a_loser_no_commit_is_read() {
    let losers = Losers::of(&history(), &log(), &|_| false);
    assert_eq!(losers.suspects(1, 7).count(), 0);
    // The row tells a loser with content; a loser behind the checkpoint is left to a later run.
    let (mut log, _) = with_loser();
    let losers = Losers::of(&history(), &log, &|of| of.mail == id(77));
    assert_eq!(losers.suspects(1, 7).count(), 0);
    log[4].0 = 65;
    log.sort_by_key(|(uid, _)| *uid);
    let losers = Losers::of(&history(), &log, &|_| false);
    assert_eq!(losers.suspects(1, 7).count(), 0);
    let losers = Losers::of(&History::default(), &log, &|_| false);
    assert_eq!(losers.suspects(1, 7).count(), 0);
}
