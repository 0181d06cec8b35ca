//! Mounts that begin from the local disk, with servers that answer late or not at all.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::mounts::Volume;
use crate::mounts_machines::Machine;

/// How long a mount may need to notice that the server is back: the pause between attempts doubles meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);

fn content(of: &Path) -> String {
    fs::read_to_string(of).expect("a file")
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < PATIENCE, "expected {what}; found none");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_volume_is_mounted_without_its_server_and_follows_when_the_server_returns() {
    let Some((volume, relay)) = Volume::with_relay() else {
        return;
    };
    let first = Machine::new(&volume, "first");
    let second = Machine::new(&volume, "second");
    first.mount();
    fs::write(first.point().join("one"), "1").expect("a file");
    first.sync();
    first.umount();
    // The cache has what was read.
    first.mount();
    assert_eq!(content(&first.point().join("one")), "1");
    first.umount();
    second.mount();
    fs::write(second.point().join("two"), "2").expect("a file");
    second.umount();

    relay.silence(true);
    let begun = Instant::now();
    first.mount();
    let took = begun.elapsed();
    // Without the local disk the mount fails after 10 s at the earliest.
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(first.status()["unconfirmed"], Value::Bool(true));
    assert_eq!(content(&first.point().join("one")), "1");
    assert!(!first.point().join("two").exists());
    fs::write(first.point().join("three"), "3").expect("a file");
    wait_for("an account that fails", || {
        first.status()["accounts"][0]["failing"].is_string()
    });

    relay.silence(false);
    wait_for("the other machine's file", || {
        first.point().join("two").exists()
    });
    assert_eq!(content(&first.point().join("two")), "2");
    assert_eq!(first.status()["unconfirmed"], Value::Bool(false));
    first.sync();
    second.mount();
    wait_for("the file of the mount without a server", || {
        second.point().join("three").exists()
    });
    assert_eq!(content(&second.point().join("three")), "3");
    assert_eq!(first.status()["conflicts"], 0);
}
