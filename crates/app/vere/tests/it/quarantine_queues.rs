//! The quarantine of adopted queues, and of queues with an order.

use nix::sys::signal::Signal;

use crate::clock::FakedClock;
use crate::gateways::{dying_and_adopting, kill_for_good};
use crate::harness::{Options, Sink, System, assert_has, free_address, wait_until};
use crate::judging::{id_of, message, send};
use crate::quarantine::{count, forged, keeping, listed};

const ALIAS: &str = "away@example.org";

#[test]
fn the_gateway_that_adopts_queues_has_their_quarantine_until_the_other_is_back() {
    let (first, second) = dying_and_adopting("[\"*\"]", || keeping(""));
    let ids = [forged(&first), forged(&first), forged(&first)];
    let own = forged(&second);
    assert_eq!((count(&first), count(&second)), (3, 1));
    kill_for_good(&first);
    wait_until("the adopted quarantine", || count(&second) == 4);
    for row in listed(&second, &[]) {
        let is_own = row["id"] == own.as_str();
        assert_eq!(
            row["group"].as_str(),
            (!is_own).then_some("gateway"),
            "{row}"
        );
    }
    let shown = second.command(&["quarantine", "show", &ids[0]]);
    assert_has(&shown, &["local (of gateway)", "X-Spam-Flag: YES"]);
    let said = second.command(&["quarantine", "release", &ids[0]]);
    assert_eq!(said, "1 message released\n");
    let said = second.command(&["quarantine", "refuse", &ids[1], "--yes"]);
    assert_eq!(said, "1 message removed\n");
    let mail = second.wait_mail("alice", 1);
    assert_has(&mail[0], &["released=yes", &ids[0]]);
    second.wait_mail("bob", 1);
    assert_eq!(count(&second), 2);
    // What is left goes back to its gateway.
    first.signal(Signal::SIGCONT);
    wait_until("the first gateway", || first.queued_if_up() == Some(1));
    wait_until("the adopted queues to be gone", || count(&second) == 1);
    assert_eq!(listed(&first, &[])[0]["id"], ids[2].as_str());
    let (code, said) = first.failing_command(&["quarantine", "release", &ids[0], &ids[1]]);
    assert!(
        code == Some(1) && said.contains("not in the quarantine"),
        "{said}"
    );
    first.command(&["quarantine", "release", &ids[2]]);
    let mail = first.wait_mail("alice", 1);
    assert_has(&mail[0], &["released=yes", &ids[2]]);
    first.wait_empty();
    assert_eq!(listed(&second, &[])[0]["id"], own.as_str());
    let all = |system: &System| (system.mail("alice").len(), system.mail("bob").len());
    assert_eq!((all(&first), all(&second)), ((1, 1), (1, 1)));
}

/// Keeps forged mail aside; an alias leads to a next hop with messages in turn, in order.
fn in_order(next_hop: impl ToString, section: &str) -> Options {
    let next_hop = next_hop.to_string();
    let destination =
        format!("[[delivery.destination]]\nnext_hop = \"{next_hop}\"\nin_order = \"yes\"\n");
    keeping(section)
        .route("remote.test", next_hop, "")
        .table(&destination)
}

/// Sends a message to the alias, forged or not; gives its id.
fn away(system: &System, domain: &str, subject: &str) -> String {
    let sender = format!("a@{domain}");
    let text = message(&sender).replace("news", subject);
    let reply = send(system, &sender, &[ALIAS], &text);
    assert!(reply.starts_with("250"), "{reply}");
    id_of(&reply)
}

fn subjects(sink: &Sink) -> Vec<String> {
    let subject = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("Subject: "));
        line.unwrap_or_default().to_owned()
    };
    sink.in_order().into_iter().map(subject).collect()
}

/// The quarantine stands beside the order: other messages pass by, and a release has the place of a new message.
#[test]
fn a_queue_in_order_goes_on_beside_its_quarantine_and_a_release_is_the_newest() {
    let address = free_address();
    let mut system = System::start(&in_order(address, ""));
    system.command(&["alias", "add", ALIAS, "x@remote.test"]);
    let one = away(&system, "forged.test", "one");
    away(&system, "good.test", "two");
    let three = away(&system, "forged.test", "three");
    away(&system, "good.test", "four");
    assert_eq!((count(&system), system.queued()), (2, 4));
    system.command(&["quarantine", "release", &three]);
    away(&system, "good.test", "five");
    system.command(&["quarantine", "release", &one]);
    away(&system, "good.test", "six");
    assert_eq!(count(&system), 0);
    system.crash();
    let sink = Sink::start_at(address, &[]);
    system.restart();
    sink.wait_mail(6);
    assert_eq!(
        subjects(&sink),
        ["two", "four", "three", "five", "one", "six"]
    );
    for mail in sink.mail() {
        assert!(!mail.contains("X-Spam-Flag"), "{mail}");
    }
    system.wait_empty();
}

#[test]
fn a_message_that_ages_out_of_a_queue_in_order_leaves_the_others_in_order() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(clock) = FakedClock::in_folder(directory.path()) else {
        return;
    };
    clock.set("-3d");
    let address = free_address();
    let options = in_order(address, "quarantine_keep = \"1h\"\n").set("delivery.retry", "[\"1s\"]");
    let mut system = System::start_as(directory, &options, |command, _| clock.command(command));
    system.command(&["alias", "add", ALIAS, "x@remote.test"]);
    let old = away(&system, "forged.test", "old");
    away(&system, "good.test", "one");
    system.kill();
    clock.set("+0d");
    system.start_again();
    away(&system, "good.test", "two");
    wait_until("the end of the message", || {
        system.command(&["trace", &old]).contains("aged")
    });
    let sink = Sink::start_at(address, &[]);
    away(&system, "good.test", "three");
    sink.wait_mail(3);
    assert_eq!(subjects(&sink), ["one", "two", "three"]);
    // The senders hear of the delay of theirs alone.
    assert_eq!(count(&system), 0);
    assert!(!system.command(&["queue", "list"]).contains("forged.test"));
}
