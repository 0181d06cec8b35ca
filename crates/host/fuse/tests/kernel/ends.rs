//! The end of a mount, busy and not answering.

use std::fs::{self, File};
use std::io::Read as _;
use std::thread;
use std::time::{Duration, Instant};

use vere_fuse::{Ended, Strength, Unmounted, mounted_at};

use crate::fixture::{Fixture, possible};

const LONGEST: Duration = Duration::from_secs(10);

#[test]
fn a_quiet_mount_ends_cleanly() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    fs::write(fixture.path("file"), b"content").unwrap();
    let mounted = mounted_at(fixture.mount.point()).unwrap().unwrap();
    assert_eq!(
        (mounted.kind.as_str(), mounted.source.as_str()),
        ("fuse.vere", "vere")
    );
    assert_eq!(
        fixture.mount.unmount(Strength::Soft).unwrap(),
        Unmounted::Clean
    );
    assert_eq!(fixture.mount.wait(LONGEST), Some(Ended::Unmounted));
    assert_eq!(mounted_at(fixture.mount.point()).unwrap(), None);
    assert!(fixture.mount.unmount(Strength::Soft).is_err());
}

#[test]
fn a_busy_mount_lives_on_outside_of_the_tree() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    fs::write(fixture.path("file"), b"content").unwrap();
    let mut file = File::open(fixture.path("file")).unwrap();
    assert_eq!(
        fixture.mount.unmount(Strength::Soft).unwrap(),
        Unmounted::Detached
    );
    assert_eq!(mounted_at(fixture.mount.point()).unwrap(), None);
    assert_eq!(fixture.mount.wait(Duration::from_millis(50)), None);
    let mut content = String::new();
    file.read_to_string(&mut content).unwrap();
    assert_eq!(content, "content");
    drop(file);
    assert_eq!(fixture.mount.wait(LONGEST), Some(Ended::Unmounted));
}

#[test]
fn force_ends_calls_without_an_answer() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    fs::write(fixture.path("file"), b"content").unwrap();
    let held = File::open(fixture.path("file")).unwrap();
    fixture.memory.lock().unwrap().silent = true;
    let path = fixture.path("never answered");
    let waiting = thread::spawn(move || fs::metadata(path).unwrap_err());
    let start = Instant::now();
    while fixture.mount.replies().waiting() == 0 {
        assert!(start.elapsed() < LONGEST);
        thread::sleep(Duration::from_millis(5));
    }
    fixture.mount.unmount(Strength::Forced).unwrap();
    assert!(waiting.join().unwrap().raw_os_error().is_some());
    drop(held);
    assert_eq!(fixture.mount.wait(LONGEST), Some(Ended::Unmounted));
    assert!(start.elapsed() < LONGEST);
    assert_eq!(fixture.mount.replies().waiting(), 0);
}

#[test]
fn a_drop_ends_the_mount() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let point = fixture.mount.point().to_path_buf();
    drop(fixture);
    assert_eq!(mounted_at(&point).unwrap(), None);
}
