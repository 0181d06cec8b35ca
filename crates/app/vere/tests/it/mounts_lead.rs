//! A volume whose lead does not answer: the second account has copies of all changes and names (`vere fs`). Dovecot keeps the
//! mails, on two servers.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use vere_faults::dovecot::Dovecot;
use vere_faults::relay::Relay;

use crate::harness::{assert_has, fails_with, output_of, run, vere, wait_until};
use crate::mounts::can_mount;
use crate::mounts::forget_commits;

struct Two {
    relay: Relay,
    _lead: Dovecot,
    _second: Dovecot,
    accounts: [String; 2],
    folder: tempfile::TempDir,
}

impl Two {
    fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let (lead, second) = (Dovecot::start()?, Dovecot::start()?);
        let relay = Relay::to(lead.imap, Duration::ZERO);
        let folder = tempfile::tempdir().expect("a folder");
        let accounts = [relay.address, second.imap].map(|at| format!("imap://bob@{at}/"));
        let two = Self {
            relay,
            _lead: lead,
            _second: second,
            accounts,
            folder,
        };
        fs::create_dir(two.point()).expect("a folder");
        fs::write(two.path("password"), "secret\n").expect("room");
        fs::write(two.path("phrase"), "a pass phrase\n").expect("room");
        let mut init = two.fs(&["init", "home", &two.accounts[0], &two.accounts[1]]);
        init.arg("--clear");
        init.args(["--replicas", "2", "--strategy", "all", "--password-file"]);
        init.arg(two.path("password"));
        run(init.arg("--passphrase-file").arg(two.path("phrase")));
        Some(two)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn point(&self) -> PathBuf {
        self.path("mnt")
    }

