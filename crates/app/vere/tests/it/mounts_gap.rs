//! Machines that come back when the accounts lack the state on which their unsent changes lie.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{assert_has, fails_with, output_of, run};
use crate::mounts::{Volume, forget_commits};

/// The folder of the volume's state.
fn state(volume: &Volume) -> PathBuf {
    let all = fs::read_dir(volume.path("state").join("vere/fs")).expect("a folder");
    let mut folders = all.flatten().map(|entry| entry.path());
    let state = folders.find(|path| path.join("journal").exists());
    state.expect("the state of the volume")
}

fn log(volume: &Volume) -> Vec<PathBuf> {
    let all = fs::read_dir(volume.dovecot.maildir("bob")).expect("a Maildir");
    let mut paths = all.flatten().map(|entry| entry.path());
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".VereFS.") && name.ends_with(".log")
    };
    let log = paths.find(is_log).expect("a log").join("cur");
    let mails = fs::read_dir(log).expect("a folder").flatten();
    mails.map(|entry| entry.path()).collect()
}

fn write(volume: &Volume, name: &str, content: &str) {
    fs::write(volume.point().join(name), content).expect("a file");
}

fn read(volume: &Volume, name: &str) -> String {
    fs::read_to_string(volume.point().join(name)).expect("a file")
}

/// Content too long for a commit: `gc` keeps commits with content.
fn long() -> String {
    "one".repeat(50_000)
}

/// A machine dies with unsent changes; the volume goes on elsewhere, and the log loses its old commits. Returns the journal of
/// the dead machine.
fn gone_on(volume: &Volume) -> PathBuf {
    volume.mount();
    write(volume, "alone", &long());
    write(volume, "both.txt", "base");
    volume.umount();
    let process = volume.mount_in_foreground();
    let file = fs::OpenOptions::new()
        .append(true)
        .open(volume.point().join("alone"));
    file.expect("a file").write_all(b", two").expect("a write");
    write(volume, "both.txt", "of the machine that was away");
    write(volume, "new", "unsent");
    volume.kill(process);
    let old = log(volume);
    let journal = volume.path("away");
    fs::rename(state(volume).join("journal"), &journal).expect("a folder");
    for number in 0..2 {
        volume.mount();
        write(volume, "both.txt", &format!("of others {number}"));
        volume.umount();
    }
    for mail in old {
        fs::remove_file(mail).expect("a mail");
    }
    // A machine that was away for so long reads the log first.
    forget_commits(&journal);
    journal
}

/// The name of a dead machine's journal in the state folder, set aside.
const ASIDE: &str = "journal.set-aside-1";

fn set_aside(volume: &Volume) -> PathBuf {
    let away = gone_on(volume);
    let aside = state(volume).join(ASIDE);
    fs::rename(away, &aside).expect("a folder");
    aside
}

fn bringing_in(volume: &Volume) -> Command {
    let mut check = volume.fs(&["check", "home", "--bring-in", ASIDE]);
    volume.with_phrase(&mut check);
    check
}

/// The names and contents of the files of a folder.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let paths = entries.map(|entry| entry.path());
    let mut files: Vec<(PathBuf, Vec<u8>)> = paths
        .map(|path| (path.clone(), fs::read(path).expect("a file")))
        .collect();
    files.sort();
    files
}

fn expect_all(volume: &Volume) {
    volume.mount();
    assert!(read(volume, "alone") == format!("{}, two", long()));
    assert_eq!(read(volume, "new"), "unsent");
    assert_eq!(read(volume, "both.txt"), "of others 1");
    let names = fs::read_dir(volume.point()).expect("a folder").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let copies: Vec<String> = names.filter(|name| name.contains("(conflict ")).collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert!(copies[0].starts_with("both (conflict "), "{copies:?}");
    assert_eq!(read(volume, &copies[0]), "of the machine that was away");
    volume.umount();
}

