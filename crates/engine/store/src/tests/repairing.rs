//! What a damaged log still has comes back, what it has not is named, and nothing else goes.

use std::collections::BTreeMap;

use vere_faults::Seeded;
use vere_ports::storage::Storage as _;

use super::reclaiming::{add, expunge, reclaim};
use super::*;
use crate::{RepairError, RepairReport, Uid};

/// Messages by account, mailbox and UID.
pub(super) type Contents = BTreeMap<(String, String, Uid), Vec<u8>>;

/// Two accounts with some mailboxes, a deleted one among them, messages that two share, some expunged,
/// segments that were written again and such that were not.
pub(super) fn filled() -> Bench {
    let mut bench = Bench::new();
    let (inbox, archive) = (bench.inbox, bench.create("Archive"));
    let bob = bench.store.open_account(&account("bob"), NOW).unwrap();
    let bob = safe(&mut bench.store, bob);
    let uids: Vec<_> = (1..=30).map(|n| add(&mut bench, inbox, n, n)).collect();
    expunge(&mut bench, &uids[..12]);
    let old = bench.create("Old");
    bench.deliver(old, 80);
    let deleted = bench
        .store
        .delete_mailbox(&account("ann"), &name("Old"), NOW);
    safe(&mut bench.store, deleted.unwrap());
    empty(&mut bench.store);
    assert!(reclaim(&mut bench.store).unwrap() > 0);
    for number in 40..70 {
        let targets = [target(inbox), target(bob)];
        let sent = bench
            .store
            .deliver(&prepared(number), &targets, operation(number));
        assert!(
            safe(&mut bench.store, sent.unwrap())
                .iter()
                .all(Result::is_ok)
        );
    }
    let moved = bench.store.move_to(
        inbox,
        &uids[20..25],
        archive,
        QuotaLimit::default(),
        operation(900),
    );
    drop(safe(&mut bench.store, moved.unwrap()));
    bench
}

/// Everything there is, after a check that finds nothing.
pub(super) fn contents(store: &mut Tested, context: &str) -> Contents {
    let report = store.check_all().unwrap();
    assert_eq!(report.findings, [], "{context}");
    let mut contents = Contents::new();
    for owner in [account("ann"), account("bob")] {
        let list = store.list(&owner).unwrap();
        for entry in safe(store, list) {
            let Some(id) = entry.mailbox else { continue };
            let snapshot = store.snapshot(id).unwrap();
            let snapshot = safe(store, snapshot);
            for message in snapshot.iter_from(0) {
                let body = store.body_reader().open(message.blob);
                let octets = body.unwrap().message().unwrap();
                let place = (owner.to_string(), entry.name.to_string(), message.uid);
                contents.insert(place, octets);
            }
        }
    }
    contents
}

pub(super) fn repair(
    disk: &MemoryDisk,
    old: Option<&MemoryMeta>,
    dry_run: bool,
) -> Result<(RepairReport, MemoryMeta), RepairError> {
    let fresh = MemoryMeta::default();
    let report = Store::repair(disk.clone(), old, fresh.clone(), config(), dry_run)?;
    Ok((report, fresh))
}

/// What is there after a repair, which the log alone tells as well.
pub(super) fn repaired(
    disk: &MemoryDisk,
    old: Option<&MemoryMeta>,
    context: &str,
) -> (RepairReport, Contents) {
    let (report, fresh) = repair(disk, old, false).unwrap_or_else(|e| panic!("{context}: {e}"));
    let (mut store, _) = Store::open(disk.clone(), fresh, config())
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = contents(&mut store, context);
    drop(store);
    let (mut store, _) = Store::open(disk.clone(), MemoryMeta::default(), config())
        .unwrap_or_else(|error| panic!("{context}, from the log alone: {error}"));
    assert_eq!(contents(&mut store, context), found, "{context}");
    (report, found)
}

