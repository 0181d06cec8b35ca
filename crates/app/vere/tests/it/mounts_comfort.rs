//! Volumes on mail accounts: what makes them pleasant. Groups, modes, dead mounts, /etc/fstab, and our own store as the server.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::{Options, assert_has, fails_with, output_of, run, wait_until};
use crate::imap::start_with_store;
use crate::mounts::{Volume, can_mount};

pub(crate) fn status(volume: &Volume) -> Value {
    let status = run(&mut volume.fs(&["status", "home", "--json"]));
    serde_json::from_str(&status).expect("JSON")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The text of the log of the only volume.
fn log(volume: &Volume) -> String {
    let states = fs::read_dir(volume.path("state/vere/fs")).expect("a folder");
    let mut all = states.flatten().map(|state| state.path().join("mount.log"));
    fs::read_to_string(all.next().expect("a state")).expect("a log")
}

#[test]
fn the_mount_of_an_ended_process_is_in_nobodys_way() {
    let Some(volume) = Volume::new() else { return };
    let mut process = volume.mount_in_foreground();
    let file = volume.point().join("file");
    fs::write(&file, "before the kill").expect("a file");
    process.kill().expect("a kill");
    // At once: the killed process has its files for some moments yet.
    let mounted = output_of(&mut volume.mounting(), "");
    process.wait().expect("an end");
    assert_has(
        &said(&mounted),
        &["the mount of an ended process is removed"],
    );
    assert_eq!(
        fs::read_to_string(&file).expect("a file"),
        "before the kill"
    );
    volume.umount();
    let log = log(&volume);
    assert_has(
        &log,
        &[
            "Z warn ",
            "is removed\n",
            "Z info mounted at /",
            "Z info unmounted\n",
        ],
    );
}

#[test]
fn a_mount_outlives_its_shell() {
    let Some(volume) = Volume::new() else { return };
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" || exit 1; trap '' HUP; kill -HUP 0", "sh"]);
    let mounting = volume.mounting();
    shell.arg(mounting.get_program()).args(mounting.get_args());
    for (name, value) in mounting.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    run(shell.process_group(0));
    fs::write(volume.point().join("file"), "after the shell").expect("a file");
    assert_eq!(status(&volume)["read_only"], Value::Null);
    volume.umount();
}

#[test]
fn a_running_mount_changes_its_mode() {
    let Some(volume) = Volume::new() else { return };
    volume.mount_with(&["--mode", "strong"]);
    assert_eq!(run(&mut volume.fs(&["mode", "home"])), "strong\n");
    fs::write(volume.point().join("file"), "on the servers").expect("a file");
    assert_eq!(status(&volume)["octets_waiting"], 0);
    assert_eq!(run(&mut volume.fs(&["mode", "home", "weak"])), "weak\n");
    assert_eq!(status(&volume)["mode"], "weak");
    assert_has(
        &fails_with(&mut volume.fs(&["mode", "home", "no"]), 2),
        &["weak, strong"],
    );
    volume.umount();
    assert_has(
        &fails_with(&mut volume.fs(&["mode", "home"]), 1),
        &["expected a mounted volume"],
    );
}

#[test]
fn a_line_of_fstab_mounts() {
    let Some(volume) = Volume::new() else { return };
    let helper = volume.path("mount.verefs");
    symlink(env!("CARGO_BIN_EXE_vere"), &helper).expect("a link");
    let config = volume.path("config/vere/fs/home.toml");
    let phrase = volume.path("phrase");
    let options = format!(
        "rw,_netdev,noauto,mode=strong,config={},passphrase_file={}",
        config.display(),
        phrase.display()
    );
    let mount = |options: &str| {
        let mut mount = Command::new(&helper);
        mount
            .arg("home")
            .arg(volume.point())
            .args(["-s", "-o", options]);
        mount.env("XDG_STATE_HOME", volume.path("state"));
        mount.env("XDG_CACHE_HOME", volume.path("cache"));
        mount
    };
    run(&mut mount(&options));
    let status = status(&volume);
    assert_eq!(status["mode"], "strong");
    assert_eq!(status["mounted_at"], volume.point().display().to_string());
    volume.umount();
    assert_has(
        &fails_with(&mut mount("what"), 1),
        &["-o what", "usage: mount.verefs"],
    );
    let absent = options.replace("home.toml", "none.toml");
    assert_has(
        &fails_with(&mut mount(&absent), 32),
        &["none.toml", "mount.verefs: "],
    );
}

/// Two accounts with equal data on a system of ours.
#[test]
fn our_own_store_keeps_a_volume_with_replicas() {
    if !can_mount() {
        return;
    }
    let (system, ports) = start_with_store(Options::default());
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("mnt")).expect("a folder");
    fs::write(at("password"), "secret\n").expect("room");
    fs::write(at("phrase"), "a pass phrase\n").expect("room");
    let fs_command = |words: &[&str]| {
        let mut command = crate::harness::vere();
        command.arg("fs").args(words);
        command.env("XDG_CONFIG_HOME", at("config"));
        command.env("XDG_STATE_HOME", at("state"));
        command.env("XDG_CACHE_HOME", at("cache"));
        command
    };
    let accounts =
        ["alice", "bob"].map(|user| format!("imap://{user}@example.org@{}/", ports.imap));
    let mut init = fs_command(&["init", "home", &accounts[0], &accounts[1], "--clear"]);
    init.args(["--replicas", "2", "--password-file"])
        .arg(at("password"));
    let made = output_of(init.arg("--passphrase-file").arg(at("phrase")), "");
    let lines = ["account 1: ", "account 2: ", "UIDPLUS", "encoding 8bit"];
    assert_has(&said(&made), &lines);
    let mount = || {
        let mut mount = fs_command(&["mount", "home"]);
        mount
            .arg(at("mnt"))
            .arg("--passphrase-file")
            .arg(at("phrase"));
        run(&mut mount);
    };
    mount();
    let large: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    fs::write(at("mnt/large"), &large).expect("a file");
    fs::write(at("mnt/small"), "content").expect("a file");
    run(&mut fs_command(&["sync", "home"]));
    let status = || -> Value {
        let status = run(&mut fs_command(&["status", "home", "--json"]));
        serde_json::from_str(&status).expect("JSON")
    };
    wait_until("copies in both accounts", || {
        status()["copies_missing"] == 0
    });
    let now = status();
    assert_eq!(now["groups"][0]["accounts"], serde_json::json!([1, 2]));
    assert_eq!(now["groups"][0]["missing"], serde_json::json!({}));
    assert!(now["groups"][0]["packs"].as_u64() >= Some(3), "{now}");
    let shown = run(&mut fs_command(&["status", "home"]));
    let lines = [
        "waiting             nothing",
        "group 1             accounts 1, 2: ",
    ];
    assert_has(&shown, &lines);
    let listed = run(&mut fs_command(&["accounts", "list", "home"]));
    assert_has(
        &listed,
        &["1 group   1 8bit", ", lead, works, ", "2 group   1"],
    );
    run(&mut fs_command(&["umount", "home"]));
    fs::remove_dir_all(at("state")).expect("the state");
    mount();
    assert!(fs::read(at("mnt/large")).expect("a file") == large);
    assert_eq!(read(&at("mnt/small")), "content");
    run(&mut fs_command(&["umount", "home"]));
    system.stop();
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).expect("a file")
}
