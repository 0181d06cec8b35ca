//! The guide about volumes on mail accounts, typed with accounts of two servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Operator;
use crate::harness::{run, vere};
use crate::mounts::can_mount;
use crate::peers::Dovecot;

/// A mount point, cleared at the end also of a test that failed.
struct Point(PathBuf);

impl Drop for Point {
    fn drop(&mut self) {
        let mut umount = Command::new("umount");
        umount.arg("--lazy").arg(&self.0).stderr(Stdio::null());
        let _none = umount.status();
    }
}

/// Takes from the machine what it knows of its volumes.
fn forget(home: &Path) {
    for name in [".config", ".local", ".cache"] {
        fs::remove_dir_all(home.join(name)).expect("a folder of the volume");
    }
}

/// The fingerprint of the newest change, as `vere fs status` prints it.
fn fingerprint(operator: &Operator) -> String {
    let mut status = vere();
    status.args(["fs", "status", "home", "--json"]);
    status.envs(operator.shell.environment.iter().cloned());
    let said = run(&mut status);
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    said["fingerprint"]
        .as_str()
        .expect("a fingerprint")
        .to_owned()
}

#[test]
fn a_volume_is_made_mounted_and_comes_back_without_its_machine() {
    if !can_mount() {
        return;
    }
    let (Some(one), Some(other)) = (Dovecot::start(), Dovecot::start()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let account = |server: &Dovecot| format!("imap://bob@{}/", server.imap);
    let texts = [
        // The servers of this test have no TLS.
        ("vere fs init home", "vere fs init home --clear"),
        ("vere fs rebuild home", "vere fs rebuild home --clear"),
        ("imaps://ann@a.example/", &*account(&one)),
        ("imaps://ann@b.example/", &*account(&other)),
    ];
    let Some(mut operator) = Operator::with(home, &home.join("none"), &texts, &[]) else {
        return;
    };
    operator.place("/home/ann/files", "files");
    operator.shell.answer = "secret";
    for name in ["a.pw", "b.pw"] {
        fs::write(operator.path(name), "secret\n").expect("room");
    }
    let point = Point(operator.path("files"));
    fs::create_dir(&point.0).expect("a folder");
    let file = point.0.join("file");
    let follow = |operator: &mut Operator, beginning: &str| {
        operator.follow_where("volume", |command| command.starts_with(beginning));
    };

    follow(&mut operator, "vere fs init");
    operator.follow_where("volume", |command| {
        command == "vere fs mount home /home/ann/files"
    });
    fs::write(&file, "some text").expect("room");
    for looked in ["status", "mode", "check", "gc", "accounts lead"] {
        follow(&mut operator, &format!("vere fs {looked}"));
    }
    let newest = fingerprint(&operator);
    follow(&mut operator, "vere fs umount");
    for salvage in [false, true] {
        forget(home);
        operator.follow_where("volume", |command| {
            command.starts_with("vere fs rebuild") && command.contains("--salvage") == salvage
        });
    }
    operator
        .shell
        .texts
        .push(("4711-9c1185a5".to_owned(), newest));
    operator.follow_where("volume", |command| command.contains("--expect-head"));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "some text");
    follow(&mut operator, "vere fs umount");
}
