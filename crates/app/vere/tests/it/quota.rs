//! Accounts with a quota.

use std::fs;
use std::net::SocketAddr;

use crate::harness::{Options, Session, System, assert_has, wait_until};
use crate::imap::{Imap, start_with_store, with_store};

const ALICE: &str = "alice@example.org";
const BOB: &str = "bob@example.org";

/// Hands over a short message for alice and bob, and gives what is said of each.
fn file(lmtp: SocketAddr) -> [String; 2] {
    file_text(lmtp, "text\r\n")
}

fn file_text(lmtp: SocketAddr, text: &str) -> [String; 2] {
    let mut session = Session::lmtp(lmtp);
    session.envelope("", &[ALICE, BOB]);
    session.send(format!("Subject: x\r\n\r\n{text}.\r\n").as_bytes());
    [session.reply(), session.reply()]
}

fn options() -> (Options, crate::imap::Ports) {
    let (options, ports) = with_store(Options::default().set("quota.size_max", "\"20KiB\""));
    let alice = format!("[[quota.account]]\nname = \"{ALICE}\"\nmessages_max = 3\n");
    (options.table(&alice), ports)
}

/// The store followed an alias of an account's name that the gateway had followed already: the full mailbox of a
/// member refused the mail of another member, and a retry filed the mail twice.
#[test]
fn a_full_member_of_an_alias_holds_up_nobody_else() {
    let (options, ports) = options();
    let system = System::start(&options);
    system.command(&["alias", "add", BOB, BOB, ALICE]);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    let mut bob = Imap::login(ports.imap, BOB, "secret");
    for _ in 0..2 {
        alice.append("INBOX", "a: b\r\n\r\nc\r\n");
    }
    let count = |imap: &mut Imap, messages: usize| {
        let said = imap.ok("STATUS INBOX (MESSAGES)");
        assert!(said.contains(&format!("(MESSAGES {messages})")), "{said}");
    };
    // Both have room: one copy for each, though bob's address is an alias of both.
    for said in file(ports.lmtp) {
        assert!(said.starts_with("250 "), "{said}");
    }
    count(&mut alice, 3);
    count(&mut bob, 1);
    let [to_alice, to_bob] = file(ports.lmtp);
    assert!(to_alice.starts_with("452 4.2.2 "), "{to_alice}");
    assert!(to_bob.starts_with("250 "), "{to_bob}");
    count(&mut alice, 3);
    count(&mut bob, 2);
}

#[test]
fn a_message_larger_than_the_whole_quota_is_refused_for_good() {
    let (options, ports) = options();
    let _system = System::start(&options);
    for said in file_text(ports.lmtp, &"0123456789\r\n".repeat(3_000)) {
        assert!(said.starts_with("552 5.2.3 "), "{said}");
    }
    for said in file(ports.lmtp) {
        assert!(said.starts_with("250 "), "{said}");
    }
}

#[test]
fn a_full_account_takes_nothing_more_and_can_be_tidied_up() {
    let (options, ports) = options();
    let system = System::start(&options);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.ok("CREATE Other");
    for _ in 0..3 {
        alice.append("INBOX", "a: b\r\n\r\nc\r\n");
    }
    let said = alice.ok("GETQUOTAROOT INBOX");
    assert_has(&said, &["* QUOTA \"\" (STORAGE 1 20 MESSAGE 3 3)"]);
    alice.ok("SELECT INBOX");
    for command in ["APPEND INBOX {4+}\r\na: b", "COPY 1 Other"] {
        let said = alice.command(command);
        assert!(said.contains(" NO [OVERQUOTA] "), "{said}");
    }
    // A move needs no more space than before.
    alice.ok("MOVE 1 Other");
    let [to_alice, to_bob] = file(ports.lmtp);
    assert!(to_alice.starts_with("452 4.2.2 "), "{to_alice}");
    assert!(to_bob.starts_with("250 "), "{to_bob}");
    alice.ok("STORE 1 +FLAGS.SILENT (\\Deleted)");
    alice.ok("EXPUNGE");
    let [to_alice, _] = file(ports.lmtp);
    assert!(to_alice.starts_with("250 "), "{to_alice}");
    // Bob has the limit of all.
    let mut bob = Imap::login(ports.imap, BOB, "secret");
    let large = "x".repeat(15_000);
    bob.append("INBOX", &large);
    let said = bob.command(&format!("APPEND INBOX {{15000+}}\r\n{large}"));
    assert!(said.contains(" NO [OVERQUOTA] "), "{said}");
    // Another setting holds for sessions under way.
    let rejecting = options
        .set("quota.over", "\"reject\"")
        .set("quota.size_max", "\"1MiB\"");
    system.reconfigure(&rejecting);
    wait_until("another limit", || {
        let said = bob.ok("GETQUOTA \"\"");
        said.contains(" 1024 MESSAGE ")
    });
    bob.append("INBOX", &large);
    let [to_alice, to_bob] = file(ports.lmtp);
    assert!(to_alice.starts_with("552 5.2.2 "), "{to_alice}");
    assert!(to_bob.starts_with("250 "), "{to_bob}");
    let log = std::fs::read_to_string(system.directory.path().join("log")).expect("the log");
    let warnings = log
        .lines()
        .filter(|line| line.contains("account is near its quota"));
    assert_eq!(
        warnings.filter(|line| line.contains(ALICE)).count(),
        2,
        "{log}"
    );
}

#[test]
fn a_quota_is_set_by_a_command_and_holds_at_once() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append("INBOX", "Subject: one\r\n\r\nhello\r\n");
    let before = fs::read_to_string(&system.config).expect("the settings");
    let would = system.command(&["account", "quota", ALICE, "--messages", "1", "--dry-run"]);
    assert_has(&would, &["would change", "+ messages_max = 1"]);
    assert_eq!(fs::read_to_string(&system.config).expect("it"), before);
    let set = system.json(&["account", "quota", ALICE, "--messages", "1"]);
    assert_eq!(
        (&set["changed"], &set["in_force"]),
        (&true.into(), &true.into()),
        "{set}"
    );
    let message = "APPEND INBOX {20+}\r\nSubject: two\r\n\r\nhi\r\n";
    wait_until("the quota", || {
        alice.command(message).contains("[OVERQUOTA]")
    });
    let shown = system.command(&["account", "quota", ALICE]);
    assert_has(&shown, &["1 message", "used"]);
    let back = system.json(&["account", "quota", ALICE, "--default"]);
    assert_eq!(back["changed"], true, "{back}");
    wait_until("no quota", || alice.command(message).contains(" OK "));
    let said = system.refused(&["account", "quota", "nobody@example.org"]);
    assert_has(&said, &["there is no account"]);
}
