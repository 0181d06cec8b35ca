//! Volumes on mail accounts (`vere fs`), mounted: Dovecot keeps the mails.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use vere_faults::relay::Relay;

use crate::harness::{assert_has, fails_with, run, skip, vere, wait_until};
use crate::peers::Dovecot;

pub(crate) struct Volume {
    pub(crate) dovecot: Dovecot,
    folder: tempfile::TempDir,
}

impl Volume {
    /// A new volume; absent where this machine cannot mount.
    pub(crate) fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let dovecot = Dovecot::start()?;
        let imap = dovecot.imap;
        Some(Self::on(dovecot, imap))
    }

    /// A new volume behind a relay.
    pub(crate) fn with_relay() -> Option<(Self, Relay)> {
        if !can_mount() {
            return None;
        }
        let dovecot = Dovecot::start()?;
        let relay = Relay::to(dovecot.imap, Duration::ZERO);
        Some((Self::on(dovecot, relay.address), relay))
    }

    /// A new volume on a server that is reached by an address.
    pub(crate) fn on(dovecot: Dovecot, imap: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let volume = Self { dovecot, folder };
        fs::create_dir(volume.point()).expect("a folder");
        fs::write(volume.path("password"), "secret\n").expect("room");
        fs::write(volume.path("phrase"), "a pass phrase\n").expect("room");
        let account = format!("imap://bob@{imap}/");
        let mut init = volume.fs(&["init", "home", &account, "--clear"]);
        init.arg("--password-file").arg(volume.path("password"));
        let said = run(volume.with_phrase(&mut init));
        assert_has(&said, &["is made", "home.slot"]);
        volume
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn point(&self) -> PathBuf {
        self.path("mnt")
    }

    pub(crate) fn fs(&self, words: &[&str]) -> Command {
        let mut command = vere();
        command.arg("fs").args(words);
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    pub(crate) fn with_phrase<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.arg("--passphrase-file").arg(self.path("phrase"))
    }

    pub(crate) fn mounting(&self) -> Command {
        let mut mount = self.fs(&["mount", "home"]);
        mount.arg(self.point());
        self.with_phrase(&mut mount);
        mount
    }

    pub(crate) fn mount(&self) {
        run(&mut self.mounting());
    }

    /// Mounts with further options.
    pub(crate) fn mount_with(&self, options: &[&str]) {
        run(self.mounting().args(options));
    }

    pub(crate) fn mount_in_foreground(&self) -> Child {
        let mut mount = self.mounting();
        let process = mount.arg("--foreground").spawn().expect("vere");
        wait_until("the mount", || is_mounted(self));
        process
    }

    /// Kills the process of a mount, and clears the mount away.
    pub(crate) fn kill(&self, mut process: Child) {
        process.kill().expect("a kill");
        process.wait().expect("an end");
        run(self.fs(&["umount"]).arg(self.point()));
    }

    /// Ends the server.
    pub(crate) fn end_server(&mut self) {
        self.dovecot.end();
    }

    pub(crate) fn umount(&self) {
        run(&mut self.fs(&["umount", "home"]));
    }
}

/// Whether this machine can mount; tells why not.
pub(crate) fn can_mount() -> bool {
    let can = nix::unistd::geteuid().is_root() && fs::File::open("/dev/fuse").is_ok();
    if !can {
        skip("a mount", "mounting needs root and /dev/fuse");
    }
    can
}

impl Drop for Volume {
    fn drop(&mut self) {
        // A failed test must not leave a mount behind; after others there is none.
        let _none = self.fs(&["umount", "--force", "home"]).output();
        let point = self.point().display().to_string();
        let _none = self.fs(&["umount", "--force", &point]).output();
    }
}

fn content(of: &Path) -> String {
    fs::read_to_string(of).expect("a file")
}

