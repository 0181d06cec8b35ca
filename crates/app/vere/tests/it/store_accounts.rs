//! Mail of removed accounts: the mail remains, is listed, and is removed on request.

use std::net::SocketAddr;

use serde_json::Value;

use crate::harness::{Options, System, assert_has};
use crate::imap::{Imap, start_with_store, wait_messages, with_store};

const ALICE: &str = "alice@example.org";
const BOB: &str = "bob@example.org";

/// An account as `vere store accounts --json` prints the account.
fn listed(system: &System, name: &str) -> Option<Value> {
    let mut rows = system.rows(&["store", "accounts"]).into_iter();
    rows.find(|row| row["account"] == name)
}

/// The UIDVALIDITY of INBOX.
pub(crate) fn uid_validity(session: &mut Imap) -> u32 {
    let said = session.ok("STATUS INBOX (UIDVALIDITY)");
    let number = said.split("UIDVALIDITY ").nth(1);
    let number = number.and_then(|rest| rest.split(')').next());
    number.and_then(|number| number.parse().ok()).expect("it")
}

fn add(system: &System, name: &str) -> String {
    system.command(&["account", "add", name, "--generate"])
}

#[test]
fn mail_of_a_removed_account_goes_when_that_is_said() {
    let (mut system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.ok("CREATE Old");
    alice.append("INBOX", "a: b\r\n\r\nc\r\n");
    alice.append("Old", "a: b\r\n\r\nd\r\n");
    let before = uid_validity(&mut alice);
    drop(alice);
    let row = listed(&system, ALICE).expect("alice");
    assert_eq!((&row["messages"], &row["octets"]), (&2.into(), &22.into()));
    assert_eq!(row["known"], true);

    let remove = ["store", "remove-account", ALICE, "--yes"];
    let (_, said) = system.failing_command(&remove);
    assert_has(&said, &["vere account del alice@example.org"]);
    let said = system.command(&["account", "del", ALICE]);
    assert_has(&said, &["2 messages", "vere store remove-account"]);
    assert_eq!(listed(&system, ALICE).expect("alice")["known"], false);
    let said = system.command(&["store", "accounts"]);
    assert!(said.contains("(not in the directory)"), "{said}");
    let said = system.command(&["store", "remove-account", ALICE, "--dry-run"]);
    assert_has(&said, &["2 messages", "would be removed"]);

    // The next account of the name inherits the mail only on request.
    let (code, said) = system.failing_command(&["account", "add", ALICE, "--generate"]);
    assert!(
        code == Some(1) && said.contains("2 messages") && said.contains("--inherit"),
        "{said}"
    );
    let said = system.command(&["account", "add", ALICE, "--generate", "--inherit"]);
    assert!(said.contains("2 messages"), "{said}");
    system.command(&["account", "del", ALICE]);
    let (_, said) = system.failing_command(&remove[..3]);
    assert_has(&said, &["2 messages (22 B) in 7 mailboxes", "add --yes"]);
    assert_eq!(listed(&system, ALICE).expect("alice")["messages"], 2);
    let said = system.command(&remove);
    assert!(said.contains("2 messages"), "{said}");
    system.crash();

    assert_eq!(listed(&system, ALICE), None);
    system.wait_log(&["all mail of an account removed", ALICE, "operator"]);
    let said = add(&system, "carol@example.org");
    assert!(!said.contains("already"), "{said}");
    system.add_account(ALICE);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    assert_eq!(alice.exists("INBOX"), 0);
    let names = alice.ok("LIST \"\" *");
    assert!(!names.contains("Old"), "{names}");
    assert!(uid_validity(&mut alice) > before);
}

#[test]
fn mail_of_a_removed_account_goes_while_the_system_is_stopped() {
    let (mut system, ports) = start_with_store(Options::default());
    for name in [ALICE, BOB] {
        let mut session = Imap::login(ports.imap, name, "secret");
        session.append("INBOX", "a: b\r\n\r\nc\r\n");
    }
    system.end();
    let remove = ["store", "remove-account", BOB, "--yes"];
    let (_, said) = system.failing_command(&remove);
    assert!(said.contains("the directory knows"), "{said}");
    let said = system.command(&["account", "del", BOB]);
    assert!(said.contains("vere store remove-account"), "{said}");
    assert_eq!(listed(&system, BOB).expect("bob")["known"], false);
    let said = system.command(&remove);
    assert!(said.contains("1 message (11 B) in 6 mailboxes"), "{said}");
    assert_eq!(listed(&system, BOB), None);
    assert_eq!(listed(&system, ALICE).expect("alice")["messages"], 1);
    let said = system.command(&["store", "check"]);
    assert!(said.contains("nothing is wrong"), "{said}");
    // An account created while the store is stopped does not inherit the mail of a removed account either.
    system.command(&["account", "del", ALICE]);
    let (_, said) = system.failing_command(&["account", "add", ALICE, "--generate"]);
    assert!(said.contains("1 message (11 B)"), "{said}");
}

#[test]
fn an_account_is_removed_with_its_mail() {
    let (mut system, ports) = start_with_store(Options::default());
    for name in [ALICE, BOB] {
        let mut session = Imap::login(ports.imap, name, "secret");
        session.append("INBOX", "a: b\r\n\r\nc\r\n");
    }
    // No person can be asked.
    let (_, said) = system.failing_command(&["account", "del", ALICE, "--purge"]);
    assert_has(&said, &["1 message (11 B) in 6 mailboxes would be removed"]);
    assert_eq!(listed(&system, ALICE).expect("alice")["known"], true);
    let said = system.command(&["account", "del", ALICE, "--purge", "--dry-run"]);
    assert_has(
        &said,
        &[
            "alice@example.org would be removed",
            "1 message (11 B) in 6 mailboxes would be removed",
        ],
    );
    let said = system.command(&["account", "del", ALICE, "--dry-run"]);
    assert_has(&said, &["6 mailboxes would stay"]);
    assert_eq!(listed(&system, ALICE).expect("alice")["known"], true);
    let said = system.command(&["account", "del", ALICE, "--purge", "--yes"]);
    assert_has(&said, &["removed alice", "1 message"]);
    assert_eq!(listed(&system, ALICE), None);
    add(&system, ALICE);
    system.end();
    let said = system.json(&["account", "del", BOB, "--purge", "--yes"]);
    assert_eq!(said["purged"], true);
    add(&system, BOB);
    assert_eq!(listed(&system, BOB), None);
}

/// The system, with its directory in both kinds of store in turn.
fn with_each_directory(test: impl Fn(&System, SocketAddr)) {
    for store in ["file:{data}/users.toml", "sqlite:{data}/users.db"] {
        let options = Options::default().set("directory.store", &format!("\"{store}\""));
        let (system, ports) = start_with_store(options);
        system.command(&["domain", "add", "example.org"]);
        for name in [ALICE, BOB] {
            system.add_account(name);
        }
        test(&system, ports.imap);
    }
}

/// Sessions outlived their account, and a session that created a mailbox restored the account in the store.
#[test]
fn sessions_of_a_removed_account_end() {
    with_each_directory(|system, imap| {
        let mut idle = Imap::login(imap, ALICE, "secret");
        idle.ok("SELECT INBOX");
        idle.send("i IDLE\r\n");
        let mut half = Imap::login(imap, ALICE, "secret");
        half.send("a APPEND INBOX {1000}\r\n");
        let mut busy = Imap::login(imap, ALICE, "secret");
        let mut bob = Imap::login(imap, BOB, "secret");
        system.command(&["account", "del", ALICE]);
        system.command(&["store", "remove-account", ALICE, "--yes"]);
        let mut made = 0;
        let said = loop {
            busy.send(&format!("b CREATE New{made}\r\nb SUBSCRIBE New{made}\r\n"));
            made += 1;
            match busy.said("b ") {
                said if said.contains("* BYE ") => break said,
                said => assert!(!said.contains("b OK"), "{said}"),
            }
        };
        // The mailbox may be gone first.
        assert!(idle.said("i ").contains("* BYE "));
        for said in [said, half.said("a ")] {
            let (_, end) = said.split_once("* BYE ").expect("BYE");
            assert_eq!(end, "[CONTACTADMIN] the account was removed\r\n");
        }
        bob.ok("CREATE New");
        assert_eq!(listed(system, ALICE), None);
    });
}

/// Sessions with the old password end.
#[test]
fn sessions_end_with_their_password() {
    with_each_directory(|system, imap| {
        let mut alice = Imap::login(imap, ALICE, "secret");
        let mut bob = Imap::login(imap, BOB, "secret");
        bob.ok("SELECT INBOX");
        let said = system.json(&["account", "passwd", ALICE, "--generate"]);
        alice.send("i IDLE\r\n");
        let said_by_alice = alice.said("i ");
        assert!(
            said_by_alice.ends_with("* BYE [EXPIRED] the password was changed, log in again\r\n")
        );
        let password = said["password"].as_str().expect("a password");
        Imap::login(imap, ALICE, password).ok("SELECT INBOX");
        bob.ok("NOOP");
    });
}

/// Clients look for special uses before creating mailboxes.
#[test]
fn new_accounts_have_the_mailboxes_that_the_settings_name() {
    let (options, ports) = with_store(Options::default());
    let system = System::start(&options);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    let said = alice.ok("LIST (SPECIAL-USE) \"\" * RETURN (SUBSCRIBED)");
    for name in ["Archive", "Drafts", "Junk", "Sent", "Trash"] {
        let line = format!("* LIST (\\Subscribed \\HasNoChildren \\{name}) \"/\" \"{name}\"");
        assert!(said.contains(&line), "{said}");
    }
    // Mail before the first login creates the mailboxes as well.
    system.submit("x@example.net", &[BOB], "Subject: x\r\n\r\nx");
    system.wait_empty();
    let mut bob = Imap::login(ports.imap, BOB, "secret");
    assert_eq!(bob.exists("INBOX"), 1);
    assert_eq!(bob.exists("Sent"), 0);

    let own = "[store]\nmailboxes = [\"Entw\u{fc}rfe=Drafts\", \"Lists/2026\"]\n";
    let (_system, ports) = start_with_store(Options::default().table(own));
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    let said = alice.ok("LIST \"\" * RETURN (SPECIAL-USE)");
    let names: Vec<_> = said.lines().filter(|line| line.starts_with("* ")).collect();
    assert!(
        names.len() == 4 && names[0].contains("\\Drafts) \"/\" \"Entw&APw-rfe\""),
        "{said}"
    );
}

#[test]
fn an_account_is_renamed_with_its_mail() {
    const EVE: &str = "eve@example.org";
    let (mut system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append("INBOX", "Subject: one\r\n\r\nhello\r\n");
    alice.ok("CREATE Old");
    alice.append("Old", "Subject: two\r\n\r\nhello\r\n");
    let validity = uid_validity(&mut alice);
    drop(alice);
    system.command(&["alias", "add", "sales@example.org", ALICE]);
    let would = system.command(&["account", "rename", ALICE, EVE, "--dry-run"]);
    assert_has(
        &would,
        &[
            "would be eve@example.org now",
            "2 messages",
            "alias sales@example.org would be led",
        ],
    );
    let said = system.refused(&["account", "rename", ALICE, BOB]);
    assert_has(&said, &["bob@example.org exists already"]);
    let done = system.json(&["account", "rename", ALICE, EVE]);
    assert_eq!(done["aliases"][0], "sales@example.org", "{done}");
    let mut eve = Imap::login(ports.imap, EVE, "secret");
    assert_eq!((eve.exists("INBOX"), eve.exists("Old")), (1, 1));
    assert_eq!(uid_validity(&mut eve), validity);
    let said = Imap::connect(ports.imap).command(&format!("LOGIN {ALICE} secret"));
    assert!(said.contains(" NO "), "{said}");
    let text = "Subject: three\r\n\r\nhello\r\n";
    system.submit("me@example.net", &[ALICE], text);
    wait_messages(&ports, EVE, "INBOX", 2);
    assert_eq!(
        system.json(&["store", "check"])["findings"],
        serde_json::json!([])
    );
    // The same command, repeated and after a restart, changes nothing more.
    system.command(&["account", "rename", ALICE, EVE]);
    system.kill();
    system.command(&["account", "rename", ALICE, EVE, "--no-alias"]);
    assert_eq!(listed(&system, EVE).expect("eve")["messages"], 3);
    assert_eq!(listed(&system, ALICE), None);
    assert_eq!(system.failing_command(&["resolve", ALICE]).0, Some(4));
    let led = system.json(&["alias", "list"]);
    assert_eq!(led[0]["targets"][0], EVE, "{led}");
}
