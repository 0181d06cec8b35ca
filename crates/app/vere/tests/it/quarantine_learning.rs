//! Senders that a release from the quarantine teaches: for the recipients of the message, and only while proven.

use crate::harness::{System, assert_has, free_address, wait_until};
use crate::judging::{id_of, message, send};
use crate::metrics;
use crate::quarantine::{count, keeping, listed};

/// Keeps aside whatever comes from clients that SPF allows.
pub(crate) const WEIGHTS: &str = "[judging.weights]\nSPF_PASS = 6\n";
pub(crate) const ALICE: &str = "alice@example.org";
const BOB: &str = "bob@example.org";

/// Sends a message of a proven author; gives its id.
pub(crate) fn news(system: &System, to: &[&str]) -> String {
    let reply = send(system, "a@good.test", to, &message("News@good.test"));
    assert!(reply.starts_with("250"), "{reply}");
    id_of(&reply)
}

#[test]
fn a_release_teaches_a_proven_sender_for_its_recipient_alone() {
    let endpoint = free_address();
    let options = keeping(WEIGHTS).set("metrics.listen", &format!("\"{endpoint}\""));
    let mut system = System::start(&options);
    let id = news(&system, &[ALICE]);
    assert_eq!(count(&system), 1);
    let said = system.command(&["quarantine", "release", &id, "--learn"]);
    assert_eq!(said, "1 message released; 1 sender learned\n");
    let released = &system.wait_mail("alice", 1)[0];
    assert!(!released.contains("X-Spam-Author"), "{released}");
    system.wait_log(&["sender learned by a release", "News@good.test"]);
    metrics::wait_lines(endpoint, &["vere_gateway_learned_senders 1"]);
    system.crash();
    system.restart();
    let rows = system.rows(&["quarantine", "senders", "list"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (&rows[0]["sender"], &rows[0]["recipient"]),
        (&"news@good.test".into(), &ALICE.into())
    );
    // Bob has released no message: his copy waits. Alice's copy has the rule in the fields and in the trace.
    let id = news(&system, &[BOB, ALICE]);
    let mail = system.wait_mail("alice", 2);
    let learned = mail.iter().find(|text| text.contains("ALLOWED_LEARNED"));
    assert_has(learned.expect("the rule"), &["X-Spam-Status: No, score=-4"]);
    assert_eq!(listed(&system, &[])[0]["recipients"][0], BOB);
    wait_until("the event", || {
        let explained = system.command(&["explain", &id]);
        explained.contains("ALLOWED_LEARNED=-10.0") && explained.contains("-10.0  ALLOWED_LEARNED")
    });
    // A tag is of the same account; an alias needs all behind it.
    news(&system, &["alice+lists@example.org"]);
    system.wait_mail("alice", 3);
    system.command(&["alias", "add", "team@example.org", ALICE, BOB]);
    news(&system, &["team@example.org"]);
    assert_eq!(count(&system), 2);
    let said = system.command(&["quarantine", "senders", "remove", "good.test"]);
    assert_eq!(said, "1 entry removed\n");
    let (code, said) = system.failing_command(&["quarantine", "senders", "remove", "good.test"]);
    assert!(code == Some(1) && said.contains("found none"), "{said}");
    news(&system, &[ALICE]);
    assert_eq!((count(&system), system.mail("alice").len()), (3, 3));
    metrics::wait_lines(endpoint, &["vere_gateway_learned_senders 0"]);
}

#[test]
fn nobody_gains_by_the_name_of_a_learned_sender() {
    let system = System::start(&keeping(WEIGHTS));
    let id = news(&system, &[ALICE]);
    system.command(&["quarantine", "release", &id, "--learn"]);
    system.wait_mail("alice", 1);
    let forged = message("news@good.test");
    let strange = format!("X-Spam-Author: news@good.test\r\n{forged}");
    for text in [&forged, &strange] {
        let reply = send(&system, "a@forged.test", &[ALICE], text);
        assert!(reply.starts_with("250"), "{reply}");
    }
    assert_eq!(count(&system), 2);
    let id = listed(&system, &[])[1]["id"].as_str().map(str::to_owned);
    let id = id.expect("an id");
    let shown = system.command(&["quarantine", "show", &id]);
    assert!(
        shown.contains("DMARC_REJECT") && !shown.contains("ALLOWED_LEARNED"),
        "{shown}"
    );
    let (code, said) = system.failing_command(&["quarantine", "release", &id, "--learn"]);
    assert_eq!(code, Some(1), "{said}");
    assert_has(
        &said,
        &[
            "1 message released, 0 messages learned; expected a [[filter]] with learn_address",
            "0 senders learned; a sender not learned: expected one author in a domain that DMARC",
        ],
    );
    assert_eq!(system.rows(&["quarantine", "senders", "list"]).len(), 1);
}
