//! Judgement of received mail: authentication in the workers, rules and verdicts in the gateway.

use serde_json::Value;

use crate::dkim::sign_by_others;
use crate::front::{for_strangers, without_rates};
use crate::harness::{Options, Session, System, unfold, wait_for, wait_until};
use crate::imap::{Imap, start_with_store, wait_messages, with_ports};

/// A front whose messages are judged, with a zone of senders.
pub(crate) fn judged(section: &str) -> Options {
    without_rates(for_strangers())
        .table(&format!("[judging]\n{section}"))
        .record("good.test TXT v=spf1 ip4:127.0.0.1 -all")
        .record("_dmarc.good.test TXT v=DMARC1; p=reject")
        .record("forged.test TXT v=spf1 -all")
        .record("_dmarc.forged.test TXT v=DMARC1; p=reject")
        .record("down.test FAIL")
        .record("_dmarc.down.test FAIL")
        .record("1.0.0.127.in-addr.arpa PTR mx.good.test")
        .record("mx.good.test A 127.0.0.1")
}

pub(crate) fn send(system: &System, from: &str, to: &[&str], message: &str) -> String {
    let mut session = Session::greeted(system.smtp);
    session.transaction(from, to);
    session.command("DATA", "354");
    session.send(message.as_bytes());
    session.send(b"\r\n.\r\n");
    session.reply()
}

pub(crate) fn message(from: &str) -> String {
    format!("From: <{from}>\r\nTo: alice@example.org\r\nSubject: news\r\n\r\nhello")
}

/// The id of a message, from the reply to its text.
pub(crate) fn id_of(reply: &str) -> String {
    reply.split_whitespace().last().expect(reply).to_owned()
}

/// The event "judged" of a message.
pub(crate) fn event(system: &System, id: &str) -> Value {
    wait_for("the event", || {
        let traces = system.json(&["trace", id]);
        let mut events = traces[0]["events"].as_array()?.iter();
        events.find(|event| event["ev"] == "judged").cloned()
    })
}

#[test]
fn messages_have_results_and_a_score_and_no_fields_of_strangers() {
    let system = System::start(&judged(""));
    let said = "Authentication-Results: mx.example.org; dmarc=pass\r\nX-Spam-Status: No\r\n\
                Authentication-Results: other.example; spf=pass\r\n";
    let reply = send(
        &system,
        "a@good.test",
        &["alice@example.org"],
        &format!("{said}{}", message("a@good.test")),
    );
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let mail = unfold(&system.wait_mail("alice", 1)[0]);
    for expected in [
        "Authentication-Results: mx.example.org; spf=pass smtp.mailfrom=a@good.test;",
        " arc=none;",
        " dmarc=pass (p=reject) header.from=good.test;",
        " iprev=pass (mx.good.test) policy.iprev=127.0.0.1\n",
        "(mx.good.test [127.0.0.1])",
        "X-Spam-Status: No, score=",
        "Authentication-Results: other.example; spf=pass\n",
    ] {
        assert!(mail.contains(expected), "{expected}: {mail}");
    }
    assert_eq!(
        mail.matches("Authentication-Results: mx.example.org")
            .count(),
        1
    );
    assert_eq!(mail.matches("X-Spam-Status").count(), 1);
    let (ours, trace) = (
        mail.find("Authentication-Results: mx."),
        mail.find("Received: "),
    );
    assert!(ours < trace, "{mail}");
    let event = event(&system, &id_of(&reply));
    assert_eq!(event["verdict"], "accept");
    assert!(
        event["facts"]
            .as_str()
            .is_some_and(|facts| facts.len() > 40)
    );
}