/// All messages that are not as before are named, and their bodies lay where the log is damaged.
fn only_named_ones_are_lost(before: &Contents, after: &Contents, report: &RepairReport) {
    for ((owner, mailbox, uid), content) in before {
        match after.get(&(owner.clone(), mailbox.clone(), *uid)) {
            Some(there) => assert_eq!(there, content, "{owner} {mailbox} {uid}"),
            None => {
                let named = report.lost.iter().find(|lost| {
                    let account = lost.account.as_ref().map(ToString::to_string);
                    let at = lost.mailbox.as_ref().map(ToString::to_string);
                    account.as_ref() == Some(owner)
                        && at.as_ref() == Some(mailbox)
                        && lost.uid == *uid
                });
                let body = named.unwrap_or_else(|| panic!("{owner} {mailbox} {uid} is not named"));
                let position = body.body.0;
                assert!(
                    report
                        .damage
                        .iter()
                        .any(|each| (each.from..each.to).contains(&position)),
                    "{owner} {mailbox} {uid} at {position}: {:?}",
                    report.damage
                );
            }
        }
    }
    assert_eq!(before.len(), after.len() + report.lost.len());
}

#[test]
fn metadata_come_back_from_the_log() {
    let mut bench = filled();
    let before = contents(&mut bench.store, "before");
    let (report, after) = repaired(&bench.disk, None, "no metadata");
    assert_eq!(after, before);
    assert_eq!((report.mended, report.has_losses()), (0, false));
    assert_eq!(report.messages, before.len() as u64);
    assert_eq!((report.accounts, report.mailboxes), (2, 3));
    let (report, _) = repaired(&bench.disk, Some(&bench.meta.clone()), "with metadata");
    assert_eq!((report.mended, report.from_metadata), (0, 0));
}

/// Counters that are not those of the messages, and a name in a list whose mailbox is not there.
#[test]
fn a_log_that_says_what_cannot_be_is_mended() {
    let mut bench = filled();
    let before = contents(&mut bench.store, "before");
    let partition = vere_ports::mail_meta::Partition::Mailbox(bench.inbox.0);
    let version = bench.store.mailbox(bench.inbox).unwrap().version;
    let mut head = bench.store.mailbox(bench.inbox).unwrap().head;
    (head.messages, head.octets) = (7, 9);
    let mut change = crate::batch::Change::new(partition, version);
    change.put(crate::rows::keys::HEAD, head.encode());
    bench.store.commit(change).unwrap();
    sync(&mut bench.store);
    bench.reopen(false);
    assert_ne!(bench.store.check_all().unwrap().findings, []);
    let (report, after) = repaired(&bench.disk, Some(&bench.meta.clone()), "counters");
    assert_eq!(
        (after, report.mended, report.has_losses()),
        (before, 1, false)
    );
}

#[test]
fn damage_takes_no_more_than_what_lay_there() {
    let mut bench = filled();
    let before = contents(&mut bench.store, "before");
    let meta = bench.meta.clone();
    let (mut damaged, mut named, mut rescued, mut changes) = (0, 0, 0, 0);
    for segment in bench.disk.list().unwrap() {
        let data = bench.disk.file(&segment).unwrap();
        for at in (0..data.len()).step_by(1_409) {
            let context = format!("{segment}, octet {at}");
            let broken = || {
                let disk = bench.disk.copy();
                let mut data = data.clone();
                data[at] ^= 0x10;
                disk.set_file(&segment, Some(data));
                disk
            };
            let (report, after) = repaired(&broken(), Some(&meta), &context);
            only_named_ones_are_lost(&before, &after, &report);
            assert_eq!((report.changes_lost.len(), report.lists_lost.len()), (0, 0));
            damaged += report.damage.len();
            named += report.lost.len();
            rescued += report.from_metadata;
            // Without metadata changes are lost too, and what is left is whole.
            let disk = broken();
            let (report, after) = repaired(&disk, None, &context);
            changes += report.changes_lost.len() + report.lists_lost.len();
            let known = |place| {
                before
                    .get(place)
                    .is_none_or(|content| after[place] == *content)
            };
            assert!(after.keys().all(known), "{context}");
            assert!(after.len() + 8 > before.len(), "{context}: {}", after.len());
            let (again, same) = repaired(&disk, None, &context);
            assert_eq!((same, again.mended), (after, 0), "{context}: once more");
        }
    }
    assert!(damaged > 20 && named > 10, "{damaged} {named}");
    assert!(rescued > 0 && changes > 0, "{rescued} {changes}");
}

