//! Listings, and what the kernel must forget.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use vere_ports::files::{Call, Caller, FileKind, Inode, Invalidate};

use crate::fixture::{Fixture, possible};

const NAMES: usize = 10_000;
const ROOT: Caller = Caller { uid: 0, gid: 0 };

fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "no end of: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn listings_of_many_names() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    {
        let mut memory = fixture.memory.lock().unwrap();
        for number in 0..NAMES {
            let made = memory.make(ROOT, FileKind::File, 0o644);
            memory
                .enter(Inode::ROOT, format!("name-{number:05}").into_bytes(), made)
                .unwrap();
        }
    }
    let list = || -> Vec<String> {
        let entries = fs::read_dir(fixture.mount.point()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let names = list();
    assert_eq!(names.len(), NAMES);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), NAMES);
    // A listing with facts: every look-up that the kernel did not get was given back.
    let folder = File::open(fixture.mount.point()).unwrap();
    folder.sync_all().unwrap();
    let with_facts = fixture.take_seen().iter().any(|call| {
        matches!(
            call,
            Call::ReadFolder {
                with_attributes: true,
                ..
            }
        )
    });
    assert!(with_facts);
    let memory = fixture.memory.lock().unwrap();
    let most = memory.nodes.values().skip(1).map(|node| node.lookups).max();
    assert_eq!(most, Some(1));
    drop((memory, folder));
    for name in names {
        fs::remove_file(fixture.path(&name)).unwrap();
    }
    assert!(list().is_empty());
    fixture.end();
}

#[test]
fn facts_are_kept_until_invalidated() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("file");
    fs::write(&path, b"old").unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    // A read makes the kernel ask for the time of access once.
    fs::metadata(&path).unwrap();
    fixture.take_seen();
    fs::metadata(&path).unwrap();
    let asked = |call: &Call| matches!(call, Call::Lookup { .. } | Call::GetAttributes { .. });
    assert!(!fixture.take_seen().iter().any(asked));
    {
        let mut memory = fixture.memory.lock().unwrap();
        memory.nodes.get_mut(&inode).unwrap().put(0, b"newer");
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 3);
    fixture.mount.invalidate(Invalidate::Inode(Inode(inode)));
    until("facts", || fs::metadata(&path).unwrap().len() == 5);
    assert_eq!(fs::read(&path).unwrap(), b"newer");
    fixture.end();
}

#[test]
fn names_are_kept_until_invalidated() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("name");
    let entry = || Invalidate::Entry {
        parent: Inode::ROOT,
        name: b"name".to_vec(),
    };
    assert!(!path.exists());
    {
        let mut memory = fixture.memory.lock().unwrap();
        let made = memory.make(ROOT, FileKind::File, 0o644);
        memory.enter(Inode::ROOT, b"name".to_vec(), made).unwrap();
    }
    assert!(!path.exists());
    fixture.mount.invalidate(entry());
    until("an absent name", || path.exists());
    fixture
        .memory
        .lock()
        .unwrap()
        .nodes
        .get_mut(&1)
        .unwrap()
        .entries
        .clear();
    assert!(path.exists());
    fixture.mount.invalidate(entry());
    until("a name", || !path.exists());
    // The own change of the kernel needs no invalidation.
    fs::write(&path, b"").unwrap();
    assert!(path.exists());
    fixture.end();
}