#[test]
fn forged_mail_is_marked_and_with_a_threshold_refused() {
    let system = System::start(&judged(""));
    let forged = message("boss@forged.test");
    let reply = send(&system, "a@forged.test", &["alice@example.org"], &forged);
    assert!(reply.starts_with("250"), "{reply}");
    let marked = system.wait_mail("alice", 1).remove(0);
    let mail = unfold(&marked);
    assert!(mail.contains("\nX-Spam-Flag: YES\n"), "{mail}");
    assert!(mail.contains("DMARC_REJECT"), "{mail}");
    system.wait_log(&["judged", "verdict=tag"]);
    system.reconfigure(&judged("reject_at = 5\n"));
    let reply = wait_for("a refusal", || {
        let reply = send(&system, "a@forged.test", &["alice@example.org"], &forged);
        reply.starts_with("550").then_some(reply)
    });
    assert!(
        reply.starts_with("550 5.7.1 message refused (DMARC_REJECT), id "),
        "{reply}"
    );
    let id = id_of(&reply);
    let event = event(&system, &id);
    assert_eq!(event["verdict"], "reject");
    assert!(
        event["rules"]
            .as_str()
            .is_some_and(|rules| rules.contains("DMARC_REJECT=5.0"))
    );
    // Every rule is explained, by the settings of then and of now, and for the message in a file as well.
    let explained = system.command(&["explain", &id]);
    for expected in [
        "  from  <a@forged.test> by 127.0.0.1:",
        "  then  reject, score 7.0, ",
        "DMARC_REJECT=5.0 SPF_FAIL=2.0",
        "  now   reject, score 7.0\n",
        "       5.0  DMARC_REJECT",
    ] {
        assert!(explained.contains(expected), "{expected}: {explained}");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &marked).expect("written");
    let explained = system.json(&["explain", &file.path().to_string_lossy()]);
    assert_eq!(explained["now"]["verdict"], "reject", "{explained}");
    let recipients = &explained["now"]["recipients"];
    assert_eq!(recipients[0]["address"], "alice@example.org");
    system.reconfigure(&judged("[judging.weights]\nSPF_FAIL = 0\n"));
    let explained = system.command(&["explain", &id]);
    assert!(
        explained.contains("  now   tag, score 5.0\n"),
        "{explained}"
    );
    let good = send(
        &system,
        "a@good.test",
        &["alice@example.org"],
        &message("a@good.test"),
    );
    assert!(good.starts_with("250"), "{good}");
}

/// The greylist's state goes with the session to the worker, and the rule stands in the field, the trace and the explanation.
#[test]
fn a_client_that_came_again_is_known_to_the_judge() {
    let options = judged("")
        .set("front.greylist", "\"on\"")
        .set("front.greylist_delay", "\"1s\"");
    let system = System::start(&options);
    let attempt = |from: &str| {
        let mut session = Session::greeted(system.smtp);
        session.command(&format!("MAIL FROM:<{from}>"), "250");
        session.send(b"RCPT TO:<alice@example.org>\r\n");
        let reply = session.reply();
        if !reply.starts_with("250") {
            return None;
        }
        session.command("DATA", "354");
        session.send(format!("{}\r\n.\r\n", message(from)).as_bytes());
        Some(session.reply())
    };
    assert_eq!(attempt("a@good.test"), None);
    let reply = wait_for("the delay", || attempt("a@good.test"));
    let id = id_of(reply.trim_end());
    let mail = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(mail.contains("GREYLIST_PASSED"), "{mail}");
    let rules = event(&system, &id)["rules"].to_string();
    assert!(rules.contains("GREYLIST_PASSED=-0.1"), "{rules}");
    let explained = system.command(&["explain", &id]);
    assert!(explained.contains("GREYLIST_PASSED"), "{explained}");
    let others = ["b@good.test", "c@good.test", "d@good.test", "e@good.test"];
    for sender in others {
        assert_eq!(attempt(sender), None);
    }
    for sender in others {
        wait_for("a further sender", || attempt(sender));
    }
    // The client has passed five times: a further sender does not wait.
    assert!(attempt("f@good.test").is_some());
    let known = |mail: &String| unfold(mail).contains("GREYLIST_KNOWN");
    assert!(system.wait_mail("alice", 6).iter().any(known));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &mail).expect("written");
    let explained = system.command(&["explain", &file.path().to_string_lossy()]);
    assert!(explained.contains("\nGREYLIST\n  unknown: "), "{explained}");
}

/// All recipients have one reply: a refusing recipient gets the message in quarantine, and the other recipient gets mail at once.
#[test]
fn recipients_with_other_thresholds_have_other_copies() {
    let section =
        "[[judging.policy]]\nrecipients = [\"bob@example.org\"]\ntag_at = 4\nreject_at = 4\n";
    let system = System::start(&judged(section));
    let forged = message("boss@forged.test");
    let both = ["alice@example.org", "bob@example.org"];
    let reply = send(&system, "a@forged.test", &both, &forged);
    assert!(reply.starts_with("250"), "{reply}");
    let mail = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(mail.contains("required=5.0"), "{mail}");
    let listed = system.command(&["quarantine", "list"]);
    let id = listed.split_whitespace().next().expect("an id").to_owned();
    assert_eq!(
        system.json(&["queue", "show", &id])[0]["held_for"],
        "quarantine"
    );
    assert_ne!(id, id_of(&reply));
    // Bob alone: the client hears it.
    let alone = send(&system, "a@forged.test", &["bob@example.org"], &forged);
    assert!(alone.starts_with("550 5.7.1"), "{alone}");
    // Released all the same, though no filter learns by the message.
    let (code, said) = system.failing_command(&["quarantine", "release", &id, "--learn"]);
    let expected =
        "1 message released, 0 messages learned; expected a [[filter]] with learn_address";
    assert!(code == Some(1) && said.contains(expected), "{said}");
    let mail = unfold(&system.wait_mail("bob", 1)[0]);
    assert!(mail.contains("required=4.0"), "{mail}");
}

