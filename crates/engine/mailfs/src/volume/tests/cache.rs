//! Chunks on the local disk: read before accounts, right or absent, and no reason for a call to fail.

use vere_ports::storage::{Storage as _, StorageFile as _};

use super::*;
use crate::volume::CacheTerms;

const ROOT: Inode = Inode::ROOT;

impl World {
    /// Has the mount use the folder of the cache.
    pub(super) fn use_cache(&mut self) {
        let cache = self.cache.clone();
        let terms = CacheTerms {
            chunks_max: self.cache_max,
            hints_max: 256 << 10,
        };
        self.volume().use_cache(&cache, terms);
    }
}

fn cut_off(world: &mut World) {
    world.fortune = Box::new(|_, _| Luck::Lost);
}

fn reads(world: &mut World, files: &[(&str, Vec<u8>)]) {
    for (name, content) in files {
        assert!(world.get(ROOT, name).unwrap() == *content, "{name}");
    }
}

/// A world with files that were written elsewhere: nothing of them is on this disk.
fn remote() -> (World, Vec<(&'static str, Vec<u8>)>) {
    let mut world = World::new(2);
    let files = vec![
        ("long", noise(1, 3_000_000)),
        ("short", noise(2, 9_000)),
        ("zeros", vec![0; 70_000]),
    ];
    for (name, content) in &files {
        world.put(ROOT, name, content);
    }
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    (world, files)
}

#[test]
fn files_that_were_read_are_there_without_accounts() {
    let (mut world, files) = remote();
    reads(&mut world, &files);
    let status = world.volume().status();
    assert_eq!(status.disk_hits, 0);
    assert!(status.disk_octets > 3_079_000, "{status:?}");
    for _ in 0..2 {
        world.kill();
        world.mount().unwrap();
        let before = world.count("read");
        cut_off(&mut world);
        reads(&mut world, &files);
        let status = world.volume().status();
        assert!(
            status.disk_hits >= 5 && status.disk_misses == 0,
            "{status:?}"
        );
        world.fortune = Box::new(|_, _| Luck::Good);
        assert_eq!(world.count("read"), before);
    }
}

/// A file that was read on this machine is a copy's source: the copy is not sent.
#[test]
fn a_copy_of_a_file_of_another_machine_is_not_sent() {
    let (mut world, files) = remote();
    reads(&mut world, &files);
    world.appended = 0;
    world.put(ROOT, "copy", &files[0].1);
    world.sync().unwrap();
    assert!(world.appended < 30_000, "{}", world.appended);
    world.lose_folder();
    world.mount().unwrap();
    assert!(world.get(ROOT, "copy").unwrap() == files[0].1);
}

#[test]
fn damaged_entries_are_fetched_again() {
    let (mut world, files) = remote();
    reads(&mut world, &files);
    for damage in 0..4 {
        world.kill();
        let name = "chunks-0000000000000000";
        let file = world.cache.open(name).unwrap();
        match damage {
            0 => file.write_at([&[1; 50], &[]], 100).unwrap(),
            1 => file.truncate(1_000_000).unwrap(),
            2 => {
                let index = world.cache.open("index").unwrap();
                let octets = usize::try_from(index.len().unwrap()).unwrap();
                index.write_at([&vec![0x55; octets], &[]], 0).unwrap();
            }
            _ => world.cache.remove(name).unwrap(),
        }
        world.mount().unwrap();
        reads(&mut world, &files);
        let status = world.volume().status();
        assert!(status.disk_misses > 0, "{damage}: {status:?}");
        assert_eq!(world.notices, [], "{damage}");
        world.kill();
        world.mount().unwrap();
        cut_off(&mut world);
        reads(&mut world, &files);
        world.fortune = Box::new(|_, _| Luck::Good);
    }
}

#[test]
fn a_full_or_broken_disk_is_no_error() {
    let (mut world, files) = remote();
    world.cache.set_capacity(Some(700_000));
    reads(&mut world, &files);
    assert_eq!(world.volume().status().read_only, None);
    world.kill();
    world.mount().unwrap();
    reads(&mut world, &files);
    // With room again, chunks are kept again after a while.
    world.cache.set_capacity(None);
    world.pass(Duration::from_secs(900));
    world.kill();
    world.mount().unwrap();
    reads(&mut world, &files);
    world.kill();
    world.mount().unwrap();
    cut_off(&mut world);
    reads(&mut world, &files);
}

#[test]
fn the_disk_has_its_bound_and_the_least_recently_used_go() {
    let mut world = World::new(1);
    world.cache_max = 8 << 20;
    let names: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        world.put(ROOT, name, &noise(number as u64, 1_500_000));
    }
    world.sync().unwrap();
    world.lose_folder();
    world.terms.cache_max = 1;
    world.mount().unwrap();
    for (number, name) in names.iter().enumerate() {
        assert!(world.get(ROOT, name).unwrap() == noise(number as u64, 1_500_000));
        // The first file is used all the time.
        assert!(world.get(ROOT, "f0").unwrap() == noise(0, 1_500_000));
        assert!(world.volume().status().disk_octets <= 8 << 20);
    }
    cut_off(&mut world);
    assert!(world.get(ROOT, "f0").is_ok() && world.get(ROOT, "f11").is_ok());
    assert_eq!(world.get(ROOT, "f3"), Err(Errno::Io));
}
