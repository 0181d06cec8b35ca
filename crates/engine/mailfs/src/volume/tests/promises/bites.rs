//! Does the checker bite: the engine is broken on purpose, and a seed of some test notices each breakage.

use super::super::{crashes, races, upkeep};
use super::torn;
use crate::breakage::{Breakage, break_by};

/// Whether a test fails with a broken engine.
fn bites(breakage: Breakage, test: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    break_by(Some(breakage));
    let run = std::panic::catch_unwind(test);
    break_by(None);
    run.is_err()
}

/// A test with seeds, as far as the first that fails.
fn seeds(run: impl Fn(u64) -> Result<(), String>) {
    for seed in 0..2_000 {
        run(seed).unwrap();
    }
}

#[test]
fn a_commit_that_is_sent_before_its_begin_is_synced_is_noticed() {
    assert!(bites(Breakage::BegunUnsynced, || seeds(torn::run)));
}

#[test]
fn a_commit_before_its_packs_is_noticed() {
    assert!(bites(
        Breakage::CommitBeforePacks,
        crashes::a_client_that_dies_unanswered_loses_nothing
    ));
}

#[test]
fn a_rename_before_its_content_is_noticed() {
    assert!(bites(
        Breakage::RenameBeforeContent,
        races::a_rename_during_an_fsync_waits_for_its_content
    ));
}

#[test]
fn garbage_without_grace_is_noticed() {
    assert!(bites(
        Breakage::NoGrace,
        upkeep::collections::orphans_go_after_a_day
    ));
}

#[test]
fn a_journal_that_is_not_synced_is_noticed() {
    assert!(bites(Breakage::JournalUnsynced, || seeds(torn::run)));
}
