//! Two machines collect at once, in any order of their steps: no lease is needed, since every removal follows rows of the chain,
//! and the chain has one order.

use vere_faults::Seeded;

use super::super::rig::Several;
use super::*;

const FILES: usize = 12;

fn text(number: usize, day: u64) -> String {
    format!("{number} {day} ").repeat(if number.is_multiple_of(3) { 12_000 } else { 40 })
}

fn below(seeded: &mut Seeded, bound: u64) -> usize {
    usize::try_from(seeded.next_u64() % bound).unwrap()
}

/// A day of both mounts: files come, change and go.
fn work(
    several: &mut Several,
    seeded: &mut Seeded,
    day: u64,
    files: &mut BTreeMap<String, String>,
) {
    for _ in 0..6 {
        let mount = below(seeded, 2);
        let number = below(seeded, FILES as u64);
        let name = format!("file-{number}");
        if files.remove(&name).is_some() {
            several.remove(mount, &name).unwrap();
        } else {
            several.put(mount, &name, &text(number, day));
            files.insert(name, text(number, day));
        }
        several.sync(mount).unwrap();
        several.quiet();
    }
}

/// Both collect, one step of either at a time.
fn collect_both(several: &mut Several, seeded: &mut Seeded) {
    for mount in [0, 1] {
        let now = several.moment();
        assert!(several.volume(mount).collect(now, CollectTerms::DEFAULT));
    }
    let mut over = [false; 2];
    for round in 0..400_000 {
        let mount = below(seeded, 2);
        several.step(mount);
        if !over[mount]
            && let Some(upkept) = several.volume(mount).take_upkept()
        {
            // A run may lose its rows to the other one, and says so.
            assert!(
                matches!(upkept, Upkept::Collected(_) | Upkept::Failed(_)),
                "{upkept:?}"
            );
            over[mount] = true;
        }
        if over == [true; 2] {
            return;
        }
        if round % 400 == 399 {
            several.now += 1_000;
            several.wake();
        }
    }
    panic!("the collections never end");
}

#[test]
fn two_collections_at_once_harm_nothing() {
    for seed in 0..12 {
        let mut seeded = Seeded(seed);
        let mut several = Several::new(2);
        let mut files = BTreeMap::new();
        for day in 0..14 {
            work(&mut several, &mut seeded, day, &mut files);
            collect_both(&mut several, &mut seeded);
            several.quiet();
            several.pass(24 * 3_600);
            for mount in [0, 1] {
                assert_eq!(several.volume(mount).read_only(), None, "{seed} {day}");
            }
        }
        for mount in [0, 1] {
            let tree = several.tree(mount);
            assert!(tree == files, "{seed} {mount}: {:?}", tree.keys());
            assert_eq!(several.conflicts(mount), [], "{seed}");
        }
        let now = several.moment();
        let terms = CheckTerms {
            data: true,
            repair: false,
        };
        assert!(several.volume(0).check(now, terms));
        several.quiet();
        let Some(Upkept::Checked(report)) = several.volume(0).take_upkept() else {
            panic!("no report");
        };
        assert!(report.is_clean(), "{seed}: {:?}", report.findings);
        // Everything is there for a machine that has never seen the volume.
        several.kill(1);
        several.mounts[1].disk = MemoryDisk::default();
        several.mount(1).unwrap();
        assert!(several.tree(1) == files, "{seed}");
    }
}
