//! Volumes on mail accounts that live on: other passphrases and keys, more and fewer accounts.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{assert_has, fails_with, run, wait_until};
use crate::mounts::Volume;

/// The files of secrets.
const OLD: &str = "phrase";
const NEW: &str = "new";

fn json(said: &str) -> Value {
    serde_json::from_str(said).expect("JSON")
}

/// `vere fs` with a secret.
fn with_secret(volume: &Volume, words: &[&str], secret: &str) -> Command {
    let mut command = volume.fs(words);
    command.arg("--passphrase-file").arg(volume.path(secret));
    command
}

fn passwd(volume: &Volume, options: &[&str]) -> Command {
    with_secret(volume, &[&["passwd", "home"], options].concat(), OLD)
}

fn mounting(volume: &Volume, secret: &str) -> Command {
    let point = volume.point().display().to_string();
    with_secret(volume, &["mount", "home", &point], secret)
}

fn content(of: &Path) -> String {
    fs::read_to_string(of).expect("a file")
}

/// Octets that no encoding shortens.
fn large(octets: u32) -> Vec<u8> {
    (0..octets)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

#[test]
fn a_changed_passphrase_opens_and_the_old_one_is_refused() {
    let Some(volume) = Volume::new() else { return };
    fs::write(volume.path(NEW), "a new phrase\n").expect("room");
    let slot = volume.path("config/vere/fs/home.slot");
    let before = fs::read(&slot).expect("a slot");
    // While mounted.
    run(&mut mounting(&volume, OLD));
    let file = volume.point().join("file");
    fs::write(&file, "content").expect("a file");
    let new = volume.path(NEW).display().to_string();
    let said = run(&mut passwd(&volume, &["--new-passphrase-file", &new]));
    assert_has(&said, &["The secret of the volume is changed."]);
    assert_ne!(fs::read(&slot).expect("a slot"), before);
    assert_eq!(content(&file), "content");
    volume.umount();
    let said = fails_with(&mut mounting(&volume, OLD), 1);
    let expected = "home.slot: expected the passphrase or key file of this key slot; found another";
    assert_has(&said, &[expected]);
    run(&mut mounting(&volume, NEW));
    assert_eq!(content(&file), "content");
    volume.umount();
    // A machine with the slot of before: the old passphrase opens the slot, and the volume says that the slot counts no more.
    fs::write(&slot, &before).expect("a slot");
    let said = fails_with(&mut mounting(&volume, OLD), 1);
    assert_has(&said, &["found a revoked one"]);
    run(&mut mounting(&volume, NEW));
    assert_ne!(fs::read(&slot).expect("a slot"), before);
    assert_eq!(content(&file), "content");
    volume.umount();
}

#[test]
fn further_slots_open_until_they_are_removed() {
    let Some(volume) = Volume::new() else { return };
    fs::write(volume.path(NEW), large(64)).expect("room");
    let key = volume.path(NEW).display().to_string();
    // Not mounted.
    let add = ["--add", "--label", "usb stick", "--new-key-file", &key];
    run(&mut passwd(&volume, &add));
    let listed = json(&run(&mut passwd(&volume, &["--list", "--json"])));
    let expected = serde_json::json!([
        { "slot": 1, "label": "first", "method": "passphrase", "own": true },
        { "slot": 2, "label": "usb stick", "method": "key file", "own": false },
    ]);
    assert_eq!(listed, expected);
    let point = volume.point().display().to_string();
    run(&mut volume.fs(&["mount", "home", &point, "--key-file", &key]));
    // The slot of the key file lies beside the description now.
    let shown = run(&mut volume.fs(&["passwd", "home", "--list"]));
    assert_has(
        &shown,
        &[
            "  1 passphrase first\n",
            "  2 key file   usb stick, this machine's\n",
        ],
    );
    volume.umount();
    run(&mut mounting(&volume, OLD));
    let said = fails_with(&mut passwd(&volume, &["--remove", "1"]), 1);
    assert_has(&said, &["expected a slot of another passphrase"]);
    run(&mut passwd(&volume, &["--remove", "2"]));
    volume.umount();
    let mut by_key = volume.fs(&["mount", "home", &point, "--key-file", &key]);
    assert_has(&fails_with(&mut by_key, 1), &["home.slot"]);
    run(&mut mounting(&volume, OLD));
    volume.umount();
}

#[test]
fn a_new_key_seals_what_follows() {
    let Some(volume) = Volume::new() else { return };
    let slot = volume.path("config/vere/fs/home.slot");
    let before = fs::read(&slot).expect("a slot");
    fs::write(volume.path(NEW), "a second phrase\n").expect("room");
    let new = volume.path(NEW).display().to_string();
    run(&mut passwd(
        &volume,
        &["--add", "--new-passphrase-file", &new],
    ));
    run(&mut mounting(&volume, OLD));
    fs::write(volume.point().join("before"), large(200_000)).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    let said = fails_with(&mut passwd(&volume, &["--rotate"]), 1);
    assert_has(
        &said,
        &["would drop the slots 2 (slot 2)", "--keep", "--yes"],
    );
    let keep = format!("2={new}");
    let said = run(&mut passwd(&volume, &["--rotate", "--keep", &keep]));
    assert_has(&said, &["A new key seals what follows."]);
    fs::write(volume.point().join("after"), large(300_000)).expect("a file");
    volume.umount();
    // Another machine, with the slot of before and the passphrase, which has stayed.
    fs::write(&slot, &before).expect("a slot");
    fs::remove_dir_all(volume.path("state")).expect("the state");
    for secret in [OLD, NEW] {
        run(&mut mounting(&volume, secret));
        let read = |name: &str| fs::read(volume.point().join(name)).expect("a file");
        assert!(read("before") == large(200_000));
        assert!(read("after") == large(300_000));
        volume.umount();
    }
    let check = run(&mut with_secret(&volume, &["check", "home", "--data"], OLD));
    assert_has(&check, &["clean: "]);
    run(&mut passwd(&volume, &["--rotate", "--yes"]));
    let said = fails_with(&mut mounting(&volume, NEW), 1);
    assert_has(&said, &["home.slot"]);
    run(&mut mounting(&volume, OLD));
    volume.umount();
}

#[test]
fn accounts_join_and_leave_a_mounted_volume() {
    let Some(volume) = Volume::new() else { return };
    let listed = || json(&run(&mut volume.fs(&["accounts", "list", "home", "--json"])));
    let first = listed()[0]["url"].as_str().expect("a URL").to_owned();
    let url = |user: &str| first.replace("bob", user);
    let description = volume.path("config/vere/fs/home.toml");
    let text = content(&description);
    fs::write(&description, format!("# Mine.\n{text}# The end.\n")).expect("room");
    run(&mut mounting(&volume, OLD));
    fs::write(volume.point().join("old"), large(700_000)).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    let add = |user: &str, options: &[&str]| {
        let mut add = volume.fs(&["accounts", "add", "home", &url(user), "--clear"]);
        add.arg("--password-file").arg(volume.path("password"));
        add.args(options);
        add
    };
    let said = fails_with(&mut add("bob", &[]), 1);
    assert_has(&said, &["expected a further account; found account 1"]);
    let said = fails_with(&mut add("carol", &["--group", "7"]), 1);
    assert_has(&said, &["expected a group of the volume"]);
    // A copy of everything, and a group of its own.
    let said = run(&mut add("carol", &["--group", "1", "--wait"]));
    assert_has(&said, &["is account 2 of the volume"]);
    run(&mut add("dave", &[]));
    assert!(content(&description).starts_with("# Mine.\n"));
    assert_has(&content(&description), &["# The end.\n", "number = 3\n"]);
    for number in 0..4 {
        let file = volume.point().join(format!("new{number}"));
        fs::write(file, large(1_000_000 + number)).expect("a file");
    }
    run(&mut volume.fs(&["sync", "home"]));
    let status = || json(&run(&mut volume.fs(&["status", "home", "--json"])));
    wait_until("all copies", || status()["copies_missing"] == 0);
    let now = status();
    assert_eq!(now["groups"][0]["accounts"], serde_json::json!([1, 2]));
    assert_eq!(now["groups"][1]["accounts"], serde_json::json!([3]));
    assert!(now["groups"][1]["packs"].as_u64() > Some(0), "{now}");
    let remove = |number: &str| volume.fs(&["accounts", "remove", "home", number]);
    assert_has(&fails_with(&mut remove("1"), 1), &["the lead"]);
    assert_has(
        &fails_with(&mut remove("3"), 1),
        &["packs that only this account has", "--group 3"],
    );
    run(&mut remove("2"));
    assert_eq!(listed().as_array().map(Vec::len), Some(2));
    let joined = run(&mut add("erin", &["--group", "3", "--wait"]));
    assert_has(&joined, &["is account 4 of the volume"]);
    run(&mut remove("3"));
    volume.umount();
    fs::remove_dir_all(volume.path("state")).expect("the state");
    run(&mut mounting(&volume, OLD));
    assert!(fs::read(volume.point().join("old")).expect("a file") == large(700_000));
    for number in 0..4 {
        let file = volume.point().join(format!("new{number}"));
        assert!(fs::read(file).expect("a file") == large(1_000_000 + number));
    }
    volume.umount();
    assert!(content(&description).starts_with("# Mine.\n"));
    let check = run(&mut with_secret(&volume, &["check", "home", "--data"], OLD));
    assert_has(&check, &["clean: "]);
}
