//! Damaged octets of the mail store: the client gets an error, and never takes a damaged message for a removed
//! message.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::backup_repair::{NOBODY, owners};
use crate::harness::{Options, System, assert_has, output_of, run, skip, test_name, vere};
use crate::imap::{Imap, Ports, start_with_store};
use crate::store_accounts::uid_validity;

pub(crate) const MARK: &str = "kept as it came";

/// Flips an octet of the text in the store's log.
pub(crate) fn damage(data: &Path) {
    let log = data.join("store/log");
    for entry in fs::read_dir(&log).expect("the log") {
        let path = entry.expect("a segment").path();
        let mut octets = fs::read(&path).expect("a segment");
        let found = octets
            .windows(MARK.len())
            .position(|at| at == MARK.as_bytes());
        if let Some(at) = found {
            octets[at] ^= 1;
            return fs::write(&path, octets).expect("a segment");
        }
    }
    panic!("no segment has the text");
}

#[test]
fn a_damaged_message_is_told_and_can_be_put_back() {
    let (mut system, ports) = start_with_store(Options::default());
    let message = format!("Subject: one\r\n\r\n{MARK}\r\n");
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    alice.append("INBOX", &message);
    alice.append("INBOX", "Subject: two\r\n\r\nwhole\r\n");
    drop(alice);
    system.end();
    damage(&system.directory.path().join("data"));
    assert_eq!(system.failing_command(&["store", "check"]).0, Some(3));

    system.start_again();
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    alice.ok("SELECT INBOX");
    let said = alice.command("FETCH 1:2 BODY.PEEK[]");
    assert!(said.contains("NO [CORRUPTION]"), "{said}");
    assert!(
        said.contains("whole") && !said.contains("* 1 FETCH"),
        "{said}"
    );
    // The undamaged mail can be exported.
    let rescued = system.directory.path().join("rescued");
    let mut export = vere();
    export.args(["export", "-a", "alice@example.org", "-c"]);
    export.arg(&system.config);
    export.arg(format!("mbox:{}", rescued.display()));
    let output = output_of(&mut export, "");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("is damaged where it is"), "{said}");
    let kept = fs::read_to_string(rescued.join("INBOX.mbox")).expect("the rest");
    assert!(kept.contains("whole"), "{kept}");
    // A new copy of the message is not stored as a reference to the damaged copy.
    alice.append("INBOX", &message);
    assert!(alice.body(3).contains(MARK));
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .args(["-a", "-T"])
        .args([from, to])
        .status();
    assert!(copied.expect("cp runs").success());
}

fn put_back(copy_of: &Path, to: &Path) {
    fs::remove_dir_all(to).expect("what was there goes");
    copy(copy_of, to);
}

/// Starts the system, has alice add a message, and stops it; gives the UIDVALIDITY and how many messages there are.
fn run_once(system: &mut System, ports: &Ports) -> (u32, usize) {
    system.start_again();
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    let validity = uid_validity(&mut alice);
    alice.append("INBOX", "Subject: another\r\n\r\ntext\r\n");
    let count = alice.exists("INBOX");
    drop(alice);
    system.end();
    (validity, count)
}

/// Messages added after a backup have UIDs that are given again once the backup was restored.
#[test]
fn a_restored_copy_gives_no_uid_twice() {
    // Each mailbox takes a UIDVALIDITY of the clock's: those of six would be in use for seconds.
    let one = Options::default().table("[store]\nmailboxes = []\n");
    let (mut system, ports) = start_with_store(one);
    system.wait_ready();
    system.end();
    let (first, _) = run_once(&mut system, &ports);
    let data = system.directory.path().join("data");
    let (store, backup) = (data.join("store"), system.directory.path().join("backup"));
    copy(&store, &backup);
    assert_eq!(run_once(&mut system, &ports), (first, 2));
    // The whole store, which is noticed.
    put_back(&backup, &store);
    let (second, count) = run_once(&mut system, &ports);
    assert!(second > first && count == 2, "{second} {count}");
    assert_eq!(run_once(&mut system, &ports), (second, 3));
    // The log alone, beside metadata of a later state: the restore must be announced.
    put_back(&backup.join("log"), &store.join("log"));
    let (code, said) = system.failing_command(&["store", "stats"]);
    assert!(
        code == Some(1) && said.contains("`vere store restored`"),
        "{said}"
    );
    let said = system.command(&["store", "restored"]);
    assert_has(&said, &["every mailbox has a new UIDVALIDITY"]);
    let (third, count) = run_once(&mut system, &ports);
    assert!(third > second && count == 2, "{third} {count}");
}

/// Each command that opens the store of a stopped system left files of root, so that the system of user `vere` did not
/// start any more.
#[test]
fn maintenance_by_root_leaves_no_file_of_root() {
    if !nix::unistd::geteuid().is_root() {
        skip(&test_name(), "not root");
        return;
    }
    let (mut system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    alice.append("INBOX", "Subject: one\r\n\r\nx\r\n");
    drop(alice);
    system.end();
    let folder = system.directory.path();
    fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("it");
    let data = folder.join("data");
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(&data));
    for words in [
        &["store", "check"][..],
        &["store", "stats"],
        &["store", "accounts"],
        &["store", "explain", "alice@example.org", "INBOX", "TEXT x"],
        &["store", "compact", "--dead-min", "0"],
        &["store", "repair"],
        &["store", "restored"],
    ] {
        // Files that a store makes anew when it opens.
        for name in ["store/lock", "store/meta", "store.mark"] {
            let path = data.join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        system.command(words);
        assert_eq!(owners(&data), [NOBODY].into(), "{words:?}");
        assert!(data.join("store/lock").exists(), "{words:?}");
    }
}
