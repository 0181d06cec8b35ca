//! The path of a message: accepted, spooled, delivered, traced; and the outcome of a failed delivery.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::harness::{
    Options, Session, Sink, System, assert_ends, assert_has, assert_starts, free_address, is_full,
    skip, wait_for, wait_until, wait_within,
};

#[test]
fn mail_for_a_local_account_lands_in_its_maildir_and_is_traced() {
    let system = System::start(&Options::default());
    let mut session = Session::greeted(system.smtp);
    let id = session.submit(
        "sender@example.net",
        &["alice@example.org", "BOB@Example.ORG"],
        "Message-ID: <one@example.net>\r\nSubject: hello\r\n\r\nbody\r\n..dotted",
    );
    session.command("QUIT", "221");
    for name in ["alice", "bob"] {
        let text = &system.wait_mail(name, 1)[0];
        assert_starts(text, "Return-Path: <sender@example.net>\n");
        assert_has(text, &["\nReceived: from client.example.net"]);
        assert_ends(text, "\nSubject: hello\n\nbody\n.dotted\n");
    }
    for wanted in [id.as_str(), "<one@example.net>", "alice@example.org"] {
        wait_until(&format!("the whole trace of {wanted}"), || {
            let trace = system.command(&["trace", wanted]);
            let steps = ["received", "queued", "delivered"];
            steps.iter().all(|step| trace.contains(step))
        });
    }
}

#[test]
fn mail_for_other_domains_goes_to_the_route_over_reused_connections() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let mut session = Session::greeted(system.smtp);
    for number in 0..20 {
        session.submit_about(
            "alice@example.org",
            &["x@example.com", "y@example.net"],
            number,
        );
    }
    // Two domains over a common route are a single destination: one transaction for both recipients.
    let texts = sink.wait_mail(20);
    for text in &texts {
        assert_has(
            text,
            &["X-Envelope-To: <x@example.com>\r\nX-Envelope-To: <y@example.net>\r\n"],
        );
    }
    system.wait_empty();
}

#[test]
fn the_mx_of_a_domain_is_asked_and_a_null_mx_respected() {
    let sink = Sink::start();
    let port = sink.address.port();
    let options = Options::default()
        .set("delivery.port", &port.to_string())
        .record("example.com MX 10 dead.example.com")
        .record("example.com MX 20 mail.example.com")
        .record("dead.example.com A 127.0.0.77")
        .record("mail.example.com A 127.0.0.1")
        .record("bare.example.net A 127.0.0.1")
        .record("nomail.example.net MX 0 .");
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    for (number, to) in ["a@example.com", "b@bare.example.net"].iter().enumerate() {
        session.submit_about("alice@example.org", &[to], number);
        sink.wait_mail(number + 1);
    }
    // A domain that takes no mail is known either while the client waits or to the sender later.
    session.command("MAIL FROM:<alice@example.org>", "250");
    session.send(b"RCPT TO:<c@nomail.example.net>\r\n");
    let reply = session.reply();
    if reply.starts_with("250") {
        session.command("DATA", "354");
        session.command("Subject: null\r\n\r\n.", "250");
        let report = &system.wait_mail("alice", 1)[0];
        assert!(report.contains("Status: 5.1.10\n"), "{report}");
    } else {
        assert!(reply.starts_with("556 5.1.10"), "{reply}");
    }
}

/// More messages than are failed, and reports than are stored, at once.
#[test]
fn all_that_waited_for_a_domain_that_takes_no_mail_is_reported_once() {
    let options = Options::default().record("nomail.test MX 0 .");
    let system = System::start(&options);
    system.command(&["queue", "hold", "nomail.test"]);
    let mut session = Session::greeted(system.smtp);
    let count = 250;
    let sent: BTreeSet<_> = (0..count)
        .map(|_| session.submit("bob@example.org", &["x@nomail.test"], "Subject: a\r\n\r\nb"))
        .collect();
    system.command(&["queue", "release", "nomail.test"]);
    let reports = system.wait_mail("bob", count);
    let about = |report: &String| {
        let rest = report.split("X-Veredarius-Queue-ID: ").nth(1);
        let id = rest.and_then(|rest| rest.lines().next());
        id.expect("the message's id").to_owned()
    };
    assert_eq!(reports.iter().map(about).collect::<BTreeSet<_>>(), sent);
    system.wait_empty();
    let trace = system.command(&["trace", sent.first().expect("one")]);
    assert!(trace.contains("dsn"), "{trace}");
    assert_eq!(system.mail("bob").len(), count);
}

