//! Mail of accounts that were removed: it stays, is listed, and goes when that is said.

use serde_json::Value;

use crate::harness::{Options, System};
use crate::imap::{Imap, with_store};

const ALICE: &str = "alice@example.org";
const BOB: &str = "bob@example.org";

/// An account as `vere store accounts --json` prints it.
fn listed(system: &System, name: &str) -> Option<Value> {
    let text = system.command(&["store", "accounts", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    rows.into_iter().find(|row| row["account"] == name)
}

/// The UIDVALIDITY of INBOX.
fn uid_validity(session: &mut Imap) -> u32 {
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
    let (options, ports) = with_store(Options::default());
    let mut system = System::start(&options);
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
    assert!(
        said.contains("vere account del alice@example.org"),
        "{said}"
    );
    let said = system.command(&["account", "del", ALICE]);
    assert!(
        said.contains("2 messages") && said.contains("vere store remove-account"),
        "{said}"
    );
    assert_eq!(listed(&system, ALICE).expect("alice")["known"], false);
    let said = system.command(&["store", "accounts"]);
    assert!(said.contains("(not in the directory)"), "{said}");

    // The next of that name has it, and hears of that.
    let said = add(&system, ALICE);
    assert!(said.contains("2 messages"), "{said}");
    system.command(&["account", "del", ALICE]);
    let (_, said) = system.failing_command(&remove[..3]);
    assert!(
        said.contains("2 messages (22 B) in 2 mailboxes") && said.contains("add --yes"),
        "{said}"
    );
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
    let (options, ports) = with_store(Options::default());
    let mut system = System::start(&options);
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
    assert!(said.contains("1 message (11 B) in 1 mailbox"), "{said}");
    assert_eq!(listed(&system, BOB), None);
    assert_eq!(listed(&system, ALICE).expect("alice")["messages"], 1);
    let said = system.command(&["store", "check"]);
    assert!(said.contains("nothing is wrong"), "{said}");
}
