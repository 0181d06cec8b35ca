//! Volumes of which a machine has nothing but accounts and passphrase, and accounts that were set back or have lost their log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{assert_has, fails_with, run, wait_until};
use crate::mounts::Volume;

fn content(number: u32) -> Vec<u8> {
    (0..700_000_u32)
        .map(|at| (at.wrapping_mul(number) % 251) as u8)
        .collect()
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&run(command)).expect("JSON")
}

fn lose_machine(volume: &Volume) {
    for name in ["config", "state"] {
        fs::remove_dir_all(volume.path(name)).expect("a folder");
    }
}

fn rebuilding(volume: &Volume, accounts: &[&str]) -> Command {
    let mut rebuild = volume.fs(&["rebuild", "home", "--clear", "--json"]);
    for user in accounts {
        rebuild.arg(format!("imap://{user}@{}/", volume.dovecot.imap));
    }
    rebuild.arg("--password-file").arg(volume.path("password"));
    volume.with_phrase(&mut rebuild);
    rebuild
}

/// The folders of the volumes of a user in the Maildir, by their last word.
fn mailboxes(volume: &Volume, user: &str, word: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(volume.dovecot.maildir(user)).expect("a Maildir");
    let paths = all.flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".VereFS.") && name.ends_with(word)
    };
    paths.filter(is_wanted).collect()
}

fn empty(mailbox: &Path) {
    for folder in ["cur", "new"] {
        for mail in fs::read_dir(mailbox.join(folder))
            .expect("a Maildir")
            .flatten()
        {
            fs::remove_file(mail.path()).expect("a mail");
        }
    }
}

/// Delivers a key slot that was altered.
fn forge_slot(volume: &Volume) -> PathBuf {
    let head = mailboxes(volume, "bob", ".head").pop().expect("a mailbox");
    let slots = fs::read_dir(head.join("cur")).expect("a folder");
    let slot = slots.flatten().find_map(|mail| {
        let octets = fs::read(mail.path()).ok()?;
        let text = String::from_utf8_lossy(&octets).into_owned();
        text.contains(" kslot ").then_some(octets)
    });
    let mut slot = slot.expect("a slot");
    let last = slot.len() - 10;
    slot[last] ^= 0x20;
    let forged = head.join("new/1.forged.host");
    fs::write(&forged, slot).expect("a mail");
    let own = Some(65_534);
    std::os::unix::fs::chown(&forged, own, own).expect("its owner");
    forged
}

#[test]
fn accounts_and_passphrase_give_the_volume_back() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    let at = |name: &str| volume.point().join(name);
    fs::create_dir(at("folder")).expect("a folder");
    fs::write(at("folder/file"), "content").expect("a file");
    fs::write(at("large"), content(1)).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    let status = json(&mut volume.fs(&["status", "home", "--json"]));
    let fingerprint = status["fingerprint"].as_str().expect("a text").to_owned();
    volume.umount();
    lose_machine(&volume);
    let forged = forge_slot(&volume);
    fs::write(volume.path("other"), "another phrase\n").expect("room");
    let mut wrong = volume.fs(&["rebuild", "home", "--clear"]);
    wrong.arg(format!("imap://bob@{}/", volume.dovecot.imap));
    wrong.arg("--password-file").arg(volume.path("password"));
    wrong.arg("--passphrase-file").arg(volume.path("other"));
    let said = fails_with(&mut wrong, 1);
    assert_has(
        &said,
        &["expected a passphrase or key file that opens one of"],
    );
    let said = fails_with(&mut rebuilding(&volume, &["nobody"]), 1);
    assert_has(&said, &["expected a volume on the accounts"]);

    // The altered slot is named, by the exit code too.
    let said = crate::harness::output_of(&mut rebuilding(&volume, &["bob"]), "");
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    let report: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!(
        report["ignored"].as_array().map(Vec::len),
        Some(1),
        "{report}"
    );
    assert_eq!(report["check"]["clean"], true, "{report}");
    assert_eq!(report["key_slots"][0]["state"], "opens");
    assert_eq!(
        (&report["name"], &report["writer"]),
        (&"home".into(), &2.into())
    );
    let seen = forged.with_file_name("../cur/1.forged.host:2,");
    fs::remove_file(&forged)
        .or_else(|_| fs::remove_file(seen))
        .expect("a mail");
    // Again: nothing changes.
    let report = json(&mut rebuilding(&volume, &["bob"]));
    assert_eq!(report["writer"], 2, "{report}");

    volume.mount_with(&["--expect-head", &fingerprint]);
    assert_eq!(
        fs::read_to_string(at("folder/file")).expect("a file"),
        "content"
    );
    assert!(fs::read(at("large")).expect("a file") == content(1));
    volume.umount();
    let mut mount = volume.mounting();
    mount.args(["--expect-head", "999-00000000"]);
    assert_has(
        &fails_with(&mut mount, 1),
        &["expected the commit 999-00000000"],
    );
}

