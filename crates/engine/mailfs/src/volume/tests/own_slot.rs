//! A running mount notices what another machine does to the slot that opened the mount.

use super::facts::{NEW, OLD, both_keys, first_keys, put, slot};
use super::key_races::{THIRD, change, keys_of};
use super::rig::{Several, create};
use super::*;
use crate::rows::Key;
use crate::volume::FactsChange;

/// Two mounts: the first by slot 1, the second by slot 2.
fn by_own_slots() -> Several {
    let mut several = Several::with_slots();
    several
        .volume(0)
        .use_slot(1, slot(1, OLD, &first_keys()).head.mail);
    several
        .volume(1)
        .use_slot(2, slot(2, THIRD, &first_keys()).head.mail);
    several
}

fn removal() -> FactsChange {
    FactsChange {
        rows: vec![(Key::Slot(2).encode(), None)],
        name: "home".to_owned(),
        ..FactsChange::default()
    }
}

#[test]
fn a_mount_whose_slot_is_removed_stops_sending_and_keeps_the_journal() {
    let mut several = by_own_slots();
    several.put(1, "before", "sent");
    several.sync(1).unwrap();
    // A change of the second machine is on its way while the first one revokes the slot.
    several.mounts[1].is_held = true;
    several.begin_change(0, removal());
    several.changed(0).unwrap();
    several.put(1, "late", "kept");
    several.mounts[1].is_held = false;
    // The revocation arrives before the change is due.
    for _ in 0..4 {
        several.pass(1);
    }
    several.quiet();
    assert_eq!(several.volume(1).read_only(), Some(&Notice::Revoked(2)));
    assert!(several.mounts[1].notices.contains(&Notice::Revoked(2)));
    let status = several.volume(1).status();
    assert!(status.read_only.unwrap().contains("key slot 2"));
    // Programs read on, and change nothing.
    assert_eq!(several.tree(1)["late"], "kept");
    assert_eq!(several.folder(1, "new"), Err(Errno::RoFs));
    assert_eq!(several.sync(1), Err(Errno::Io));
    // The volume goes on without the machine.
    several.put(0, "after", "more");
    several.sync(0).unwrap();
    several.quiet();
    assert!(!several.tree(0).contains_key("late"));
    assert_eq!(several.tree(1)["after"], "more");
    // The folder with another slot's keys sends what the journal has.
    several.kill(1);
    several.mount(1).unwrap();
    several.sync(1).unwrap();
    several.quiet();
    assert_eq!(several.tree(0)["late"], "kept");
}

/// Such a mount once went on sending, and told nobody of the removal.
#[test]
fn a_mount_that_is_read_only_for_another_reason_stops_sending_too() {
    let mut several = by_own_slots();
    several.put(1, "late", "kept");
    several.volume(1).fail(Notice::Pack("a reason".to_owned()));
    assert!(!several.volume(1).is_stopped());
    several.mounts[1].is_held = true;
    several.begin_change(0, removal());
    several.changed(0).unwrap();
    several.mounts[1].is_held = false;
    for _ in 0..4 {
        several.pass(1);
    }
    several.quiet();
    assert_eq!(several.volume(1).read_only(), Some(&Notice::Revoked(2)));
    assert!(several.mounts[1].notices.contains(&Notice::Revoked(2)));
    assert!(several.volume(1).is_stopped());
    assert!(!several.tree(0).contains_key("late"));
    // A weaker reason does not take its place.
    several.volume(1).fail(Notice::Behind);
    assert_eq!(several.volume(1).read_only(), Some(&Notice::Revoked(2)));
}

#[test]
fn another_secret_for_the_slot_is_told_and_stops_nothing() {
    let mut several = by_own_slots();
    let renewal = change(vec![slot(2, NEW, &first_keys())], &first_keys());
    several.begin_change(0, renewal);
    several.changed(0).unwrap();
    several.quiet();
    assert_eq!(several.volume(1).read_only(), None);
    assert!(several.mounts[1].notices.contains(&Notice::Renewed(2)));
    assert!(several.volume(1).status().slot.unwrap().contains("slot 2"));
    assert_eq!(several.volume(0).status().slot, None);
    several.put(1, "file", "content");
    several.sync(1).unwrap();
    several.quiet();
    assert_eq!(several.tree(0)["file"], "content");
    // A change by the machine itself is no news, and ends the notice.
    let own = change(vec![slot(2, &[4; 32], &first_keys())], &first_keys());
    several.begin_change(1, own);
    several.changed(1).unwrap();
    several.quiet();
    assert_eq!(several.volume(1).status().slot, None);
}

#[test]
fn a_number_given_to_another_slot_does_not_make_the_first_one_count() {
    let mut several = by_own_slots();
    several.mounts[1].is_held = true;
    several.begin_change(0, removal());
    several.changed(0).unwrap();
    several.begin_change(0, change(vec![slot(2, NEW, &first_keys())], &first_keys()));
    several.changed(0).unwrap();
    several.quiet();
    assert_eq!(several.volume(1).read_only(), Some(&Notice::Revoked(2)));
}

#[test]
fn a_rotation_that_drops_the_slot_is_a_removal() {
    let mut several = by_own_slots();
    let first = slot(1, NEW, &both_keys());
    let rotation = FactsChange {
        rows: vec![put(1, &first), (Key::Slot(2).encode(), None)],
        slots: vec![first],
        keys: Some((2, keys_of(&both_keys()))),
        name: "home".to_owned(),
        ..FactsChange::default()
    };
    several.begin_change(0, rotation);
    several.changed(0).unwrap();
    several.quiet();
    assert_eq!(several.volume(1).read_only(), Some(&Notice::Revoked(2)));
}

#[test]
fn behind_a_commit_of_later_keys_nothing_counts_as_sent() {
    let mut several = by_own_slots();
    several.put(1, "before", "sent");
    several.sync(1).unwrap();
    several.quiet();
    // The second machine's slot stays, with keys that the running mount lacks.
    several.mounts[1].is_held = true;
    let both = vec![slot(1, NEW, &both_keys()), slot(2, NEW, &both_keys())];
    several.begin_change(0, change(both, &both_keys()));
    several.changed(0).unwrap();
    several.put(0, "new keys", "");
    several.sync(0).unwrap();
    several.put(1, "late", "kept");
    several.mounts[1].is_held = false;
    several.quiet();
    assert_eq!(several.volume(1).read_only(), Some(&Notice::NewKeys));
    several.kill(1);
    let of = Create {
        epoch: 2,
        keys: keys_of(&both_keys()),
        ..create("m1")
    };
    several.mount_by(1, of, None).unwrap();
    several.sync(1).unwrap();
    several.quiet();
    assert_eq!(several.tree(0)["late"], "kept");
}
