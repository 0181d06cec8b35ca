//! Content of a volume is not sent again, and a hint never breaks a file.

use super::*;

const ROOT: Inode = Inode::ROOT;

/// Files of a tree: one long, and many of all lengths.
fn tree(world: &mut World, folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![(format!("{folder}-long"), noise(1, 6_000_000))];
    for number in 0..60 {
        let octets = 200 + usize::try_from(number).unwrap() * 1_777;
        files.push((format!("{folder}-{number}"), noise(100 + number, octets)));
    }
    for (name, content) in &files {
        world.put(ROOT, name, content);
    }
    world.sync().unwrap();
    files
}

fn assert_there(world: &mut World, files: &[(String, Vec<u8>)]) {
    for (name, content) in files {
        assert!(world.get(ROOT, name).unwrap() == *content, "{name}");
    }
}

#[test]
fn a_second_copy_of_a_tree_is_not_sent() {
    let mut world = World::new(4);
    let first = tree(&mut world, "a");
    let octets: usize = first.iter().map(|(_, content)| content.len()).sum();
    world.appended = 0;
    let second = tree(&mut world, "b");
    assert!(world.appended < octets / 100, "{}", world.appended);
    // The hints survive the mount, and a kill.
    world.kill();
    world.mount().unwrap();
    world.appended = 0;
    let third = tree(&mut world, "c");
    assert!(world.appended < octets / 100, "{}", world.appended);
    assert!(world.volume().status().octets_shared > octets as u64 * 9 / 10);
    world.lose_folder();
    world.mount().unwrap();
    for files in [first, second, third] {
        assert_there(&mut world, &files);
    }
    assert_eq!(world.check(true, false).findings, []);
}

/// A copy that begins while the first one is still on the way waits for the packs of the first.
#[test]
fn two_copies_at_once_are_sent_once() {
    let mut world = World::new(2);
    let content = noise(2, 5_000_000);
    world.put(ROOT, "a", &content);
    world.put(ROOT, "b", &content);
    let zeros = vec![0; 9 << 20];
    world.put(ROOT, "zeros", &zeros);
    world.appended = 0;
    world.sync().unwrap();
    let sent = content.len() + (3 << 20);
    assert!(world.appended < sent * 103 / 100, "{}", world.appended);
    world.lose_folder();
    world.mount().unwrap();
    for (name, content) in [("a", &content), ("b", &content), ("zeros", &zeros)] {
        assert!(world.get(ROOT, name).unwrap() == *content, "{name}");
    }
}

/// The packs of equal chunks go to another account when the first one fails.
#[test]
fn equal_chunks_follow_a_pack_to_another_account() {
    let mut world = World::new(2);
    let content = noise(3, 3_000_000);
    world.fortune = Box::new(|account, request| match request {
        Request::Append { mailbox, .. } if account.0 == 2 && mailbox != "log" => Luck::Lost,
        Request::Find { .. } if account.0 == 2 => Luck::Lost,
        _ => Luck::Good,
    });
    world.put(ROOT, "a", &content);
    world.put(ROOT, "b", &content);
    world.sync().unwrap();
    world.fortune = Box::new(|_, _| Luck::Good);
    world.lose_folder();
    world.mount().unwrap();
    for name in ["a", "b"] {
        assert!(world.get(ROOT, name).unwrap() == content, "{name}");
    }
}

#[test]
fn a_longer_version_of_a_file_sends_what_is_new() {
    let mut world = World::new(1);
    let content = noise(4, 8_000_000);
    world.put(ROOT, "a", &content);
    world.sync().unwrap();
    let mut longer = noise(5, 10_000);
    longer.extend_from_slice(&content);
    world.appended = 0;
    world.put(ROOT, "b", &longer);
    world.sync().unwrap();
    assert!(world.appended < 3_000_000, "{}", world.appended);
    assert!(world.get(ROOT, "b").unwrap() == longer);
}

#[test]
fn a_range_in_the_middle_goes_alone() {
    let mut world = World::new(1);
    world.put(ROOT, "a", &noise(6, 4_000_000));
    world.sync().unwrap();
    let inode = world.lookup(ROOT, "a").unwrap().inode;
    let handle = world.open(inode);
    let range = noise(7, 300_000);
    world.write(handle, 1_000_000, &range);
    world.appended = 0;
    world.fsync(handle).unwrap();
    assert!(world.appended < 310_000, "{}", world.appended);
    world.close(handle);
    let found = world.get(ROOT, "a").unwrap();
    assert!(found[1_000_000..1_300_000] == range);
    assert!(found[1_300_000..] == noise(6, 4_000_000)[1_300_000..]);
}

/// The only file with a content is removed, and its packs are collected, before the content is written again.
#[test]
fn a_hint_to_a_condemned_or_collected_pack_does_not_count() {
    for days in [0, 8] {
        let mut world = World::new(1);
        let content = noise(8, 400_000);
        world.put(ROOT, "a", &content);
        world.sync().unwrap();
        world.remove("a");
        world.sync().unwrap();
        world.collect().unwrap();
        if days > 0 {
            world.days(days);
            assert!(world.collect().unwrap().removed > 0);
        }
        world.appended = 0;
        world.put(ROOT, "b", &content);
        world.sync().unwrap();
        assert!(world.appended > content.len(), "{days} days");
        world.days(8);
        world.collect().unwrap();
        world.days(8);
        world.collect().unwrap();
        world.lose_folder();
        world.mount().unwrap();
        assert!(world.get(ROOT, "b").unwrap() == content, "{days} days");
        assert_eq!(world.check(true, false).findings, []);
    }
}

/// A collection comes between the hint and the commit: the pack is needed by a file that no row tells yet.
#[test]
fn a_collection_spares_packs_of_files_that_are_not_committed() {
    let mut world = World::new(1);
    let content = noise(9, 6_000_000);
    world.put(ROOT, "a", &content);
    world.sync().unwrap();
    world.remove("a");
    world.sync().unwrap();
    let (_, handle) = world.create(ROOT, "b");
    for (number, part) in content.chunks(1 << 20).enumerate() {
        world.write(handle, (number << 20) as u64, part);
    }
    world.settle();
    // The beginning is placed, the end is not.
    assert!(world.volume().status().octets_shared > 2_000_000);
    assert!(world.volume().status().octets_waiting > 0);
    let report = world.collect().unwrap();
    world.close(handle);
    world.sync().unwrap();
    assert!(world.get(ROOT, "b").unwrap() == content);
    // The packs of the end: nobody had written the end again.
    assert!(report.packs_condemned <= 3, "{report:?}");
    for _ in 0..3 {
        world.days(8);
        world.collect().unwrap();
    }
    assert!(world.get(ROOT, "b").unwrap() == content);
    assert_eq!(world.check(true, false).findings, []);
}

/// A provider loses the mails; the user copies the file once more.
#[test]
fn a_pack_that_cannot_be_read_is_sent_again() {
    let mut world = World::new(1);
    let content = noise(10, 300_000);
    world.put(ROOT, "a", &content);
    world.sync().unwrap();
    world.shelf(1, "data-0001").mails.clear();
    world.kill();
    world.mount().unwrap();
    assert_eq!(world.get(ROOT, "a"), Err(Errno::Io));
    world.put(ROOT, "b", &content);
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "b").unwrap() == content);
}