#[test]
fn a_stranger_may_not_relay() {
    let options = Options::default().set("xclient.networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&options);
    let mut session = Session::connect(system.smtp);
    session.command("EHLO client", "250");
    session.command("XCLIENT ADDR=192.0.2.7 NAME=stranger.example", "220");
    session.command("EHLO stranger.example", "250");
    session.command("MAIL FROM:<a@example.net>", "250");
    for recipient in [
        "b@example.com",
        "@example.org:b@example.com",
        "b%example.com@mx.example.org",
        "\"b@example.com\"@example.net",
        "b@[127.0.0.1]",
        "b@[192.0.2.1]",
    ] {
        let reply = session.command(&format!("RCPT TO:<{recipient}>"), "55");
        assert!(reply.starts_with("550 5."), "{recipient}: {reply}");
    }
    session.command("RCPT TO:<b@example.com>", "550 5.7.1");
    session.command("RCPT TO:<nobody@example.org>", "550 5.1.1");
    session.command("RCPT TO:<alice%example.com@example.org>", "550 5.1.1");
    session.command("RCPT TO:<\"alice@example.com\"@example.org>", "550 5.1.1");
    session.command("RCPT TO:<alice@example.org>", "250");
}

#[test]
fn what_the_next_hop_refuses_is_returned_to_the_sender() {
    let sink = Sink::with_faults(&["rcpt:bad@=550 5.1.1 nobody of that name", "dot:big@=552 no"]);
    let system = System::start(&Options::to(sink.address));
    let mut session = Session::greeted(system.smtp);
    let id = session.submit_about(
        "alice@example.org",
        &["good@example.com", "bad@example.com"],
        "mixed",
    );
    sink.wait_mail(1);
    let report = &system.wait_mail("alice", 1)[0];
    let parts = [
        "Return-Path: <>\n",
        "Content-Type: multipart/report; report-type=delivery-status;",
        "Final-Recipient: rfc822; bad@example.com\n",
        "Action: failed\n",
        "Status: 5.1.1\n",
        "nobody of that name",
        "Subject: mixed\n",
    ];
    assert_has(report, &parts);
    assert!(
        !report.contains("Final-Recipient: rfc822; good@"),
        "{report}"
    );
    wait_until("the bounce in the trace", || {
        let trace = system.command(&["trace", &id]);
        let steps = ["delivered", "bounced", "dsn"];
        steps.iter().all(|step| trace.contains(step))
    });
    // An undeliverable report causes no further report.
    session.submit_about("", &["bad@example.com"], "report");
    system.wait_empty();
    assert_eq!(system.mail("alice").len(), 1);
}

#[test]
fn what_cannot_be_delivered_now_is_tried_again() {
    let sink = Sink::with_faults(&["rcpt:later@=450 4.2.1 come again*2", "dot:lost@=lose*1"]);
    let system = System::start(&Options::to(sink.address));
    let mut session = Session::greeted(system.smtp);
    let later = session.submit_about("alice@example.org", &["later@example.com"], "later");
    // An answer that is lost after the final dot makes a double: at least once is the promise.
    session.submit_about("alice@example.org", &["lost@example.com"], "lost");
    let texts = sink.wait_mail(3);
    let count = |subject: &str| texts.iter().filter(|text| text.contains(subject)).count();
    assert_eq!((count("Subject: later"), count("Subject: lost")), (1, 2));
    let trace = system.command(&["trace", &later]);
    assert_has(&trace, &["deferred", "450 4.2.1 come again"]);
    system.wait_empty();
}

#[test]
fn mail_for_a_next_hop_that_is_away_waits_for_it() {
    let address = free_address();
    let system = System::start(&Options::to(address));
    system.submit_about("alice@example.org", &["x@example.com"], "early");
    system.wait_last_reply("");
    assert_eq!(system.queued(), 1);
    let sink = Sink::start_at(address, &[]);
    sink.wait_mail(1);
    system.wait_empty();
}

#[test]
fn what_is_never_delivered_is_told_of_and_expires_with_a_report() {
    if !is_full() {
        return skip("expiry", "takes two minutes; set VERE_FULL=1");
    }
    let options = Options::to(free_address())
        .set("delivery.delay_notice", "\"1m\"")
        .set("delivery.expire", "\"2m\"");
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let id = session.submit_about("alice@example.org", &["x@example.com"], "lost");
    // Only the first message is tried where no host answers; further messages wait behind, in more than one block.
    let behind = 230;
    for _ in 0..behind {
        let text = "Subject: behind\r\n\r\nbody";
        session.submit("bob@example.org", &["y@example.com"], text);
    }
    for (count, action) in [(1, "Action: delayed\n"), (2, "Action: failed\n")] {
        let reports = wait_within(Duration::from_secs(100), action, || {
            let reports = system.mail("alice");
            (reports.len() == count).then_some(reports)
        });
        let mut of_kind = reports.iter().filter(|report| report.contains(action));
        let report = of_kind.next().expect("a report of that kind");
        assert_has(report, &["Final-Recipient: rfc822; x@example.com\n"]);
    }
    let told = wait_for("what waited behind expires", || {
        let reports = system.mail("bob");
        (reports.len() == 2 * behind).then_some(reports)
    });
    let of_kind = |action: &str| told.iter().filter(|one| one.contains(action)).count();
    assert_eq!(of_kind("Action: delayed\n"), behind, "{told:?}");
    assert_eq!(of_kind("Action: failed\n"), behind, "{told:?}");
    let trace = system.command(&["trace", &id]);
    assert_has(&trace, &["deferred", "expired", "dsn"]);
    system.wait_empty();
}

#[test]
fn acknowledged_mail_survives_kill_9_of_every_process() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    for (round, role) in ["gateway", "spool", "gateway"].into_iter().enumerate() {
        let mut session = Session::greeted(system.smtp);
        session.submit_about(
            "a@example.net",
            &["x@example.com", "alice@example.org"],
            format_args!("round {round}"),
        );
        system.kill_and_wait(role);
        wait_for("mail is taken again", || {
            let mut session = Session::try_connect(system.smtp).ok()?;
            session.send(b"EHLO client\r\n");
            session.try_reply().ok()?;
            session.send(b"MAIL FROM:<a@example.net>\r\n");
            session.try_reply().ok()?.starts_with("250").then_some(())
        });
    }
    for round in 0..3 {
        let subject = format!("Subject: round {round}");
        wait_until(&subject, || {
            let here = |texts: &[String]| texts.iter().any(|text| text.contains(&subject));
            here(&sink.mail()) && here(&system.mail("alice"))
        });
    }
}

#[test]
fn queued_mail_survives_a_restart_of_everything() {
    let address = free_address();
    let mut system = System::start(&Options::to(address));
    let mut session = Session::greeted(system.smtp);
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(session.submit_about(
            "alice@example.org",
            &["x@example.com"],
            format_args!("number {number}"),
        ));
    }
    drop(session);
    system.restart();
    assert_eq!(system.queued(), 5);
    // The same after a crash of the whole system.
    system.crash();
    assert_eq!(system.queued(), 5);
    let sink = Sink::start_at(address, &[]);
    let texts = sink.wait_mail(5);
    for number in 0..5 {
        let subject = format!("Subject: number {number}\r\n");
        assert!(texts.iter().any(|text| text.contains(&subject)));
    }
    for id in &ids {
        let trace = system.command(&["trace", id]);
        assert!(trace.contains("recovered"), "{trace}");
    }
}
