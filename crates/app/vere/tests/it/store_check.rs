//! `vere store check` and `stats` while the system runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::harness::{Options, assert_has, output_of, vere};
use crate::imap::{Imap, start_with_store};
use crate::store_damage::{MARK, damage};

const ALICE: &str = "alice@example.org";

/// Ends the clients when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_store_is_checked_while_clients_change_it() {
    let (mut system, ports) = start_with_store(Options::default());
    let over = AtomicBool::new(false);
    let checks: Vec<Value> = thread::scope(|scope| {
        for client in 0..3 {
            let (over, imap) = (&over, ports.imap);
            scope.spawn(move || {
                let mut session = Imap::login(imap, ALICE, "secret");
                let name = format!("Box{client}");
                for round in 0.. {
                    session.ok(&format!("CREATE {name}"));
                    for number in 0..5 {
                        let text = format!(
                            "Subject: {round} {number}\r\n\r\n{}\r\n",
                            "text ".repeat(500)
                        );
                        session.append(&name, &text);
                    }
                    session.ok(&format!("SELECT {name}"));
                    session.ok("COPY 1:2 INBOX");
                    session.ok("STORE 1:3 +FLAGS (\\Deleted)");
                    session.ok("EXPUNGE");
                    session.ok("UNSELECT");
                    session.ok(&format!("DELETE {name}"));
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        // The clients end also when a check fails.
        let _over = Over(&over);
        (0..8).map(|_| system.json(&["store", "check"])).collect()
    });
    for check in &checks {
        assert_eq!(check["findings"], Value::Array(Vec::new()), "{check}");
    }
    let counted = |check: &Value| check["messages"].as_u64();
    assert!(counted(&checks[0]) < counted(&checks[7]), "{checks:?}");
    let running = system.json(&["store", "stats"]);
    assert!(running["reclaimable_octets"].is_u64(), "{running}");
    system.end();
    let resting = system.json(&["store", "check"]);
    for field in [
        "accounts",
        "mailboxes",
        "messages",
        "logical_octets",
        "kept_messages",
        "bodies",
    ] {
        assert_eq!(running[field], resting[field], "{field}");
    }
}

#[test]
fn damage_is_found_while_the_system_runs() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append("INBOX", &format!("Subject: one\r\n\r\n{MARK}\r\n"));
    alice.append("INBOX", "Subject: two\r\n\r\nwhole\r\n");
    assert_has(&system.command(&["store", "check"]), &["nothing is wrong"]);
    damage(&system.directory.path().join("data"));
    let output = output_of(
        vere().args(["store", "check", "-c"]).arg(&system.config),
        "",
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_has(&said, &["message 1: ", "octets of the log"]);
    assert!(!said.contains("message 2"), "{said}");
    // The store goes on.
    alice.append("INBOX", "Subject: three\r\n\r\nwhole\r\n");
    assert_eq!(alice.exists("INBOX"), 3);
}

#[test]
fn one_check_or_backup_reads_at_a_time() {
    let (system, _ports) = start_with_store(Options::default());
    let socket = system.directory.path().join("data/store.sock");
    let mut stream = UnixStream::connect(socket).expect("the store");
    stream
        .write_all(b"{\"command\":\"hold_log\"}\n")
        .expect("a request");
    let mut held = String::new();
    let mut lines = BufReader::new(stream.try_clone().expect("a socket"));
    lines.read_line(&mut held).expect("an answer");
    let (code, said) = system.failing_command(&["store", "check"]);
    assert_eq!(code, Some(1), "{said}");
    assert_has(&said, &["another backup, or a check, reads the mail store"]);
    drop((stream, lines));
    system.command(&["store", "check"]);
}
