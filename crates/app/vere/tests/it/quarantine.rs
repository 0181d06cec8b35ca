//! Messages that the judgement keeps aside: shown, released once, refused, aged, told of.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::clock::FakedClock;
use crate::harness::{Options, System, assert_has, free_address, wait_for, wait_until};
use crate::imap::{Imap, start_with_store, wait_messages, with_ports};
use crate::judging::{event, id_of, judged, message, send};
use crate::metrics;

/// A system that keeps forged mail aside.
pub(crate) fn keeping(more: &str) -> Options {
    judged(&format!("quarantine_at = 5\n{more}"))
}

/// Sends a forged message to alice and bob, which is kept aside; gives its id.
pub(crate) fn forged(system: &System) -> String {
    let both = ["alice@example.org", "bob@example.org"];
    let text = message("boss@forged.test").replace("news", "=?utf-8?q?J=C3=B6rg_=1B[2J?=");
    let reply = send(system, "a@forged.test", &both, &text);
    assert!(reply.starts_with("250"), "{reply}");
    id_of(&reply)
}

pub(crate) fn listed(system: &System, more: &[&str]) -> Vec<Value> {
    system.rows(&[&["quarantine", "list"], more].concat())
}

pub(crate) fn count(system: &System) -> usize {
    listed(system, &[]).len()
}

