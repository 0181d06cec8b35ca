//! Tombstones: their mails, and when a mail may go.

use std::time::Duration;

use super::super::collect::{CollectReport, Plan, Present, good, names_row, suspects};
use super::super::listing::{Duplicate, Listing, by_mailbox};
use super::super::rows::RowChange;
use super::super::scan::Weighed;
use super::{copy, id, subject};
use crate::format::Kind;
use crate::inspect::{Inspected, Suspect, Verdict};
use crate::rows::{Key, PackRow, RowValue, TombstoneRow};

const HOUR: Duration = Duration::from_secs(3_600);
const NOW: i64 = 1_000_000_000;

fn present() -> Present {
    Present {
        now: NOW,
        generation: 9,
        pack_wait: 10 * HOUR,
        grace: HOUR,
    }
}

fn pack(uids: &[u32]) -> Weighed {
    Weighed {
        number: 5,
        row: PackRow {
            mail: id(5),
            kind: Kind::Data as u8,
            group: 1,
            octets: 100,
            copies: uids.iter().map(|uid| copy(1, 17, *uid)).collect(),
        },
        live: 0,
    }
}

fn tombstone(mail: u8, hours_ago: i64, uids: &[u32]) -> TombstoneRow {
    TombstoneRow {
        mail: id(mail),
        generation: 3,
        time_ms: NOW - hours_ago * 3_600_000,
        copies: uids.iter().map(|uid| copy(1, 17, *uid)).collect(),
    }
}

fn written(change: &RowChange) -> (u64, TombstoneRow) {
    let Ok(Key::Tombstone(number)) = Key::decode(&change.0) else {
        panic!("no tombstone: {change:?}");
    };
    let row = change.1.as_deref().unwrap();
    (number, TombstoneRow::decode(row).unwrap())
}

#[test]
fn a_needless_pack_gets_a_tombstone_and_goes_after_its_time() {
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    plan.condemn(&pack(&[7, 8]), None, present(), &mut report);
    let (number, row) = written(&plan.changes[0]);
    assert_eq!((number, row.mail, row.generation), (5, id(5), 9));
    assert_eq!(
        (row.time_ms, row.copies),
        (NOW, vec![copy(1, 17, 7), copy(1, 17, 8)])
    );
    assert_eq!((report.packs_condemned, plan.due.len()), (1, 0));
    assert!(plan.has(5) && plan.names(5, &pack(&[7]).row));
    assert!(!plan.names(5, &pack(&[9]).row) && !plan.names(6, &pack(&[7]).row));
    // Before its time the pack waits.
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    let young = tombstone(5, 9, &[7]);
    plan.condemn(&pack(&[7]), Some(&young), present(), &mut report);
    assert_eq!(
        (report.waiting, plan.changes.len(), plan.due.len()),
        (1, 0, 0)
    );
    assert!(!plan.has(5));
    // Then row and mails go, and further mails of the tombstone.
    let old = tombstone(5, 10, &[8, 7]);
    plan.condemn(&pack(&[7]), Some(&old), present(), &mut report);
    let (_, row) = written(&plan.changes[0]);
    assert_eq!(row.copies, [copy(1, 17, 7), copy(1, 17, 8)]);
    assert_eq!(row.time_ms, old.time_ms);
    assert_eq!(plan.changes[1], (Key::Pack(5).encode(), None));
    assert_eq!(plan.due[&5], row);
}

#[test]
fn a_tombstone_of_other_mails_is_none_of_the_pack() {
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    // A tombstone of a duplicate: the pack's own time begins now, and the duplicate is kept in mind.
    let duplicate = tombstone(5, 99, &[3]);
    assert!(!names_row(&duplicate, &pack(&[7]).row));
    plan.condemn(&pack(&[7]), Some(&duplicate), present(), &mut report);
    let (_, row) = written(&plan.changes[0]);
    assert_eq!((row.time_ms, plan.due.len()), (NOW, 0));
    assert_eq!(row.copies, [copy(1, 17, 3), copy(1, 17, 7)]);
    // A tombstone of a second mail under the number is no reason.
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    let other = tombstone(6, 99, &[7]);
    plan.condemn(&pack(&[7]), Some(&other), present(), &mut report);
    let (_, row) = written(&plan.changes[0]);
    assert_eq!((row.mail, row.time_ms), (id(5), NOW));
    assert_eq!(row.copies, [copy(1, 17, 7)]);
    // A pack without a mail needs no tombstone.
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    plan.condemn(&pack(&[]), None, present(), &mut report);
    assert_eq!(plan.changes, [(Key::Pack(5).encode(), None)]);
    assert_eq!(report.packs_condemned, 0);
}

#[test]
fn a_pack_that_is_needed_again_loses_its_tombstone() {
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    plan.keep(&pack(&[7]), None, &mut report);
    plan.keep(&pack(&[7]), Some(&tombstone(5, 1, &[3])), &mut report);
    assert!(plan.changes.is_empty() && !plan.has(5));
    plan.keep(&pack(&[7]), Some(&tombstone(5, 1, &[7])), &mut report);
    assert_eq!(plan.changes, [(Key::Tombstone(5).encode(), None)]);
    assert_eq!(report.packs_revived, 1);
    assert!(plan.has(5) && !plan.names(5, &pack(&[7]).row));
}

