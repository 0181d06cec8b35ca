//! Faults around backups: files of root, damaged objects, repeated restores, signals, and a bucket as a place.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::backup::{names, numbers, place};
use crate::harness::{
    Child, Options, assert_has, fails_with, output_of, program, quiet, run, signal, skip,
    test_name, vere, wait_until,
};
use crate::imap::{Imap, start_with_store};

const ALICE: &str = "alice@example.org";
pub(crate) const NOBODY: u32 = 65_534;

/// The owners of a directory, and of everything below.
pub(crate) fn owners(folder: &Path) -> BTreeSet<u32> {
    let owner = |path: &Path| fs::symlink_metadata(path).expect("it").uid();
    let mut all = BTreeSet::from([owner(folder)]);
    for entry in fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("it").path();
        match path.is_dir() {
            true => all.extend(owners(&path)),
            false => drop(all.insert(owner(&path))),
        }
    }
    all
}

/// A backup of a stopped system as root left the metadata, locks and spare files of the store to root, so that the
/// system of user `vere` did not start any more; so did a restore into the directory of user `vere`.
#[test]
fn a_command_of_root_leaves_no_file_of_root() {
    if !nix::unistd::geteuid().is_root() {
        skip(&test_name(), "not root");
        return;
    }
    let (mut system, ports) = start_with_store(Options::default());
    Imap::login(ports.imap, ALICE, "secret").append("INBOX", "Subject: n1\r\n\r\nx\r\n");
    let place = place(&system);
    system.end();
    let folder = system.directory.path();
    fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("it");
    let data = folder.join("data");
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(&data));
    // What a store makes anew when it opens.
    fs::remove_dir_all(data.join("store/meta")).expect("it");
    fs::remove_file(data.join("store/lock")).expect("it");
    fs::remove_file(data.join("lock")).expect("it");
    run(vere().args(["backup", &place, "-c"]).arg(&system.config));
    assert!(data.join("store/meta").is_dir() && data.join("last-backup").is_file());
    assert_eq!(owners(&data), [NOBODY].into());
    assert_eq!(owners(Path::new(&place)), [0].into());

    let other = folder.join("other");
    fs::create_dir(&other).expect("it");
    chown(&other, Some(NOBODY), Some(NOBODY)).expect("it");
    run(vere().args(["restore", &place, "--to"]).arg(&other));
    assert!(other.join("store/meta").is_dir());
    assert_eq!(owners(&other), [NOBODY].into());
}

/// A damaged object has the length that its name promises, so that the next backup took it for stored.
#[test]
fn a_damaged_object_is_stored_again_by_the_next_backup() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append(
        "INBOX",
        &format!("Subject: n1\r\n\r\n{}\r\n", "abc ".repeat(9_000)),
    );
    let place = place(&system);
    system.command(&["backup", &place]);
    let objects = names(&PathBuf::from(&place).join("objects")).into_iter();
    let largest = objects.max_by_key(|path| fs::metadata(path).expect("it").len());
    let largest = largest.expect("an object");
    let whole = fs::read(&largest).expect("it");
    let mut octets = whole.clone();
    octets[99] ^= 1;
    fs::write(&largest, octets).expect("it");
    let said = fails(&["backup", "verify", &place]);
    assert_has(
        &said,
        &[
            "the object is damaged",
            "the next backup stores the content",
        ],
    );
    system.command(&["backup", &place]);
    assert_eq!(fs::read(&largest).expect("it"), whole);
    // Both backups have the object.
    for number in ["1", "2"] {
        let said = run(vere().args(["backup", "verify", "--number", number, &place]));
        assert_has(&said, &["nothing is wrong"]);
    }
    assert_eq!(names(&PathBuf::from(&place).join("damaged")).len(), 0);
}

