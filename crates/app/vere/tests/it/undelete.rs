//! Expunged messages and deleted mailboxes come back while everything runs, and go when their time is over.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Options, System, assert_has, in_soak, program, run, say, wait_for};
use crate::imap::{Imap, start_with_store, with_store};

const ALICE: &str = "alice@example.org";
/// `Größe und Maß` in the names of IMAP (RFC 3501 section 5.1.3).
const MEASURE: &str = "\"Gr&APYA3w-e und Ma&AN8-\"";

fn text(number: usize) -> String {
    format!(
        "From: Bob <bob@example.net>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= {number}\r\n\
         Message-ID: <{number}@example.net>\r\n\r\nbody {number}\r\n"
    )
}

/// Adds messages and expunges some of them.
fn fill(session: &mut Imap, mailbox: &str, count: usize, gone: &str) {
    for number in 1..=count {
        session.append(mailbox, &text(number));
    }
    session.ok(&format!("SELECT {mailbox}"));
    if !gone.is_empty() {
        session.ok(&format!("STORE {gone} +FLAGS (\\Deleted $Work)"));
        session.ok("EXPUNGE");
    }
}

fn expunged(system: &System, arguments: &[&str]) -> Vec<Value> {
    system.rows(&[&["mailbox", "expunged", ALICE], arguments].concat())
}

fn undelete(system: &System, arguments: &[&str]) -> String {
    system.command(&[&["mailbox", "undelete", ALICE], arguments].concat())
}

#[test]
fn expunged_messages_come_back_to_clients_that_are_connected() {
    let (mut system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    fill(&mut alice, "INBOX", 4, "1:3");
    let rows = expunged(&system, &["INBOX", "--since", "1h"]);
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&rows[0]["uid"], &rows[0]["mailbox"]),
        (&1.into(), &"INBOX".into())
    );
    assert_eq!(rows[0]["subject"], "Grüße 1");
    assert_eq!(rows[0]["from"], "bob@example.net");
    let said = system.command(&["mailbox", "expunged", ALICE, "--limit", "1"]);
    assert_has(&said, &["INBOX", "bob@example.net", "Grüße 1", "--skip 1"]);
    // No client sees it.
    assert!(!alice.ok("SEARCH ALL").contains("* SEARCH 1 2"));

    let pick = ["INBOX", "--uid", "1", "--message-id", "1@example.net"];
    let said = undelete(&system, &[&pick[..], &["--dry-run"]].concat());
    assert_has(&said, &["1 message", "would come back", "1 in INBOX"]);
    assert_eq!(expunged(&system, &[]).len(), 3);
    assert_has(
        &undelete(&system, &pick),
        &["1 message", "is back", "1 in INBOX"],
    );
    let said = alice.ok("NOOP");
    assert_has(&said, &["* 2 EXISTS"]);
    let said = alice.ok("FETCH 2 (UID FLAGS BODY.PEEK[HEADER.FIELDS (Message-ID)])");
    assert_has(&said, &["UID 5", "$Work", "<1@example.net>"]);
    assert!(!said.contains("\\Deleted"), "{said}");
    // The same again brings nothing.
    let (code, said) =
        system.failing_command(&[&["mailbox", "undelete", ALICE], &pick[..]].concat());
    assert_eq!(code, Some(3), "{said}");
    assert_eq!(alice.exists("INBOX"), 2);

    // What was brought back, and what is kept, is there after a crash.
    system.crash();
    assert_eq!(expunged(&system, &[]).len(), 2);
    assert_has(
        &undelete(&system, &["--all", "--to", "Back"]),
        &["2 in Back (created)"],
    );
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    assert_eq!((alice.exists("INBOX"), alice.exists("Back")), (2, 2));
    system.kill();
    let said = system.refused(&["mailbox", "undelete", ALICE, "--all"]);
    assert_has(&said, &["does not run", "vere serve"]);
    assert_has(&system.command(&["store", "check"]), &["nothing is wrong"]);
}

