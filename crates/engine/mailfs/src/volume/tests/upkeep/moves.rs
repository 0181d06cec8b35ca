//! Thin packs: what files need of them moves, whatever happens on the way, and a file that changes meanwhile keeps the change.

use super::*;

const PART: usize = 120_000;

/// A pack with three files, of which one stays.
fn thin() -> (World, Vec<u8>) {
    let mut world = replicated();
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        world.put(ROOT, name, &noise(number as u64 + 1, PART));
    }
    world.sync().unwrap();
    assert_eq!(world.mails(2, "data-0001").len(), 1);
    world.remove("a");
    world.remove("c");
    world.sync().unwrap();
    (world, noise(2, PART))
}

fn packs(world: &mut World) -> Vec<u32> {
    world.mails(2, "data-0001")
}

#[test]
fn content_of_a_thin_pack_moves_and_the_pack_goes() {
    let (mut world, content) = thin();
    let report = world.collect().unwrap();
    assert_eq!((report.packs_moved, report.has_more), (1, true));
    assert!((PART as u64..PART as u64 + 200).contains(&report.octets_moved));
    assert_eq!(packs(&mut world), [1, 2]);
    assert!(world.get(ROOT, "b").unwrap() == content);
    let second = world.collect().unwrap();
    assert_eq!((second.packs_condemned, second.has_more), (1, false));
    world.days(8);
    assert_eq!(world.collect().unwrap().removed, 2);
    assert_eq!(packs(&mut world), [2]);
    assert!(world.get(ROOT, "b").unwrap() == content);
    assert_eq!(world.check(true, false).findings, []);
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "b").unwrap() == content);
    assert_eq!(world.collect().unwrap(), CollectReport::default());
}

#[test]
fn a_pack_that_is_half_needed_stays() {
    let mut world = World::new(1);
    world.put(ROOT, "a", &noise(1, PART));
    world.put(ROOT, "b", &noise(2, PART));
    world.sync().unwrap();
    world.remove("a");
    world.sync().unwrap();
    assert_eq!(world.collect().unwrap(), CollectReport::default());
}

#[test]
fn a_file_that_changes_during_the_move_keeps_the_change() {
    let (mut world, mut content) = thin();
    let inode = world.lookup(ROOT, "b").unwrap().inode;
    let handle = world.open(inode);
    let now = world.moment();
    world.volume().collect(now, CollectTerms::DEFAULT);
    for _ in 0..400 {
        world.step();
        let is_moving = matches!(world.volume().upkeep_progress(), Some(("moving", ..)));
        if is_moving {
            break;
        }
        world.volume().wake(now);
    }
    assert!(matches!(
        world.volume().upkeep_progress(),
        Some(("moving", ..))
    ));
    world.write(handle, 10, b"changed");
    content[10..17].copy_from_slice(b"changed");
    world.close(handle);
    world.upkept().unwrap();
    world.sync().unwrap();
    assert!(world.get(ROOT, "b").unwrap() == content);
    for _ in 0..3 {
        world.collect().unwrap();
        world.days(8);
    }
    assert_eq!(world.check(true, false).findings, []);
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "b").unwrap() == content);
}

#[test]
fn a_shared_chunk_moves_for_every_file() {
    let (mut world, content) = thin();
    let inode = world.lookup(ROOT, "b").unwrap().inode;
    let from = world.open(inode);
    let (_, to) = world.create(ROOT, "copy");
    let copy = Call::CopyRange {
        from,
        from_offset: 0,
        to,
        to_offset: 0,
        length: PART as u64,
    };
    world.call(copy).unwrap();
    world.close(from);
    world.close(to);
    world.sync().unwrap();
    world.collect().unwrap();
    world.days(8);
    for _ in 0..2 {
        world.collect().unwrap();
        world.days(8);
    }
    assert_eq!(packs(&mut world), [2]);
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "b").unwrap() == content);
    assert!(world.get(ROOT, "copy").unwrap() == content);
}

#[test]
fn a_full_lead_loses_the_content_of_its_commits() {
    let mut world = World::new(2);
    world.put(ROOT, "small", &noise(1, 20_000));
    world.sync().unwrap();
    assert_eq!(world.collect().unwrap().packs_moved, 0);
    // A quota that leaves less than a fifth, and more than the reserve of the volume.
    let used = world.accounts[&1].octets();
    world.accounts.get_mut(&1).unwrap().quota = Some(used + (100 << 20));
    world.pass(Duration::from_secs(700));
    assert_eq!(world.collect().unwrap().packs_moved, 0);
    let filler = vec![b'x'; 500 << 20];
    let log = world.shelf(1, "log");
    let mut other = log.clone();
    other.mails = [(1, Bytes::from(filler))].into();
    world.accounts.get_mut(&1).unwrap().quota = Some(used + (600 << 20));
    world
        .accounts
        .get_mut(&1)
        .unwrap()
        .add_mailbox("filler", other);
    world.pass(Duration::from_secs(700));
    assert_eq!(world.collect().unwrap().packs_moved, 1);
    assert!(world.get(ROOT, "small").unwrap() == noise(1, 20_000));
    assert!(world.check(true, false).is_clean());
}

/// Runs until the thin pack is gone.
fn runs(world: &mut World) {
    for _ in 0..3 {
        world.collect();
        world.days(8);
    }
}

#[test]
fn a_client_that_dies_during_a_move_loses_nothing() {
    let (mut world, _) = thin();
    let before: usize = world.counts.values().sum();
    runs(&mut world);
    let requests = world.counts.values().sum::<usize>() - before;
    assert_eq!(packs(&mut world), [2]);
    for luck in [Luck::Lost, Luck::Unanswered] {
        for deadly in 0..requests {
            let (mut world, content) = thin();
            let mut number = 0;
            world.fortune = Box::new(move |_, _| {
                number += 1;
                if number > deadly { luck } else { Luck::Good }
            });
            let now = world.moment();
            for _ in 0..2 {
                world.volume().collect(now, CollectTerms::DEFAULT);
                for _ in 0..200 {
                    world.step();
                }
                for _ in 0..4 {
                    world.pass(Duration::from_secs(10));
                }
                world.volume().take_upkept();
            }
            if deadly % 2 == 0 {
                world.kill();
            } else {
                world.lose_folder();
            }
            world.fortune = Box::new(|_, _| Luck::Good);
            world.mount().unwrap();
            let when = format!("{luck:?} {deadly}");
            assert!(world.get(ROOT, "b").unwrap() == content, "{when}");
            for _ in 0..2 {
                runs(&mut world);
            }
            assert_eq!(world.check(true, false).findings, [], "{when}");
            assert_eq!(packs(&mut world).len(), 1, "{when}");
            world.lose_folder();
            world.mount().unwrap();
            assert!(world.get(ROOT, "b").unwrap() == content, "{when}");
        }
    }
}