#[test]
fn strangers_texts_are_shown_with_escapes_and_the_queue_commands_leave_the_message_alone() {
    let system = System::start(&keeping(""));
    let id = forged(&system);
    let row = &listed(&system, &[])[0];
    assert_eq!(
        (&row["id"], &row["subject"]),
        (&id.as_str().into(), &"Jörg \u{1b}[2J".into())
    );
    assert_eq!(row["reverse_path"], "a@forged.test");
    assert_eq!(row["recipients"].as_array().map(Vec::len), Some(2));
    for (option, wanted, rows) in [
        ("--recipient", "bob@example.org", 1),
        ("--recipient", "example.org", 1),
        ("--recipient", "carol@example.org", 0),
        ("--sender", "forged.test", 1),
        ("--sender", "", 0),
        ("--after", &id, 0),
    ] {
        assert_eq!(
            listed(&system, &[option, wanted]).len(),
            rows,
            "{option} {wanted}"
        );
    }
    let text = system.command(&["quarantine", "list"]);
    assert_has(
        &text,
        &[
            "    Subject: Jörg \\u{1b}[2J",
            "from <a@forged.test>",
            "score ",
        ],
    );
    let text = system.command(&["quarantine", "show", &id]);
    assert_has(
        &text,
        &["X-Spam-Flag: YES", "DMARC_REJECT", "removed by its age at "],
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let raw = system.command(&["quarantine", "show", &id, "--raw"]);
    assert_has(
        &raw,
        &["Subject: =?utf-8?q?J=C3=B6rg_=1B[2J?=\r\n", "\r\n\r\nhello"],
    );
    let shown = system.json(&["queue", "show", &id]);
    assert_eq!(
        (&shown[0]["state"], &shown[0]["held_for"]),
        (&"quarantined".into(), &"quarantine".into())
    );
    assert_has(&system.command(&["queue", "list"]), &["(1 in quarantine)"]);
    assert_eq!(system.command(&["queue", "orders"]), "no orders\n");
    for refused in [
        &["queue", "release", "--id", &id][..],
        &["queue", "hold", "--id", &id, "--for", "1s"],
        &["quarantine", "release", "0000000000001"],
        &["quarantine", "show", "0000000000001"],
    ] {
        let (code, said) = system.failing_command(refused);
        assert!(
            code == Some(1) && said.contains("in the quarantine"),
            "{said}"
        );
    }
    for gone in [
        &["queue", "bounce", "--all", "--yes"][..],
        &["queue", "purge", "--all", "--yes"],
    ] {
        assert_has(&system.command(gone), &["0 messages"]);
    }
    assert_eq!(count(&system), 1);
}

/// The gateway is killed after the message was taken, and after its release: it is delivered once.
#[test]
fn a_message_is_kept_over_kill_9_and_a_release_delivers_it_once() {
    let endpoint = free_address();
    let options = keeping("").set("metrics.listen", &format!("\"{endpoint}\""));
    let mut system = System::start(&options);
    let id = forged(&system);
    let good = send(
        &system,
        "a@good.test",
        &["alice@example.org"],
        &message("a@good.test"),
    );
    assert!(good.starts_with("250"), "{good}");
    assert_eq!(
        system.wait_mail("alice", 1).len(),
        1,
        "mail behind it goes on"
    );
    assert_has(&system.command(&["trace", &id]), &["held"]);
    system.crash();
    system.restart();
    wait_until("the queues", || count(&system) == 1);
    metrics::wait_lines(endpoint, &["vere_gateway_quarantine_messages 1"]);
    let all = [
        "quarantine",
        "release",
        "--all",
        "--recipient",
        "bob@example.org",
    ];
    let said = system.command(&[&all[..], &["--dry-run"]].concat());
    assert!(
        said.starts_with("1 message (") && said.ends_with(") would be released\n"),
        "{said}"
    );
    // Nothing leaves between the release and the kill.
    system.command(&["queue", "hold", "local"]);
    assert_eq!(system.command(&all), "1 message released\n");
    assert_eq!(count(&system), 0);
    assert_has(&system.command(&["trace", &id]), &["released"]);
    system.kill_and_wait("gateway");
    wait_until("the gateway", || system.queued_if_up() == Some(1));
    system.wait_queue("the released message", |queue| {
        queue["messages"] == 1 && queue["quarantined"] == 0
    });
    let (code, said) = system.failing_command(&["quarantine", "release", &id]);
    assert!(
        code == Some(1) && said.contains("0 messages released"),
        "{said}"
    );
    system.command(&["queue", "release", "local"]);
    let mail = system.wait_mail("bob", 1);
    assert_has(
        &mail[0],
        &["X-Spam-Status: No, score=7.0", "released=yes", "hello"],
    );
    assert!(!mail[0].contains("X-Spam-Flag"), "{}", mail[0]);
    system.wait_empty();
    assert_eq!(system.signal_role("gateway", Signal::SIGKILL), 1);
    wait_until("the gateway", || system.queued_if_up() == Some(0));
    assert_eq!(
        (system.mail("alice").len(), system.mail("bob").len()),
        (2, 1)
    );
    metrics::wait_lines(endpoint, &["vere_gateway_quarantine_messages 0"]);
}

/// A release goes to the Inbox, also after a kill; fields of a release by a stranger have no effect.
#[test]
fn a_released_message_is_good_mail_and_no_stranger_can_say_so() {
    let (mut system, ports) = start_with_store(keeping(""));
    let to = "alice@example.org";
    let released = "X-Spam-Status: No, score=-5 released=yes\r\nX-Spam-Flag: NO\r\n";
    let text = format!("{released}{}", message("boss@forged.test"));
    let send_one = |system: &System| {
        let reply = send(system, "a@forged.test", &[to], &text);
        assert!(reply.starts_with("250"), "{reply}");
        id_of(&reply)
    };
    let id = send_one(&system);
    assert_eq!(count(&system), 1, "kept aside all the same");
    system.command(&["quarantine", "release", &id]);
    wait_messages(&ports, to, "INBOX", 1);
    let mut session = Imap::login(ports.imap, to, "secret");
    session.ok("SELECT INBOX");
    let header = session.ok("FETCH 1 BODY[HEADER]");
    assert_has(&header, &["X-Spam-Status: No, score=7.0", "released=yes"]);
    assert!(
        !header.contains("X-Spam-Flag") && header.matches("released=yes").count() == 1,
        "{header}"
    );
    let id = send_one(&system);
    system.command(&["queue", "hold", "local"]);
    system.command(&["quarantine", "release", &id]);
    system.crash();
    system.restart();
    system.command(&["queue", "release", "local"]);
    wait_messages(&ports, to, "INBOX", 2);
    system.reconfigure(&with_ports(judged(""), &ports));
    wait_until("a message that is only marked", || {
        send_one(&system);
        Imap::login(ports.imap, to, "secret").exists("Junk") > 0
    });
    wait_messages(&ports, to, "INBOX", 2);
}

#[test]
fn a_refused_message_is_removed_and_nobody_is_told() {
    let endpoint = free_address();
    let options = keeping("").set("metrics.listen", &format!("\"{endpoint}\""));
    let system = System::start(&options);
    let ids = [forged(&system), forged(&system)];
    let (code, said) = system.failing_command(&["quarantine", "refuse", &ids[0]]);
    assert!(code == Some(1) && said.contains("add --yes"), "{said}");
    let said = system.command(&["quarantine", "refuse", &ids[0], "--yes"]);
    assert_eq!(said, "1 message removed\n");
    assert_eq!(listed(&system, &[])[0]["id"], ids[1].as_str());
    assert_has(&system.command(&["trace", &ids[0]]), &["purged"]);
    let (code, said) = system.failing_command(&["quarantine", "refuse", &ids[0], &ids[1], "--yes"]);
    assert_eq!(code, Some(1));
    assert_has(
        &said,
        &["1 message removed; not in the quarantine:", &ids[0]],
    );
    system.wait_empty();
    assert_eq!(system.mail("alice").len(), 0);
    metrics::wait_lines(
        endpoint,
        &["vere_gateway_quarantine_ended_total{result=\"refused\"} 2"],
    );
    system.wait_log(&["operator", "verb=refuse"]);
}

/// A clock that is put ahead makes nothing older; a message that is old at a start leaves by itself, without a report.
#[test]
fn messages_leave_by_their_age_and_not_by_a_step_of_the_clock() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(clock) = FakedClock::in_folder(directory.path()) else {
        return;
    };
    clock.set("-400d");
    let section = "quarantine_keep = \"1h\"\nquarantine_digest = \"daily\"\n";
    let options = keeping(section).set("delivery.retry", "[\"1s\"]");
    let mut system = System::start_as(directory, &options, |command, _| clock.command(command));
    let id = forged(&system);
    let file = system.directory.path().join("data/quarantine-digest");
    wait_until("the first look", || file.exists());
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    for offset in ["+0d", "+3d"] {
        let before = read();
        clock.set(offset);
        // Digests are due at the next look at ages.
        wait_until("digests", || read() != before);
        assert_eq!(count(&system), 1, "after {offset}");
    }
    system.wait_log(&["recipients told of mail in the quarantine"]);
    assert_has(&system.log(), &["wall clock was put ahead or back"]);
    system.kill();
    system.start_again();
    wait_until("the end of the message", || {
        system.command(&["trace", &id]).contains("aged")
    });
    assert_eq!(count(&system), 0);
    system.wait_log(&["messages removed from the quarantine by their age"]);
    system.wait_empty();
    for mail in system.mail("alice") {
        assert_has(&mail, &["in the quarantine"]);
    }
}

