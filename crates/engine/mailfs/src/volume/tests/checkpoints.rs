//! Checkpoints: what a mount reads, and what it does without one that is damaged.

use super::*;

const ROOT: Inode = Inode::ROOT;

/// So many commits, each with a file of its own.
fn commits(world: &mut World, names: std::ops::Range<usize>) {
    for number in names {
        world.put(ROOT, &format!("{number:04}"), &noise(number as u64, 40));
        world.sync().unwrap();
    }
}

fn expect(world: &mut World, names: std::ops::Range<usize>) {
    for number in names.step_by(7) {
        let content = world.get(ROOT, &format!("{number:04}"));
        assert!(content == Ok(noise(number as u64, 40)), "{number}");
    }
}

/// Reads of a mount.
fn mount(world: &mut World) -> usize {
    let before = world.count("read");
    world.mount().unwrap();
    world.count("read") - before
}

fn mails(world: &mut World, name: &str) -> Vec<u32> {
    let account = world.accounts.get_mut(&1).unwrap();
    let mailbox = account.mailbox(name).unwrap();
    mailbox.mails.keys().copied().collect()
}

fn forged(world: &World) -> usize {
    let all = world.notices.iter();
    all.filter(|notice| matches!(notice, Notice::Forged { .. }))
        .count()
}

#[test]
fn a_mount_that_ended_well_is_read_from_its_checkpoint() {
    let mut world = World::new(2);
    commits(&mut world, 0..30);
    assert_eq!(world.finish(), Ok(Reply::Done));
    assert_eq!(mails(&mut world, "pages").len(), 1);
    world.lose_folder();
    // The covered commit with those before, and the commit that names the checkpoint; a leaf.
    let reads = mount(&mut world);
    assert!(reads <= 36, "{reads} reads");
    // Without changes no checkpoint follows.
    assert_eq!(world.finish(), Ok(Reply::Done));
    assert_eq!(mails(&mut world, "pages").len(), 1);
    expect(&mut world, 0..30);
    commits(&mut world, 30..32);
    assert_eq!(world.finish(), Ok(Reply::Done));
    world.kill();
    // Pages are on the local disk.
    let account = world.accounts.get_mut(&1).unwrap();
    let mailbox = account.mailbox("pages").unwrap();
    let pages = std::mem::take(&mut mailbox.mails);
    mount(&mut world);
    assert_eq!(world.count("find"), 0);
    let account = world.accounts.get_mut(&1).unwrap();
    account.mailbox("pages").unwrap().mails = pages;
    expect(&mut world, 0..32);
    assert_eq!(forged(&world), 0);
}

#[test]
fn checkpoints_come_with_the_commits() {
    let mut world = World::new(2);
    commits(&mut world, 0..300);
    assert_eq!(mails(&mut world, "pages").len(), 1);
    world.lose_folder();
    let reads = mount(&mut world);
    assert!((60..150).contains(&reads), "{reads} reads");
    expect(&mut world, 0..300);
    // With its folder, the machine goes on where its journal ends.
    commits(&mut world, 300..310);
    world.kill();
    mount(&mut world);
    expect(&mut world, 0..310);
    assert_eq!(forged(&world), 0);
}

#[test]
fn an_older_checkpoint_serves_for_a_damaged_one() {
    for removes in [false, true] {
        let mut world = World::new(2);
        commits(&mut world, 0..20);
        assert_eq!(world.finish(), Ok(Reply::Done));
        commits(&mut world, 20..70);
        assert_eq!(world.finish(), Ok(Reply::Done));
        commits(&mut world, 70..75);
        let pages = mails(&mut world, "pages");
        assert_eq!(pages.len(), 2);
        for damaged in pages.iter().rev() {
            world.lose_folder();
            let account = world.accounts.get_mut(&1).unwrap();
            let mailbox = account.mailbox("pages").unwrap();
            if removes {
                mailbox.mails.remove(damaged);
            } else {
                let mail = mailbox.mails.get_mut(damaged).unwrap();
                let mut octets = mail.to_vec();
                let at = octets.len() / 2;
                octets[at] = if octets[at] == b'x' { b'y' } else { b'x' };
                *mail = octets.into();
            }
            let before = forged(&world);
            world.mount().unwrap();
            assert!(forged(&world) > before);
            expect(&mut world, 0..75);
        }
        // The whole log was read: a checkpoint of all rows follows.
        commits(&mut world, 75..76);
        assert_eq!(world.finish(), Ok(Reply::Done));
        world.lose_folder();
        let before = forged(&world);
        world.mount().unwrap();
        assert_eq!(forged(&world), before);
        expect(&mut world, 0..76);
    }
}

#[test]
fn pages_with_other_numbers_are_found_by_their_subjects() {
    let mut world = World::new(1);
    commits(&mut world, 0..10);
    assert_eq!(world.finish(), Ok(Reply::Done));
    let account = world.accounts.get_mut(&1).unwrap();
    let mailbox = account.mailbox("pages").unwrap();
    mailbox.uid_validity += 1;
    mailbox.mails = std::mem::take(&mut mailbox.mails)
        .into_iter()
        .map(|(uid, mail)| (uid + 100, mail))
        .collect();
    mailbox.uid_next += 100;
    world.lose_folder();
    world.mount().unwrap();
    assert_eq!(world.count("find"), 1);
    expect(&mut world, 0..10);
}

/// The number of requests that the end of a mount makes, and the mount behind.
fn requests(world: &mut World) -> usize {
    commits(world, 0..3);
    let before: usize = world.counts.values().sum();
    assert_eq!(world.finish(), Ok(Reply::Done));
    world.lose_folder();
    world.mount().unwrap();
    world.counts.values().sum::<usize>() - before
}

#[test]
fn every_request_of_a_checkpoint_and_of_an_opening_may_fail() {
    let count = requests(&mut World::new(1));
    for luck in [Luck::Lost, Luck::Unanswered] {
        for hurt in 0..count {
            let mut world = World::new(1);
            commits(&mut world, 0..3);
            let mut number = 0;
            world.fortune = Box::new(move |_, _| {
                let is_hurt = number == hurt;
                number += 1;
                if is_hurt { luck } else { Luck::Good }
            });
            assert_eq!(world.finish(), Ok(Reply::Done), "{hurt}");
            world.lose_folder();
            // A mount that fails is tried again.
            if world.mount().is_err() {
                world.mount().unwrap();
            }
            expect(&mut world, 0..3);
            assert_eq!(mails(&mut world, "pages").len(), 1, "{hurt}");
            assert_eq!(forged(&world), 0, "{hurt}");
        }
    }
}

#[test]
fn a_death_at_any_request_of_a_checkpoint_loses_nothing() {
    let count = requests(&mut World::new(1));
    for dead in 0..count {
        for loses in [false, true] {
            let mut world = World::new(1);
            commits(&mut world, 0..3);
            let mut number = 0;
            world.fortune = Box::new(move |_, _| {
                number += 1;
                if number > dead {
                    Luck::Lost
                } else {
                    Luck::Good
                }
            });
            let id = CallId(u64::MAX);
            let now = world.moment();
            world.volume().finish(now, id);
            world.settle();
            world.fortune = Box::new(|_, _| Luck::Good);
            if loses {
                world.lose_folder();
            } else {
                world.kill();
            }
            world.mount().unwrap();
            expect(&mut world, 0..3);
            commits(&mut world, 3..5);
            assert_eq!(world.finish(), Ok(Reply::Done), "{dead}");
            world.lose_folder();
            world.mount().unwrap();
            expect(&mut world, 0..5);
        }
    }
}