/// Also damage that nobody meets as long as the metadata are whole, such as that of a change.
#[test]
fn a_check_finds_what_a_repair_would() {
    let bench = filled();
    let meta = bench.meta.clone();
    let mut found = 0;
    for segment in bench.disk.list().unwrap() {
        let data = bench.disk.file(&segment).unwrap();
        for at in (64..data.len()).step_by(1_409) {
            let disk = bench.disk.copy();
            let mut data = data.clone();
            data[at] ^= 0x10;
            disk.set_file(&segment, Some(data));
            let (report, _) = repair(&disk, Some(&meta), true).unwrap();
            let Ok((mut store, _)) = Store::open(disk, meta.clone(), config()) else {
                continue;
            };
            let check = store.check_all().unwrap();
            for damage in report.damage {
                found += 1;
                let finding = crate::Finding::Log(damage);
                let context = format!("{segment}, octet {at}: {:?}", check.findings);
                assert!(check.findings.contains(&finding), "{context}");
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn whole_segments_may_be_gone() {
    let mut bench = filled();
    let before = contents(&mut bench.store, "before");
    let mut names = bench.disk.list().unwrap();
    names.sort();
    assert!(names.len() > 3);
    for gone in &names {
        for old in [Some(bench.meta.clone()), None] {
            let disk = bench.disk.copy();
            disk.set_file(gone, None);
            let context = format!("without {gone}, metadata: {}", old.is_some());
            let (report, after) = repaired(&disk, old.as_ref(), &context);
            let last = Some(gone) == names.last();
            assert_eq!(report.damage.is_empty(), last && old.is_none(), "{context}");
            if old.is_some() {
                only_named_ones_are_lost(&before, &after, &report);
                // What comes now gets no UID and no place that was given before.
                let (mut store, _) = Store::open(disk, MemoryMeta::default(), config()).unwrap();
                assert!(store.end() >= bench.store.end(), "{context}");
                let status = |store: &mut Tested| {
                    let status = store.status(bench.inbox).unwrap();
                    safe(store, status).uid_next
                };
                assert_eq!(status(&mut store), status(&mut bench.store), "{context}");
            }
        }
    }
}

/// A client that knows the mailbox from before is told of everything.
#[test]
fn clients_look_again_at_what_lost_changes() {
    let mut bench = filled();
    let status = bench.store.status(bench.inbox).unwrap();
    let before = safe(&mut bench.store, status);
    let mut names = bench.disk.list().unwrap();
    names.sort();
    bench.disk.set_file(&names[2], None);
    let (report, fresh) = repair(&bench.disk, None, false).unwrap();
    assert!(report.changes_lost.contains(&bench.inbox));
    let (mut store, _) = Store::open(bench.disk.clone(), fresh, config()).unwrap();
    let snapshot = store.snapshot(bench.inbox).unwrap();
    let snapshot = safe(&mut store, snapshot);
    assert!(
        snapshot
            .iter_from(0)
            .all(|message| message.mod_seq > before.highest_mod_seq)
    );
    let gone = store
        .expunged_since(bench.inbox, before.highest_mod_seq)
        .unwrap();
    assert_eq!(safe(&mut store, gone), None);
    let (uid_next, uid_validity) = (snapshot.status().uid_next, snapshot.status().uid_validity);
    assert_eq!(
        (uid_next, uid_validity),
        (before.uid_next, before.uid_validity)
    );
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let bench = filled();
    let meta = bench.meta.clone();
    let mut names = bench.disk.list().unwrap();
    names.sort();
    let mut data = bench.disk.file(&names[1]).unwrap();
    let middle = data.len() / 2;
    data[middle] ^= 1;
    bench.disk.set_file(&names[1], Some(data));
    let before: Vec<_> = names.iter().map(|name| bench.disk.file(name)).collect();
    let (dry, _) = repair(&bench.disk, Some(&meta), true).unwrap();
    let mut after = bench.disk.list().unwrap();
    after.sort();
    assert_eq!(after, names);
    assert_eq!(
        names
            .iter()
            .map(|name| bench.disk.file(name))
            .collect::<Vec<_>>(),
        before
    );
    let (real, _) = repair(&bench.disk, Some(&meta), false).unwrap();
    assert_eq!(dry, real);
    assert!(!real.damage.is_empty());
    // What was there is kept.
    let aside = names[1].replace(".log", ".damaged");
    assert_eq!(bench.disk.file(&aside), before[1]);
}

#[test]
fn no_cut_of_power_while_repairing_makes_it_worse() {
    let damaged = || {
        let bench = filled();
        let meta = bench.meta.clone();
        let mut names = bench.disk.list().unwrap();
        names.sort();
        let mut data = bench.disk.file(&names[1]).unwrap();
        let place = data.len() / 3;
        data[place] ^= 1;
        bench.disk.set_file(&names[1], Some(data));
        bench.disk.set_file(&names[3], None);
        let disk = bench.disk.copy();
        (disk, meta)
    };
    let (disk, meta) = damaged();
    let (report, expected) = repaired(&disk, Some(&meta), "without a cut");
    assert!(
        report.lost.len() > 2 && report.from_metadata > 0,
        "{report:?}"
    );
    let (disk, meta) = damaged();
    let start = disk.steps();
    drop(repair(&disk, Some(&meta), false).unwrap());
    let points = disk.steps() - start;
    assert!(points > 15, "{points} points to cut at");
    for point in 0..points {
        for seed in 0..3 {
            let context = format!("cut at {point} of {points}, seed {seed}");
            let (disk, meta) = damaged();
            let mut fate = Seeded(point * 10 + seed);
            disk.stop_at(disk.steps() + point);
            assert!(repair(&disk, Some(&meta), false).is_err(), "{context}");
            disk.crash(&mut fate);
            let (_, after) = repaired(&disk, Some(&meta), &context);
            assert_eq!(after, expected, "{context}");
        }
    }
}

/// The end of writes that a crash cut off was never acknowledged: it is no loss.
#[test]
fn a_torn_end_is_no_damage() {
    let mut bench = filled();
    let before = contents(&mut bench.store, "before");
    let end = bench.store.end().0;
    let waiting = bench
        .store
        .deliver(&prepared(71), &[target(bench.inbox)], operation(71))
        .unwrap();
    let job = bench.store.sync_job().unwrap().unwrap();
    drop((waiting, job));
    let mut names = bench.disk.list().unwrap();
    names.sort();
    let newest = names.last().unwrap();
    let first = crate::log::format::segment_position(newest).unwrap();
    let mut data = bench.disk.file(newest).unwrap();
    data[(64 + end - first) as usize + 50] ^= 1;
    bench.disk.set_file(newest, Some(data));
    let (report, after) = repaired(&bench.disk, Some(&bench.meta.clone()), "torn");
    assert_eq!((after, report.has_losses()), (before, false));
    assert_eq!(report.damage, []);
}

/// The hints that all accounts share are no mailbox that lost changes.
#[test]
fn hints_are_no_loss() {
    let mut bench = Bench::new();
    bench.store.config.sharing = crate::Sharing::All;
    let inbox = bench.inbox;
    bench.fill(inbox, 1..=5);
    let everybody = crate::rows::keys::EVERYBODY.encode();
    assert!(
        bench
            .meta
            .rows()
            .keys()
            .any(|(partition, _)| *partition == everybody)
    );
    let meta = bench.meta.clone();
    let (report, _) = repaired(&bench.disk, Some(&meta), "shared by all");
    assert_eq!((report.mended, report.from_metadata), (0, 0));
    assert_eq!((report.messages, report.has_losses()), (5, false));
}