/// Texts above 1 MiB go ahead of the message in parts: header, attachments and hashes of the body are found all the same.
#[test]
fn long_messages_are_judged_whole() {
    let section = "[[judging.attachment]]\nnames = [\"*.exe\"]\nverdict = \"reject\"\n";
    let system = System::start(&judged(section));
    let long = "x".repeat(70) + "\r\n";
    let text = long.repeat(40_000);
    let with = |name: &str| {
        format!(
            "From: <a@good.test>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n{text}--b\r\n\
             Content-Disposition: attachment; filename=\"{name}\"\r\n\r\nMZ\r\n--b--\r\n"
        )
    };
    let to = ["alice@example.org"];
    let refused = send(&system, "a@good.test", &to, &with("run.EXE"));
    assert!(
        refused.starts_with("550 5.7.1 message refused (ATTACHMENT)"),
        "{refused}"
    );
    let Some((signed, record)) = sign_by_others(&with("run.txt"), "good.test") else {
        return;
    };
    let options = judged(section).record(&format!("s._domainkey.good.test TXT {record}"));
    let system = System::start(&options);
    let reply = send(&system, "a@good.test", &to, signed.trim_end_matches("\r\n"));
    assert!(reply.starts_with("250"), "{reply}");
    let mail = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(
        mail.contains("dkim=pass header.d=good.test"),
        "{}",
        &mail[..2_000]
    );
}

#[test]
fn without_the_dns_messages_are_accepted_with_temporary_errors() {
    let system = System::start(&judged(""));
    let reply = send(
        &system,
        "a@down.test",
        &["alice@example.org"],
        &message("a@down.test"),
    );
    assert!(reply.starts_with("250"), "{reply}");
    let mail = unfold(&system.wait_mail("alice", 1)[0]);
    assert!(
        mail.contains("spf=temperror smtp.mailfrom=a@down.test;"),
        "{mail}"
    );
    assert!(mail.contains("dmarc=temperror"), "{mail}");
}

#[test]
fn clients_that_may_relay_are_not_judged() {
    let options = judged("tag_at = 1\nreject_at = 1\n").set("relay.networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&options);
    let reply = send(
        &system,
        "a@forged.test",
        &["alice@example.org"],
        &message("a@forged.test"),
    );
    assert!(reply.starts_with("250"), "{reply}");
    let mail = &system.wait_mail("alice", 1)[0];
    assert!(
        !mail.contains("X-Spam-") && !mail.contains("Authentication-Results"),
        "{mail}"
    );
}

/// A mark of ours leads to Junk, a stranger's mark and a tag of the address do not; a system that was killed files nothing twice.
#[test]
fn marked_mail_is_filed_in_junk() {
    let (mut system, ports) = start_with_store(judged(""));
    let to = ["alice@example.org"];
    let forged = message("boss@forged.test");
    let reply = send(&system, "a@forged.test", &to, &forged);
    assert!(reply.starts_with("250"), "{reply}");
    wait_messages(&ports, to[0], "Junk", 1);
    let strange = format!("X-Spam-Flag: YES\r\n{}", message("a@good.test"));
    send(&system, "a@good.test", &to, &strange);
    wait_messages(&ports, to[0], "INBOX", 1);
    Imap::login(ports.imap, to[0], "secret").ok("CREATE Lists");
    send(
        &system,
        "a@forged.test",
        &["alice+lists@example.org"],
        &forged,
    );
    wait_messages(&ports, to[0], "Lists", 1);
    system.crash();
    wait_messages(&ports, to[0], "Junk", 1);
    system.reconfigure(&with_ports(judged(""), &ports).set("store.marked", "\"inbox\""));
    wait_until("the reload", || {
        send(&system, "a@forged.test", &to, &forged);
        Imap::login(ports.imap, to[0], "secret").exists("INBOX") > 1
    });
}