/// A check misses the commits that the test has removed, which `gc` would have told in the log, and nothing else.
fn assert_only_the_log_is_hurt(check: &mut Command) {
    let output = output_of(check, "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let faults = |line: &&str| line.starts_with("damage") || line.starts_with("loss");
    let faults: Vec<&str> = said.lines().filter(faults).collect();
    assert_eq!(faults.len(), 1, "{said}");
    assert_has(faults[0], &["the chain of commits", "expected commit"]);
}

#[test]
fn a_machine_that_was_away_too_long_mounts_with_its_changes() {
    let Some(volume) = Volume::new() else { return };
    let away = gone_on(&volume);
    let journal = state(&volume).join("journal");
    fs::remove_dir_all(&journal).expect("a folder");
    fs::rename(away, journal).expect("a folder");
    let said = output_of(&mut volume.mounting(), "");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_has(&said, &["brought onto the newest state"]);
    let status = run(&mut volume.fs(&["status", "home"]));
    assert_has(&status, &["both (conflict "]);
    volume.umount();
    expect_all(&volume);
    let mut check = volume.fs(&["check", "home", "--data"]);
    assert_only_the_log_is_hurt(volume.with_phrase(&mut check));
}

#[test]
fn a_journal_that_was_set_aside_is_brought_in_by_command() {
    let Some(volume) = Volume::new() else { return };
    set_aside(&volume);
    volume.mount();
    let said = fails_with(&mut bringing_in(&volume), 1);
    assert_has(&said, &["expected a volume that is not mounted"]);
    volume.umount();
    assert_only_the_log_is_hurt(&mut bringing_in(&volume));
    expect_all(&volume);
    // The journal has its place back, so no journal is left to bring in.
    let said = fails_with(&mut bringing_in(&volume), 1);
    assert_has(
        &said,
        &["expected the folder of a journal that was set aside"],
    );
}

/// A damaged journal once took the place of the present journal all the same, and a person had to change the places back.
#[test]
fn a_damaged_journal_changes_nothing() {
    let Some(volume) = Volume::new() else { return };
    let aside = set_aside(&volume);
    let mut segments = files(&aside).into_iter();
    let is_segment = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("journal-")
    };
    let last = segments.rfind(|(path, _)| is_segment(path));
    let (path, whole) = last.expect("a segment");
    // The first record of the segment, with more behind.
    let mut damaged = whole.clone();
    damaged[70] ^= 1;
    fs::write(&path, damaged).expect("a file");
    let journal = state(&volume).join("journal");
    let before = (files(&journal), files(&aside));
    let said = fails_with(&mut bringing_in(&volume), 1);
    assert_has(&said, &[ASIDE, "found damage", "Nothing was changed"]);
    assert!((files(&journal), files(&aside)) == before);
    // A journal without records is refused too.
    fs::write(&path, &whole[..44]).expect("a file");
    for (other, _) in files(&aside) {
        if is_segment(&other) && other != path {
            fs::remove_file(other).expect("a file");
        }
    }
    let said = fails_with(&mut bringing_in(&volume), 1);
    assert_has(&said, &["found no record", "Nothing was changed"]);
    assert!(files(&journal) == before.0);
    // The volume goes on as before.
    volume.mount();
    assert_eq!(read(&volume, "both.txt"), "of others 1");
    volume.umount();
}

/// The command was killed when the journals had changed places.
#[test]
fn a_command_that_was_killed_goes_on() {
    let Some(volume) = Volume::new() else { return };
    let aside = set_aside(&volume);
    let path = aside.as_os_str().as_encoded_bytes();
    fs::write(aside.join("bring-in"), path).expect("a mark");
    let journal = state(&volume).join("journal");
    let between = state(&volume).join("between");
    for (from, to) in [(&journal, &between), (&aside, &journal), (&between, &aside)] {
        fs::rename(from, to).expect("a folder");
    }
    let mut check = bringing_in(&volume);
    let output = output_of(&mut check, "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_has(&said, &["a run that was broken off", "goes on"]);
    assert!(!aside.exists() && !journal.join("bring-in").exists());
    assert!(aside.with_extension("set-aside-2").exists());
    expect_all(&volume);
}
