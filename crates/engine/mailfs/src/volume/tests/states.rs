//! What people see and switch: the map of replicas, health and speed, the mode; rows of a new volume.

use super::*;
use crate::rows::{GroupRow, Key, RowValue};

const ROOT: Inode = Inode::ROOT;

#[test]
fn the_map_has_packs_and_missing_copies_by_group() {
    let mut world = World::new(3);
    world.terms.groups = vec![GroupTerms {
        group: 1,
        accounts: vec![2, 3],
    }];
    world.kill();
    world.mount().unwrap();
    world.fortune = Box::new(|account, _| match account.0 {
        3 => Luck::Lost,
        _ => Luck::Good,
    });
    world.put(ROOT, "a", &noise(1, 3 << 20));
    world.sync().unwrap();
    let now = world.moment();
    let groups = world.volume().groups();
    assert_eq!(groups.len(), 1);
    assert_eq!(
        (groups[0].packs, groups[0].accounts.as_slice()),
        (3, &[2, 3][..])
    );
    assert!(groups[0].octets >= 3 << 20);
    assert_eq!(groups[0].missing, [(3, 3)].into());
    let status = world.volume().status_at(now);
    assert!(status.octets_per_second >= 1 << 20, "{status:?}");
    assert!(status.accounts[1].failing.is_none());
    let failing = &status.accounts[2];
    assert!(failing.failing.is_some());
    assert!(failing.next_attempt > Duration::ZERO);
    world.pass(Duration::from_secs(90));
    let now = world.moment();
    let status = world.volume().status_at(now);
    assert!(status.accounts[2].failing_for >= Duration::from_secs(90));
    assert_eq!(status.octets_per_second, 0);
}

#[test]
fn a_running_mount_switches_its_mode() {
    let mut world = World::new(1);
    let before = world.count("commit");
    make_folder(&mut world, ROOT, "weak", 0o755);
    assert_eq!(world.count("commit"), before);
    let now = world.moment();
    world.volume().set_strong(now, true);
    world.settle();
    assert_eq!(world.count("commit"), before + 1);
    make_folder(&mut world, ROOT, "strong", 0o755);
    assert_eq!(world.count("commit"), before + 2);
    assert!(world.volume().status().strong);
    world.volume().set_strong(now, false);
    make_folder(&mut world, ROOT, "weak again", 0o755);
    assert_eq!(world.count("commit"), before + 2);
}

#[test]
fn rows_of_a_new_volume_are_in_the_first_commit() {
    let mut world = World::new(1);
    world.accounts = [(1, MemoryAccount::new())].into();
    world.lose_folder();
    let row = GroupRow {
        strategy: 0,
        sync_copies: 1,
        accounts: vec![1],
    };
    let rows = [(Key::Group(1).encode(), row.encode())];
    let (terms, disk, now) = (terms(1), world.disk.clone(), world.moment());
    let volume = Volume::create_with(of(), &rows, terms, disk, [2; 16], (CALLER, now));
    world.volume = Some(volume.unwrap());
    let before = world.count("commit");
    world.settle();
    assert_eq!(world.count("commit"), before + 1);
    world.lose_folder();
    world.mount().unwrap();
    let found = world.volume().files.tree().get(&rows[0].0).unwrap();
    assert_eq!(found, Some(row.encode().into()));
}