#[test]
fn recipients_hear_once_a_day_of_new_messages() {
    let system = System::start(&keeping("quarantine_digest = \"daily\"\n"));
    let id = forged(&system);
    let file = system.directory.path().join("data/quarantine-digest");
    std::fs::write(&file, "0\n").expect("the time of the last digests");
    let mail = &system.wait_mail("alice", 1)[0];
    assert_has(
        mail,
        &[
            "From: Mail system <postmaster@example.org>",
            "Auto-Submitted: auto-generated",
            "Subject: 1 new message in the quarantine",
            &id,
            "    Subject: Jörg \\u{1b}[2J",
        ],
    );
    system.wait_mail("bob", 1);
    system.wait_log(&["recipients told of mail in the quarantine"]);
    wait_until("the time of the digests", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text != "0\n")
    });
    assert_eq!(count(&system), 1, "the message stays");
}

/// A flood of unwanted mail fills half of the queues: further unwanted mail is deferred, wanted mail goes on.
#[test]
fn a_flooded_quarantine_leaves_half_of_the_queues_to_other_mail() {
    let endpoint = free_address();
    let options = keeping("").set("metrics.listen", &format!("\"{endpoint}\""));
    let system = System::start(&options.clone().set("limits.queued_messages_max", "8"));
    let ids: Vec<String> = (0..4).map(|_| forged(&system)).collect();
    let both = ["alice@example.org", "bob@example.org"];
    let unwanted = message("boss@forged.test");
    let reply = send(&system, "a@forged.test", &both, &unwanted);
    assert!(
        reply.starts_with("452 4.3.1 insufficient system storage"),
        "{reply}"
    );
    system.wait_log(&["quarantine full"]);
    // The trace has the judgement, and metrics count what is stored.
    let log = system.log();
    let line = log
        .lines()
        .rfind(|line| line.contains("verdict=quarantine"));
    let line = line.and_then(|line| line.split("queue_id=").nth(1));
    let id = line.and_then(|rest| rest.split_whitespace().next());
    let id = id.expect("the id of the refused message");
    let judged = event(&system, id);
    assert_eq!(judged["recipients"], 2, "{judged}");
    let explained = system.command(&["explain", id]);
    assert_has(&explained, &["  then  quarantine, score "]);
    metrics::assert_lines(
        endpoint,
        &["vere_judged_messages_total{verdict=\"quarantine\"} 4"],
    );
    for count in 1..=6 {
        let wanted = message("a@good.test");
        let reply = send(&system, "a@good.test", &["alice@example.org"], &wanted);
        assert!(reply.starts_with("250"), "{reply}");
        system.wait_mail("alice", count);
    }
    assert_eq!(count(&system), 4);
    system.command(&["quarantine", "refuse", &ids[0], "--yes"]);
    forged(&system);
    system.wait_log(&["quarantine has room again"]);
    // A bound of one destination alone counts as well.
    let narrow = options.set("limits.messages_per_destination_max", "8");
    system.reconfigure(&narrow);
    let reply = wait_for("the new bound", || {
        let reply = send(&system, "a@forged.test", &both, &unwanted);
        (!reply.contains("insufficient")).then_some(reply)
    });
    let expected = "452 4.3.1 too much mail waits for this destination";
    assert!(reply.starts_with(expected), "{reply}");
    assert_eq!(count(&system), 4);
}
