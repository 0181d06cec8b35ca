//! Volumes on mail accounts: content that is sent once, content on the local disk, strategies.

use std::fs;

use crate::harness::{assert_has, run};
use crate::mounts::Volume;
use crate::mounts_comfort::status;

/// Octets that do not repeat.
fn noise(octets: u32) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(octets as usize).collect()
}

#[test]
fn a_second_copy_is_not_sent() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    let content = noise(5_000_000);
    fs::write(volume.point().join("a"), &content).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    assert_eq!(status(&volume)["octets_shared"], 0);
    fs::write(volume.point().join("b"), &content).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    assert_eq!(status(&volume)["octets_shared"], 5_000_000);
    assert_has(
        &run(&mut volume.fs(&["status", "home"])),
        &["sent once           4.7 MiB\n"],
    );
    volume.umount();
    // Where chunks are is known to the next mount, and the file is whole without this machine's knowledge.
    volume.mount();
    fs::write(volume.point().join("c"), &content).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    assert_eq!(status(&volume)["octets_shared"], 5_000_000);
    volume.umount();
    for folder in ["state", "cache"] {
        fs::remove_dir_all(volume.path(folder)).expect("a folder");
    }
    volume.mount();
    for name in ["a", "b", "c"] {
        assert!(
            fs::read(volume.point().join(name)).expect("a file") == content,
            "{name}"
        );
    }
    volume.umount();
    let mut check = volume.fs(&["check", "home", "--data"]);
    let phrase = volume.path("phrase");
    let found = run(check.arg("--passphrase-file").arg(phrase));
    assert_has(&found, &["clean: "]);
}

#[test]
fn files_that_were_read_are_there_without_a_server() {
    let Some(mut volume) = Volume::new() else {
        return;
    };
    volume.mount();
    let content = noise(3_000_000);
    fs::write(volume.point().join("long"), &content).expect("a file");
    fs::write(volume.point().join("short"), "a few words").expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    for _ in 0..2 {
        volume.umount();
        volume.mount();
        assert!(fs::read(volume.point().join("long")).expect("a file") == content);
        let short = fs::read_to_string(volume.point().join("short")).expect("a file");
        assert_eq!(short, "a few words");
    }
    let now = status(&volume);
    assert_eq!(now["disk_misses"], 0);
    assert!(now["disk_octets"].as_u64() > Some(3_000_000), "{now}");
    volume.umount();
    let process = volume.mount_in_foreground();
    volume.end_server();
    assert!(fs::read(volume.point().join("long")).expect("a file") == content);
    volume.kill(process);
}

#[test]
fn a_strategy_stays() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    let said = run(&mut volume.fs(&["mode", "home", "--strategy", "all"]));
    assert_eq!(said, "weak, all\n");
    volume.umount();
    volume.mount();
    assert_eq!(status(&volume)["groups"][0]["strategy"], "all");
    volume.umount();
}