#[test]
fn a_deleted_mailbox_comes_back_whatever_its_name() {
    let Some(python) = program("python3") else {
        return;
    };
    let (mut system, ports) = start_with_store(Options::default());
    let script = "\
import imaplib, sys
host, port = sys.argv[1].rsplit(':', 1)
with imaplib.IMAP4(host, int(port)) as m:
    m.login('alice@example.org', 'secret')
    name = sys.argv[2]
    assert m.create(name)[0] == 'OK'
    for n in range(1, 21):
        m.append(name, None, None, b'Subject: %d\\r\\n\\r\\nbody\\r\\n' % n)
    assert m.select(name) == ('OK', [b'20'])
    m.store('1:5', '+FLAGS', '\\\\Deleted')
    assert len(m.expunge()[1]) == 5
    m.unselect()
    assert m.delete(name)[0] == 'OK'
";
    let address = ports.imap.to_string();
    run(Command::new(python).args(["-c", script, &address, MEASURE]));
    let said = system.command(&["mailbox", "list", ALICE]);
    assert_has(&said, &["INBOX", "Größe und Maß (deleted ", " 20\n"]);
    let said = system.command(&["mailbox", "show", ALICE, "Größe und Maß"]);
    assert_has(&said, &["ago", "expunged messages kept   20"]);
    assert_eq!(expunged(&system, &["Größe und Maß"]).len(), 20);
    system.crash();
    let said = undelete(&system, &["Größe und Maß", "--all"]);
    assert_has(&said, &["20 messages", "20 in Größe und Maß (created)"]);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    assert_eq!(alice.exists(MEASURE), 20);
    assert_eq!(expunged(&system, &[]), Vec::<Value>::new());
    let said = system.refused(&["mailbox", "expunged", ALICE, "Nowhere"]);
    assert_has(&said, &["no mailbox", "Nowhere"]);
    let said = system.refused(&["mailbox", "list", "nobody@example.org"]);
    assert_has(&said, &["no account"]);
    drop(alice);
    system.kill();
    assert_has(&system.command(&["store", "check"]), &["nothing is wrong"]);
}

#[test]
fn a_quota_holds_for_what_comes_back() {
    let (options, ports) = with_store(Options::default());
    let system = System::start(&options.set("quota.messages_max", "5"));
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    fill(&mut alice, "INBOX", 4, "1:4");
    fill(&mut alice, "INBOX", 3, "");
    let said = system.refused(&["mailbox", "undelete", ALICE, "--all"]);
    assert_has(&said, &["over quota", "4 messages", "leaves 2 messages"]);
    assert_eq!(alice.exists("INBOX"), 3);
    assert_has(
        &undelete(&system, &["INBOX", "--uid", "2,3"]),
        &["2 messages"],
    );
    assert_eq!(alice.exists("INBOX"), 5);
    assert_eq!(expunged(&system, &[]).len(), 2);
    let said = system.command(&["mailbox", "purge", ALICE, "--dry-run"]);
    assert_has(&said, &["2 messages", "could not be brought back any more"]);
    assert_eq!(expunged(&system, &[]).len(), 2);
    let said = system.command(&["mailbox", "purge", ALICE, "--yes"]);
    assert_has(&said, &["2 messages", "removed for good"]);
    assert_eq!(expunged(&system, &[]), Vec::<Value>::new());
}

#[test]
fn expunged_messages_go_when_their_time_is_over() {
    let (options, ports) = with_store(Options::default());
    let system = System::start(&options);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    fill(&mut alice, "INBOX", 3, "1:2");
    assert_eq!(expunged(&system, &[]).len(), 2);
    system.configure(&options.clone().set("store.keep_expunged", "\"1s\""));
    system.reload();
    wait_for("the end of a second", || {
        expunged(&system, &[]).is_empty().then_some(())
    });
    system.wait_log(&["old expunged messages let go"]);
    system.configure(&options.set("store.keep_expunged", "\"0s\""));
    system.reload();
    wait_for("settings by which nothing is kept", || {
        fill(&mut alice, "INBOX", 1, "1");
        expunged(&system, &[]).is_empty().then_some(())
    });
}

/// Time of an EXPUNGE of 2,000 messages: the least of three.
fn expunge_time(keep: &str) -> Duration {
    let (_system, ports) = start_with_store(Options::default().set("store.keep_expunged", keep));
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    let rounds = 0..3;
    let times = rounds.map(|round| {
        alice.ok(&format!("CREATE box{round}"));
        for number in 0..2_000 {
            alice.append(
                &format!("box{round}"),
                &format!("Subject: n{number}\r\n\r\nx\r\n"),
            );
        }
        alice.ok(&format!("SELECT box{round}"));
        alice.ok("STORE 1:* +FLAGS.SILENT (\\Deleted)");
        let began = Instant::now();
        alice.ok("EXPUNGE");
        began.elapsed()
    });
    times.min().expect("a time")
}

/// Expunged messages that are kept cost a reference each: prints the times with and without.
#[test]
fn an_expunge_of_kept_messages_takes_little_longer() {
    if !in_soak() {
        return;
    }
    let (kept, gone) = (expunge_time("\"7d\""), expunge_time("\"0s\""));
    say(&format!(
        "EXPUNGE of 2,000 messages: {kept:?} with store.keep_expunged = 7d, {gone:?} with 0s"
    ));
    assert!(kept < gone * 3, "{kept:?} beside {gone:?}");
}