#[test]
fn a_volume_of_several_accounts_and_one_of_several_volumes() {
    let Some(volume) = Volume::new() else { return };
    let account = |user: &str| format!("imap://{user}@{}/", volume.dovecot.imap);
    let mut init = volume.fs(&[
        "init",
        "second",
        &account("bob"),
        &account("eve"),
        "--clear",
    ]);
    init.args(["--replicas", "2", "--password-file"])
        .arg(volume.path("password"));
    run(volume.with_phrase(&mut init));
    let mut mount = volume.fs(&["mount", "second"]);
    mount.arg(volume.point());
    run(volume.with_phrase(&mut mount));
    fs::write(volume.point().join("file"), content(2)).expect("a file");
    run(&mut volume.fs(&["umount", "second"]));
    lose_machine(&volume);
    let said = fails_with(&mut rebuilding(&volume, &["bob"]), 1);
    assert_has(&said, &["--volume TAG; found 2:", "on account 1"]);
    // Only the second volume is on this account.
    let said = fails_with(&mut rebuilding(&volume, &["eve"]), 1);
    assert_has(&said, &["expected all accounts", &account("bob")]);
    let name = mailboxes(&volume, "eve", ".log");
    assert!(name.is_empty());
    let head = mailboxes(&volume, "eve", ".head").pop().expect("a mailbox");
    let name = head
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let tag = name.split('.').nth(2).expect("a tag").to_owned();
    let mut rebuild = rebuilding(&volume, &["eve", "bob"]);
    let report = json(rebuild.args(["--volume", &tag]));
    assert_eq!(report["accounts"][0]["url"], account("bob"), "{report}");
    assert_eq!(report["check"]["clean"], true, "{report}");
    volume.mount();
    assert!(fs::read(volume.point().join("file")).expect("a file") == content(2));
    volume.umount();
}

#[test]
fn a_log_that_was_set_back_is_refused_until_a_person_accepts() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    fs::write(volume.point().join("first"), "1").expect("a file");
    volume.umount();
    let mails = || -> Vec<PathBuf> {
        let words = [".log", ".pages"];
        let all = words
            .iter()
            .flat_map(|word| mailboxes(&volume, "bob", word));
        let all = all.flat_map(|mailbox| fs::read_dir(mailbox.join("cur")).expect("a folder"));
        all.flatten().map(|entry| entry.path()).collect()
    };
    let before = mails();
    volume.mount();
    fs::write(volume.point().join("second"), "2").expect("a file");
    volume.umount();
    for mail in mails() {
        if !before.contains(&mail) {
            fs::remove_file(mail).expect("a mail");
        }
    }
    // A mount that begins from the local disk turns read-only at the comparison, and the next one reads the log.
    volume.mount();
    let is_read_only = || {
        let status = json(&mut volume.fs(&["status", "home", "--json"]));
        status["read_only"].as_str().map(str::to_owned)
    };
    wait_until("the comparison", || is_read_only().is_some());
    let reason = is_read_only().unwrap_or_default();
    assert_has(&reason, &["the account was set back", "mount again"]);
    fs::write(volume.point().join("third"), "3").expect_err("a read-only mount");
    volume.umount();
    let said = fails_with(&mut volume.mounting(), 1);
    assert_has(&said, &["the account was set back", "--accept-rollback"]);
    let mut check = volume.fs(&["check", "home", "--accept-rollback"]);
    let said = run(volume.with_phrase(&mut check));
    assert_has(&said, &["clean: "]);
    volume.mount();
    assert_eq!(
        fs::read_to_string(volume.point().join("first")).expect("a file"),
        "1"
    );
    assert!(!volume.point().join("second").exists());
    volume.umount();
}

#[test]
fn content_is_salvaged_where_log_and_pages_are_gone() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    fs::write(volume.point().join("large"), content(3)).expect("a file");
    volume.umount();
    for word in [".log", ".pages"] {
        for mailbox in mailboxes(&volume, "bob", word) {
            empty(&mailbox);
        }
    }
    lose_machine(&volume);
    let said = fails_with(&mut rebuilding(&volume, &["bob"]), 1);
    assert_has(&said, &["has no commit", "--salvage"]);
    let report = json(rebuilding(&volume, &["bob"]).arg("--salvage"));
    assert_eq!(report["salvaged"]["files"], 1, "{report}");
    assert_eq!(report["check"]["clean"], true, "{report}");
    volume.mount();
    let folder = fs::read_dir(volume.point().join("lost+found")).expect("a folder");
    let file = folder.flatten().next().expect("a file").path();
    assert!(fs::read(file).expect("a file") == content(3));
    fs::write(volume.point().join("new"), "x").expect("a file");
    volume.umount();
    // Nothing is left to salvage.
    let report = json(rebuilding(&volume, &["bob"]).arg("--salvage"));
    assert_eq!(report["salvaged"]["files"], 0, "{report}");
}

#[test]
fn names_are_salvaged_by_pages_where_the_log_is_gone() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    let folder = volume.point().join("papers/of 2026");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("large"), content(3)).expect("a file");
    fs::copy(folder.join("large"), volume.point().join("equal")).expect("a file");
    fs::hard_link(folder.join("large"), volume.point().join("second")).expect("a link");
    volume.umount();
    for mailbox in mailboxes(&volume, "bob", ".log") {
        empty(&mailbox);
    }
    lose_machine(&volume);
    let report = json(rebuilding(&volume, &["bob"]).arg("--salvage"));
    let salvaged = &report["salvaged"];
    assert_eq!(salvaged["files"], 0, "{report}");
    assert_eq!(salvaged["restored_files"], 2, "{report}");
    assert_eq!(salvaged["restored_folders"], 2, "{report}");
    assert_eq!(salvaged["restored_in_place"], true, "{report}");
    assert_eq!(salvaged["pages_complete"], true, "{report}");
    assert_eq!(report["check"]["clean"], true, "{report}");
    volume.mount();
    for name in ["papers/of 2026/large", "equal", "second"] {
        let found = fs::read(volume.point().join(name)).expect("a file");
        assert!(found == content(3), "{name}");
    }
    assert!(!volume.point().join("lost+found").exists());
    fs::write(volume.point().join("new"), "x").expect("a file");
    volume.umount();
}