/// The standard output of a command that ends with findings.
fn fails(arguments: &[&str]) -> String {
    let output = output_of(vere().args(arguments), "");
    assert_eq!(output.status.code(), Some(3), "{arguments:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Flips a bit in the largest of some objects.
fn damage(objects: &BTreeSet<PathBuf>) {
    let octets = |path: &&PathBuf| fs::metadata(path).expect("it").len();
    let largest = objects.iter().max_by_key(octets).expect("an object");
    let mut octets = fs::read(largest).expect("it");
    octets[99] ^= 1;
    fs::write(largest, octets).expect("it");
}

/// Mail of bob is in a damaged object, mail of alice is in whole ones: nothing of either came back.
#[test]
fn what_a_damaged_backup_still_has_is_restored() {
    const BOB: &str = "bob@example.org";
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append("INBOX", "Subject: n1\r\n\r\nx\r\n");
    let place = place(&system);
    system.command(&["backup", &place]);
    let objects = || names(&PathBuf::from(&place).join("objects"));
    let before = objects();
    let long = format!("Subject: long\r\n\r\n{}\r\n", "abc ".repeat(50_000));
    Imap::login(ports.imap, BOB, "secret").append("INBOX", &long);
    system.command(&["backup", &place]);
    let mut new = objects();
    new.retain(|object| !before.contains(object));
    damage(&new);

    let to = system.directory.path().join("salvaged");
    let whole = |more: &[&str]| {
        let mut restore = vere();
        restore.args(["restore", &place, "--to"]).arg(&to);
        output_of(restore.args(more), "")
    };
    let failed = whole(&[]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_has(&said, &["the object is damaged", "--number", "--salvage"]);
    let salvaged = whole(&["--salvage"]);
    assert_eq!(salvaged.status.code(), Some(3), "{salvaged:?}");
    let said = String::from_utf8_lossy(&salvaged.stdout).into_owned();
    assert_has(&said, &["restored into", "of the mail store, with mail"]);
    assert!(!to.join("restore-incomplete").exists());

    let mail = ["restore", &place, "--account", ALICE, "--salvage"];
    assert_has(&system.command(&mail), &["1 message"]);
    assert_eq!(numbers(&mut alice, "Restored"), [1].into());
    // The content is stored again, although the piece is the short end of a file and the file has grown since.
    alice.append("INBOX", "Subject: n2\r\n\r\nx\r\n");
    assert_has(
        &fails(&["backup", "verify", &place]),
        &["the object is damaged"],
    );
    system.command(&["backup", &place]);
    run(vere().args(["backup", "verify", "--number", "2", &place]));
}

/// The disk of the backups was not mounted, and the backup went to the disk below; another machine named the same place.
#[test]
fn a_backup_goes_to_no_place_but_its_own() {
    let (system, _) = start_with_store(Options::default());
    let place = place(&system);
    system.command(&["backup", &place]);
    let away = format!("{place}.away");
    fs::rename(&place, &away).expect("it");
    let said = system.refused(&["backup", &place]);
    assert_has(
        &said,
        &["expected backup 1", "found nothing", "--accept-place"],
    );
    assert!(!Path::new(&place).exists());
    fs::rename(&away, &place).expect("it");
    assert_has(&system.command(&["backup", &place]), &["backup 2 of "]);

    // Settings of another host, as of another machine with the same directory.
    let other = system.directory.path().join("other.toml");
    let text = fs::read_to_string(&system.config).expect("the settings");
    let text = text.replace("\"mx.example.org\"", "\"other.example.org\"");
    fs::write(&other, text).expect("it");
    let backup = |more: &[&str]| {
        let mut backup = vere();
        backup
            .args(["backup", &place])
            .args(more)
            .arg("-c")
            .arg(&other);
        backup
    };
    let said = fails_with(&mut backup(&[]), 1);
    assert_has(
        &said,
        &["this system is other.example.org", "--accept-place"],
    );
    assert_has(&run(&mut backup(&["--accept-place"])), &["backup 3 of "]);
    // A damaged description is made whole by the copy.
    let description = PathBuf::from(&place).join("vere-backup.json");
    fs::write(&description, "{").expect("it");
    assert_has(
        &run(vere().args(["backup", "list", &place])),
        &["other.example.org"],
    );
    run(&mut backup(&[]));
    assert!(fs::metadata(&description).expect("it").len() > 9);
    // A damaged list leaves the remaining backups usable, and the error names the way on.
    let list = PathBuf::from(&place).join("manifests/00000004");
    fs::write(&list, "{").expect("it");
    let listed = output_of(vere().args(["backup", "list", &place]), "");
    assert_eq!(listed.status.code(), Some(3));
    let prune = fails_with(vere().args(["backup", "prune", "--keep", "1", &place]), 1);
    assert_has(&prune, &["manifests/00000004", "Remove this file"]);
    let to = system.directory.path().join("to");
    let restore = fails_with(vere().args(["restore", &place, "--to"]).arg(&to), 1);
    assert_has(&restore, &["--number: 1, 2, 3"]);
}

/// The record of a restore counted for a single backup: the same restore from the next one brought all mail again.
#[test]
fn a_restore_from_a_newer_backup_brings_nothing_twice() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    for number in 1..=2 {
        alice.append("INBOX", &format!("Subject: n{number}\r\n\r\nx\r\n"));
    }
    let place = place(&system);
    let restore = |more: &[&str]| {
        let all = ["restore", place.as_str(), "--account", ALICE];
        system.command(&[&all[..], more].concat())
    };
    system.command(&["backup", &place]);
    assert_has(&restore(&[]), &["2 messages"]);
    system.command(&["backup", &place]);
    assert_has(&restore(&[]), &["0 messages", "2 were brought before"]);
    assert_eq!(numbers(&mut alice, "Restored"), [1, 2].into());
    assert!(!alice.ok("LIST \"\" *").contains("Restored/Restored"));

    alice.ok("SELECT INBOX");
    alice.ok("STORE 1:* +FLAGS (\\Deleted)");
    alice.ok("EXPUNGE");
    let only = ["--in-place", "--mailbox", "INBOX"];
    assert_has(&restore(&only), &["2 messages"]);
    // The newer backup has the restored messages under new UIDs.
    system.command(&["backup", &place]);
    assert_has(&restore(&only), &["0 messages", "2 were brought before"]);
    assert_eq!(alice.exists("INBOX"), 2);

    // A mailbox that the user has removed is filled again.
    alice.ok("DELETE Restored");
    assert_has(&restore(&["--mailbox", "INBOX"]), &["2 messages"]);
    assert_eq!(numbers(&mut alice, "Restored"), [1, 2].into());
}

/// A restore of mail held the lock of the place during the transfer, and left the unpacked store behind when a signal
/// ended it.
#[test]
fn a_restore_of_mail_frees_the_place_and_leaves_nothing_after_a_signal() {
    let (system, ports) = start_with_store(Options::default());
    Imap::login(ports.imap, ALICE, "secret").append("INBOX", "Subject: n1\r\n\r\nx\r\n");
    let place = place(&system);
    system.command(&["backup", &place]);
    let scratch = system.directory.path().join("scratch");
    fs::create_dir(&scratch).expect("it");
    // The transfer hangs.
    system.halt("store");
    let mut restore = vere();
    restore.args(["restore", &place, "--account", ALICE, "-c"]);
    restore.arg(&system.config).env("TMPDIR", &scratch);
    let mut restore = Child::spawn(quiet(&mut restore));
    let is_unpacked = || {
        names(&scratch)
            .iter()
            .any(|path| path.components().any(|part| part.as_os_str() == "meta"))
    };
    wait_until("an unpacked store", is_unpacked);
    run(vere().args(["backup", "prune", "--keep", "1", &place]));
    assert!(restore.ended().is_none());
    signal(restore.id(), Signal::SIGTERM);
    let mut status = None;
    wait_until("the end of the restore", || {
        status = restore.ended();
        status.is_some()
    });
    let status = status.expect("it");
    assert_eq!((status.code(), status.signal()), (Some(128 + 15), None));
    assert_eq!(fs::read_dir(&scratch).expect("it").count(), 0);
    system.go_on("store");
}

/// An S3 server in Python, with an empty bucket.
pub(crate) fn moto(address: SocketAddr) -> Option<Child> {
    let program = program("moto_server")?;
    let port = address.port().to_string();
    let mut server = Command::new(program);
    server.args(["-H", "127.0.0.1", "-p", &port]);
    let server = Child::spawn(quiet(&mut server));
    let url = format!("http://{address}/bucket");
    wait_until("a bucket", || {
        let mut make = Command::new("curl");
        make.args(["-s", "-f", "-X", "PUT", &url]);
        quiet(&mut make).status().expect("curl").success()
    });
    Some(server)
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address")
}

#[test]
fn a_bucket_is_a_place() {
    let address = free_port();
    let Some(_server) = moto(address) else {
        return;
    };
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append(
        "INBOX",
        &format!("Subject: n1\r\n\r\n{}\r\n", "abc ".repeat(9_000)),
    );
    let key = system.directory.path().join("backup.key");
    fs::write(&key, "0123456789abcdef").expect("room");
    let place = "s3://bucket/some/place";
    let command = |arguments: &[&str]| {
        let mut command = vere();
        command.args(arguments).arg("-c").arg(&system.config);
        command.arg("--key-file").arg(&key);
        command.env("AWS_ENDPOINT_URL", format!("http://{address}"));
        command
            .env("AWS_ACCESS_KEY_ID", "id")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    };
    let said = fails_with(&mut command(&["backup", "list", place]), 1);
    assert_has(&said, &["expected backups"]);
    assert_has(&run(&mut command(&["backup", place])), &["backup 1 of "]);
    alice.append("INBOX", "Subject: n2\r\n\r\nx\r\n");
    assert_has(&run(&mut command(&["backup", place])), &["backup 2 of "]);
    let said = run(&mut command(&["backup", "verify", place]));
    assert_has(
        &said,
        &["2 messages of 1 account checked", "nothing is wrong"],
    );
    let said = run(&mut command(&["backup", "prune", "--keep", "1", place]));
    assert_has(&said, &["1 backup and ", "1 backup remains"]);
    let data = system.directory.path().join("other");
    let to = data.display().to_string();
    assert_has(
        &run(&mut command(&["restore", place, "--to", &to])),
        &["restored into"],
    );
    assert_has(
        &run(&mut command(&["restore", place, "--account", ALICE])),
        &["2 messages"],
    );
    assert_eq!(numbers(&mut alice, "Restored"), [1, 2].into());
    let status = output_of(vere().args(["status", "-c"]).arg(&system.config), "");
    assert_has(
        &String::from_utf8_lossy(&status.stdout),
        &["number 2 in s3://bucket/some/place"],
    );
    let mut bare = vere();
    bare.args(["backup", "list", place])
        .env_remove("AWS_ACCESS_KEY_ID");
    assert_has(&fails_with(&mut bare, 1), &["expected AWS_ACCESS_KEY_ID"]);
}