#[test]
fn strays_join_the_tombstone_of_their_number() {
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    let data = subject(Kind::Data, 5, None, None);
    let earlier = tombstone(5, 2, &[1]);
    plan.add_orphan(
        (&data, copy(1, 17, 4)),
        Some(&earlier),
        present(),
        &mut report,
    );
    plan.add_orphan(
        (&data, copy(2, 17, 2)),
        Some(&earlier),
        present(),
        &mut report,
    );
    let (number, row) = written(&plan.changes[1]);
    assert_eq!((number, row.time_ms), (5, NOW));
    let all = [copy(1, 17, 1), copy(1, 17, 4), copy(2, 17, 2)];
    assert_eq!(row.copies, all);
    assert_eq!(report.orphans, 2);
    // A second mail under the number waits until the first is gone, seen by this run or earlier.
    let other = subject(Kind::Data, 6, None, None);
    let other = crate::format::Subject {
        pack: data.pack,
        ..other
    };
    plan.add_orphan((&other, copy(1, 17, 9)), None, present(), &mut report);
    let mut fresh = Plan::default();
    fresh.add_orphan(
        (&other, copy(1, 17, 9)),
        Some(&earlier),
        present(),
        &mut report,
    );
    assert_eq!(
        (report.orphans, plan.changes.len(), fresh.changes.len()),
        (2, 2, 0)
    );
}

#[test]
fn a_duplicate_goes_and_the_kept_mail_stays() {
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    let duplicate = |uid| Duplicate {
        pack: 5,
        subject: subject(Kind::Data, 5, None, None),
        kept: copy(1, 17, 1),
        extra: copy(1, 17, uid),
    };
    let foreign = tombstone(6, 1, &[8]);
    plan.add_duplicate(&duplicate(2), id(5), Some(&foreign), present(), &mut report);
    let own = tombstone(5, 1, &[9]);
    plan.add_duplicate(&duplicate(3), id(5), Some(&own), present(), &mut report);
    let (_, row) = written(&plan.changes[1]);
    assert_eq!(row.copies, [copy(1, 17, 2), copy(1, 17, 3), copy(1, 17, 9)]);
    assert_eq!(report.duplicates, 2);
}

#[test]
fn a_tombstone_apart_ends_after_the_grace() {
    let (mut plan, mut report) = (Plan::default(), CollectReport::default());
    let mut young = tombstone(5, 1, &[1]);
    young.time_ms += 1;
    plan.add_apart(5, young, present(), &mut report);
    assert_eq!((report.waiting, plan.due.len()), (1, 0));
    plan.add_apart(6, tombstone(6, 1, &[1]), present(), &mut report);
    assert_eq!((report.waiting, plan.due.len()), (1, 1));
    assert!(plan.has(6) && !plan.has(5));
    assert!(!plan.is_full());
    for number in 0..20_000 {
        plan.add_apart(number, tombstone(6, 9, &[1]), present(), &mut report);
    }
    assert!(plan.is_full());
}

#[test]
fn strays_are_read_before_they_go() {
    let mut listing = Listing::default();
    let data = subject(Kind::Data, 5, None, None);
    let pages = subject(Kind::Pages, 6, None, Some(3));
    listing.orphans.push((data, copy(1, 17, 1)));
    listing.stray_pages.push((pages, copy(1, 2, 2)));
    listing.duplicates.push(Duplicate {
        pack: 5,
        subject: data,
        kept: copy(1, 17, 3),
        extra: copy(1, 17, 4),
    });
    listing.orphans.push((data, copy(2, 17, 1)));
    listing.number(1, 17, 11);
    listing.number(1, 2, 12);
    let found = suspects(&listing);
    let places: Vec<_> = found.iter().map(|of| (of.copy, of.uid_validity)).collect();
    // Of a duplicate the kept mail is read; an unread account has no suspects.
    let expected = [
        (copy(1, 2, 2), 12),
        (copy(1, 17, 1), 11),
        (copy(1, 17, 3), 11),
    ];
    assert_eq!(places, expected);
    let verdicts: Vec<(Suspect, Verdict)> = found
        .into_iter()
        .zip([
            Verdict::Good(Inspected::default()),
            Verdict::Bad(String::new()),
            Verdict::Unread(String::new()),
        ])
        .collect();
    assert_eq!(
        good(&verdicts).into_iter().collect::<Vec<_>>(),
        [copy(1, 2, 2)]
    );
}

#[test]
fn doomed_mails_are_sorted_by_mailbox_once() {
    let all = [
        (copy(1, 17, 4), id(4)),
        (copy(1, 17, 2), id(2)),
        (copy(1, 18, 4), id(4)),
        (copy(1, 17, 4), id(4)),
    ];
    let sorted = by_mailbox(all);
    assert_eq!(sorted.len(), 2);
    let of: Vec<_> = sorted[&(1, 17)].iter().copied().collect();
    assert_eq!(of, [(2, id(2)), (4, id(4))]);
    let (mut kept, mut has_more) = (Vec::new(), false);
    for number in 0..3 {
        Listing::note(&mut kept, number, 2, &mut has_more);
        assert_eq!(has_more, number == 2);
    }
    assert_eq!(kept, [0, 1]);
}