#[test]
fn files_come_back_from_the_servers_alone() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    let file = volume.point().join("folder/file");
    fs::create_dir(volume.point().join("folder")).expect("a folder");
    fs::write(&file, "content").expect("a file");
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(volume.point().join("large"), &large).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    let status = run(&mut volume.fs(&["status", "home", "--json"]));
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["octets_waiting"], 0);
    assert_eq!(status["accounts"][0]["failing"], serde_json::Value::Null);
    assert_has(
        &fails_with(&mut volume.mounting(), 1),
        &["expected a volume that is not mounted"],
    );
    volume.umount();
    assert!(!file.exists());
    fs::remove_dir_all(volume.path("state")).expect("the state");
    volume.mount();
    assert_eq!(content(&file), "content");
    assert!(fs::read(volume.point().join("large")).expect("a file") == large);
    volume.umount();
}

#[test]
fn a_killed_mount_shows_its_changes_again() {
    let Some(volume) = Volume::new() else { return };
    let mut mount = volume.mounting();
    let mut process = mount.arg("--foreground").spawn().expect("vere");
    let file = volume.point().join("file");
    wait_until("the mount", || is_mounted(&volume));
    fs::write(&file, "before the kill").expect("a file");
    process.kill().expect("a kill");
    process.wait().expect("an end");
    let point = volume.point().display().to_string();
    run(&mut volume.fs(&["umount", &point]));
    volume.mount();
    assert_eq!(content(&file), "before the kill");
    volume.umount();
}

fn is_mounted(volume: &Volume) -> bool {
    content(Path::new("/proc/self/mountinfo")).contains(&volume.point().display().to_string())
}

#[test]
fn a_wrong_passphrase_and_an_absent_volume_are_named() {
    let Some(volume) = Volume::new() else { return };
    fs::write(volume.path("phrase"), "another phrase\n").expect("room");
    assert_has(&fails_with(&mut volume.mounting(), 1), &["key slot"]);
    let said = fails_with(&mut volume.fs(&["status", "home"]), 1);
    assert_has(&said, &["expected a mounted volume"]);
    let said = fails_with(&mut volume.fs(&["status", "none"]), 1);
    assert_has(&said, &["none.slot", "vere fs init"]);
    let said = run(&mut volume.fs(&["accounts", "list", "home"]));
    assert_has(&said, &["imap://bob@", "lead"]);
}

#[test]
fn a_check_names_what_is_wrong_and_garbage_is_found() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    let large: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(volume.point().join("kept"), &large).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    // Equal content would be sent once only.
    let other: Vec<u8> = (0..300_000_u32).map(|at| (at % 241) as u8).collect();
    fs::write(volume.point().join("gone"), &other).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    assert_has(
        &run(&mut volume.fs(&["check", "home", "--data"])),
        &["clean: "],
    );
    fs::remove_file(volume.point().join("gone")).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    let report = run(&mut volume.fs(&["gc", "home", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["packs_found"], 1, "{report}");
    assert_eq!(report["removed"], 0);
    volume.umount();
    let mut check = volume.fs(&["check", "home", "--data", "--json"]);
    let report = run(volume.with_phrase(&mut check));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["clean"], true, "{report}");
    assert!(report["verified"].as_u64().expect("a number") > 3);
    volume.mount();
    assert!(fs::read(volume.point().join("kept")).expect("a file") == large);
    volume.umount();
}

/// A listing goes on behind what another one has left in the kernel.
#[test]
fn a_folder_is_listed_whole_beside_a_listing_that_has_begun() {
    let Some(volume) = Volume::new() else { return };
    volume.mount();
    let folder = volume.point().join("folder");
    fs::create_dir(&folder).expect("a folder");
    for number in 0..1_000 {
        fs::write(folder.join(format!("{number:0200}")), "").expect("a file");
    }
    let mut begun = fs::read_dir(&folder).expect("a folder");
    let first: Vec<_> = begun.by_ref().take(300).flatten().collect();
    assert_eq!(first.len(), 300);
    let mut names: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names.len(), 1_000);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 1_000);
    let again = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(again, 1_000);
    assert_eq!(begun.count(), 700);
    volume.umount();
}

/// Removes the commits that a machine keeps for mounts without accounts; the journal still knows the newest one.
pub(crate) fn forget_commits(journal: &Path) {
    let kept = fs::read_dir(journal).expect("a folder").flatten();
    let is_commits = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("commits-");
    let commits = kept.filter(|file| is_commits(&file.file_name()));
    let removed = commits.map(|file| fs::remove_file(file.path()).expect("a file"));
    assert!(removed.count() > 0);
}