    fn fs(&self, words: &[&str]) -> std::process::Command {
        let mut command = vere();
        command.arg("fs").args(words);
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    fn mounting(&self) -> std::process::Command {
        let mut mount = self.fs(&["mount", "home"]);
        mount.arg(self.point());
        mount.arg("--passphrase-file").arg(self.path("phrase"));
        mount
    }

    fn rebuilding(&self) -> std::process::Command {
        let mut rebuild = self.fs(&["rebuild", "home", &self.accounts[0], &self.accounts[1]]);
        rebuild.arg("--clear");
        rebuild.arg("--password-file").arg(self.path("password"));
        rebuild.arg("--passphrase-file").arg(self.path("phrase"));
        rebuild
    }

    fn forget(&self, folders: &[&str]) {
        for folder in folders {
            fs::remove_dir_all(self.path(folder)).expect("a folder");
        }
    }

    fn status(&self) -> Value {
        let status = run(&mut self.fs(&["status", "home", "--json"]));
        serde_json::from_str(&status).expect("JSON")
    }

    fn umount(&self) {
        run(&mut self.fs(&["umount", "home"]));
    }

    fn wait_for_copy(&self) {
        wait_until("the copy", || {
            self.status()["metadata_copies"][0]["is_level"] == Value::Bool(true)
        });
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        // A failed test must not leave a mount behind; after others there is none.
        let _none = self.fs(&["umount", "--force", "home"]).output();
        let point = self.point().display().to_string();
        let _none = self.fs(&["umount", "--force", &point]).output();
    }
}

fn fill(point: &Path) -> Vec<u8> {
    fs::create_dir(point.join("folder")).expect("a folder");
    for number in 0..20 {
        let file = point.join(format!("folder/{number}"));
        fs::write(file, format!("content {number}")).expect("a file");
    }
    let large: Vec<u8> = (0..1_500_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(point.join("large"), &large).expect("a file");
    large
}

fn check(point: &Path, large: &[u8]) {
    for number in 0..20 {
        let file = point.join(format!("folder/{number}"));
        let content = fs::read_to_string(file).expect("a file");
        assert_eq!(content, format!("content {number}"));
    }
    assert!(fs::read(point.join("large")).expect("a file") == large);
}

#[test]
fn a_volume_is_read_without_its_lead() {
    let Some(two) = Two::new() else { return };
    run(&mut two.mounting());
    let large = fill(&two.point());
    run(&mut two.fs(&["sync", "home"]));
    two.wait_for_copy();
    let shown = run(&mut two.fs(&["status", "home"]));
    assert_has(&shown, &["copy on account 2   every change and name"]);
    assert_has(&run(&mut two.fs(&["check", "home"])), &["clean: "]);
    two.umount();
    two.relay.refuse(true);
    // The machine that made the files has the names on its disk.
    run(&mut two.mounting());
    check(&two.point(), &large);
    two.umount();
    two.forget(&["state", "cache"]);
    let said = output_of(&mut two.mounting(), "");
    let said = String::from_utf8_lossy(&said.stderr);
    assert_has(&said, &["read-only, as of its copy on account 2"]);
    check(&two.point(), &large);
    let error = fs::write(two.point().join("new"), "x").expect_err("a read-only volume");
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    let shown = run(&mut two.fs(&["status", "home"]));
    assert_has(&shown, &["read-only", "does not answer"]);
    two.umount();
    two.relay.refuse(false);
    run(&mut two.mounting());
    check(&two.point(), &large);
    fs::write(two.point().join("new"), "written").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    two.wait_for_copy();
    two.umount();
}

/// A mount from a copy becomes writable by itself when the lead answers again, and programs keep their open files.
#[test]
fn a_mount_from_a_copy_goes_over_to_its_lead() {
    let Some(two) = Two::new() else { return };
    let file = two.path("config").join("vere/fs/home.toml");
    let text = fs::read_to_string(&file).expect("a file");
    let text = text.replace("version = 1\n", "version = 1\nrefresh = \"1s\"\n");
    fs::write(&file, text).expect("room");
    run(&mut two.mounting());
    let point = two.point();
    fs::write(point.join("kept"), "before the outage").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    two.wait_for_copy();
    two.umount();
    two.relay.refuse(true);
    fs::remove_dir_all(two.path("state")).expect("a folder");
    run(&mut two.mounting());
    let mut kept = fs::OpenOptions::new();
    let kept = kept.read(true).write(true).open(point.join("kept"));
    let kept = kept.expect("a file");
    let error = kept.write_all_at(b"B", 0).expect_err("a read-only volume");
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    let shown = run(&mut two.fs(&["status", "home"]));
    assert_has(&shown, &["as soon as the lead account answers"]);
    two.relay.refuse(false);
    wait_until("a mount that takes changes", || {
        fs::write(point.join("new"), "written").is_ok()
    });
    kept.write_all_at(b"B", 0).expect("a write");
    kept.sync_all().expect("a sync");
    let mut content = [0; 17];
    kept.read_exact_at(&mut content, 0).expect("a read");
    assert_eq!(&content, b"Before the outage");
    let status = two.status();
    assert_eq!(status["reopened"], "the lead account answers again");
    assert_eq!(status["read_only"], Value::Null);
    drop(kept);
    two.umount();
    run(&mut two.mounting());
    let content = fs::read_to_string(point.join("kept")).expect("a file");
    assert_eq!(content, "Before the outage");
    let content = fs::read_to_string(point.join("new")).expect("a file");
    assert_eq!(content, "written");
    two.umount();
}

/// Both accounts and the passphrase find the volume again while the lead is away.
#[test]
fn a_volume_is_found_again_without_its_lead() {
    let Some(two) = Two::new() else { return };
    run(&mut two.mounting());
    let large = fill(&two.point());
    run(&mut two.fs(&["sync", "home"]));
    two.wait_for_copy();
    two.umount();
    two.relay.refuse(true);
    two.forget(&["config", "state", "cache"]);
    let mut rebuild = two.rebuilding();
    // The account that fails is named, by the exit code too.
    let said = output_of(&mut rebuild, "");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
    assert_has(&said, &["registers when the lead answers", "are written"]);
    run(&mut two.mounting());
    check(&two.point(), &large);
    two.umount();
    two.relay.refuse(false);
    run(&mut two.mounting());
    fs::write(two.point().join("new"), "written").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    two.umount();
}

/// With two copies wanted, a change that `fsync` has confirmed is on the second account.
#[test]
fn fsync_waits_for_the_copy_where_two_are_wanted() {
    let Some(two) = Two::new() else { return };
    let file = two.path("config").join("vere/fs/home.toml");
    let text = fs::read_to_string(&file).expect("a file");
    let text = text.replace("version = 1\n", "version = 1\nsync_copies = 2\n");
    fs::write(&file, text).expect("room");
    let mut mount = two.mounting();
    let mut process = mount.arg("--foreground").spawn().expect("vere");
    let point = two.point().display().to_string();
    wait_until("the mount", || {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("a file");
        mounts.contains(&point)
    });
    let file = fs::File::create(two.point().join("kept")).expect("a file");
    std::io::Write::write_all(&mut &file, b"on two accounts").expect("room");
    file.sync_all().expect("a sync");
    process.kill().expect("a kill");
    process.wait().expect("an end");
    run(&mut two.fs(&["umount", &point]));
    two.relay.refuse(true);
    fs::remove_dir_all(two.path("state")).expect("a folder");
    run(&mut two.mounting());
    let content = fs::read_to_string(two.point().join("kept")).expect("a file");
    assert_eq!(content, "on two accounts");
    two.umount();
}

/// A machine that has seen a newer change than the copy has waits for the lead.
#[test]
fn an_older_copy_is_refused() {
    let Some(two) = Two::new() else { return };
    let file = two.path("config").join("vere/fs/home.toml");
    let text = fs::read_to_string(&file).expect("a file");
    let one = text.replace("version = 1\n", "version = 1\nmetadata_accounts = 1\n");
    run(&mut two.mounting());
    two.wait_for_copy();
    two.umount();
    fs::write(&file, one).expect("room");
    run(&mut two.mounting());
    fs::write(two.point().join("new"), "on the lead alone").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    two.umount();
    fs::write(&file, text).expect("room");
    two.relay.refuse(true);
    let volumes = fs::read_dir(two.path("state").join("vere/fs")).expect("a folder");
    for volume in volumes
        .flatten()
        .filter(|of| of.path().join("journal").is_dir())
    {
        forget_commits(&volume.path().join("journal"));
    }
    let said = fails_with(&mut two.mounting(), 1);
    assert_has(&said, &["its copy on account 2 ends with generation"]);
}

impl Two {
    fn changing(&self, to: &str) -> std::process::Command {
        let mut lead = self.fs(&["accounts", "lead", "home", to]);
        lead.arg("--passphrase-file").arg(self.path("phrase"));
        lead
    }

    /// The number of the lead, as the mount or else the machine knows.
    fn lead(&self) -> u64 {
        let rows = run(&mut self.fs(&["accounts", "list", "home", "--json"]));
        let rows: Value = serde_json::from_str(&rows).expect("JSON");
        let mut rows = rows.as_array().expect("rows").iter();
        let lead = rows.find(|row| row["lead"] == Value::Bool(true));
        lead.and_then(|row| row["number"].as_u64()).expect("a lead")
    }
}

/// The second account becomes the lead while the volume is mounted; then the first one goes.
#[test]
fn another_account_becomes_the_lead() {
    let Some(two) = Two::new() else { return };
    run(&mut two.mounting());
    let large = fill(&two.point());
    let open = fs::File::create(two.point().join("open")).expect("a file");
    assert_has(&fails_with(&mut two.changing("1"), 1), &["found the lead"]);
    assert_has(&fails_with(&mut two.changing("3"), 1), &["found 3"]);
    assert_has(&run(&mut two.changing("2")), &["Account 2 is the lead"]);
    std::io::Write::write_all(&mut &open, b"through the change").expect("room");
    open.sync_all().expect("a sync");
    wait_until("the mount under the new lead", || two.lead() == 2);
    check(&two.point(), &large);
    fs::write(two.point().join("new"), "under the new lead").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    assert_has(&run(&mut two.fs(&["check", "home"])), &["clean: "]);
    two.umount();
    // A machine with the file of the beginning finds the lead by the log of the former one, and without it too.
    for is_away in [false, true] {
        two.relay.refuse(is_away);
        two.forget(&["state", "cache"]);
        run(&mut two.mounting());
        check(&two.point(), &large);
        assert_eq!(two.lead(), 2);
        let file = two.point().join(format!("away {is_away}"));
        fs::write(file, "written").expect("a file");
        run(&mut two.fs(&["sync", "home"]));
        two.umount();
    }
    // The former lead has nothing any more that the new one lacks.
    two.relay.refuse(false);
    run(&mut two.mounting());
    wait_until("copies of all packs", || {
        two.status()["copies_missing"] == 0
    });
    let mut remove = two.fs(&["accounts", "remove", "home", "1"]);
    remove.arg("--passphrase-file").arg(two.path("phrase"));
    assert_has(&run(&mut remove), &["no account of the volume any more"]);
    two.umount();
    two.relay.refuse(true);
    two.forget(&["state", "cache"]);
    run(&mut two.mounting());
    check(&two.point(), &large);
    fs::write(two.point().join("last"), "written").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    two.umount();
}

/// The lead is gone: the copy of changes and names on the second account becomes the log.
#[test]
fn a_lead_that_is_gone_is_replaced() {
    let Some(two) = Two::new() else { return };
    run(&mut two.mounting());
    let large = fill(&two.point());
    run(&mut two.fs(&["sync", "home"]));
    two.wait_for_copy();
    two.umount();
    two.relay.refuse(true);
    let said = fails_with(&mut two.changing("2"), 1);
    assert_has(&said, &["account 1", "--force"]);
    let said = run(two.changing("2").arg("--force"));
    assert_has(&said, &["Account 2 is the lead", "account 1 alone has"]);
    run(&mut two.mounting());
    check(&two.point(), &large);
    fs::write(two.point().join("new"), "without the former lead").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    two.umount();
    // Whoever has the accounts and the passphrase alone finds the volume under its lead.
    two.forget(&["config", "state", "cache"]);
    let mut rebuild = two.rebuilding();
    output_of(&mut rebuild, "");
    run(&mut two.mounting());
    check(&two.point(), &large);
    assert_eq!(two.lead(), 2);
    two.umount();
    two.relay.refuse(false);
    run(&mut two.mounting());
    check(&two.point(), &large);
    two.wait_for_copy();
    two.umount();
}

/// A mount whose lead is out of reach for long makes the account with the copy the lead, and goes on; so does a mount of another
/// machine, which comes later.
#[test]
fn a_mount_replaces_its_lead() {
    let Some(two) = Two::new() else { return };
    let file = two.path("config").join("vere/fs/home.toml");
    let text = fs::read_to_string(&file).expect("a file");
    let text = text.replace(
        "version = 1\n",
        "version = 1\nlead_patience = \"1s\"\nrefresh = \"1s\"\n",
    );
    fs::write(&file, text).expect("room");
    run(&mut two.mounting());
    let large = fill(&two.point());
    let open = fs::File::create(two.point().join("open")).expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    two.wait_for_copy();
    two.relay.refuse(true);
    std::io::Write::write_all(&mut &open, b"written meanwhile").expect("room");
    wait_until("another lead", || two.lead() == 2);
    wait_until("a mount under the new lead", || {
        two.status()["read_only"].is_null()
    });
    open.sync_all().expect("a sync");
    fs::write(two.point().join("new"), "without the former lead").expect("a file");
    run(&mut two.fs(&["sync", "home"]));
    check(&two.point(), &large);
    two.umount();
    two.relay.refuse(false);
    two.forget(&["state", "cache"]);
    run(&mut two.mounting());
    wait_until("the new lead", || two.lead() == 2);
    wait_until("a mount under the new lead", || {
        two.status()["read_only"].is_null()
    });
    let content = fs::read_to_string(two.point().join("open")).expect("a file");
    assert_eq!(content, "written meanwhile");
    two.umount();
}
