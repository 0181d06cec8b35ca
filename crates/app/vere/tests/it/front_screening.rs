//! What the front and its workers ask about a sender before they accept recipients: SPF, and the operator's rules.

use crate::harness::{Options, Session, System, unfold, wait_for};

/// The processes of port 25 for strangers, with a zone of senders.
fn with_senders() -> Options {
    Options::default()
        .set("relay.networks", "[]")
        .set("front.workers", "2")
        .set("front.banner_delay", "\"0s\"")
        .set("front.connections_per_minute", "0")
        .set("front.refused_recipients_per_hour", "0")
        .record("pass.test TXT v=spf1 a:mx.pass.test -all")
        .record("mx.pass.test A 127.0.0.1")
        .record("fail.test TXT v=spf1 ip4:192.0.2.1 -all")
        .record("soft.test TXT v=spf1 ip4:192.0.2.1 ~all")
        .record("wrong.test TXT v=spf1 what")
        .record("down.test FAIL")
        .record("mx.helo.test TXT v=spf1 a -all")
        .record("mx.helo.test A 127.0.0.1")
}

fn connected(system: &System, helo: &str) -> Session {
    let mut session = Session::connect(system.smtp);
    session.command(&format!("EHLO {helo}"), "250");
    session
}

/// Offers a message; the reply to RCPT is `expected`.
fn offer(session: &mut Session, sender: &str, recipient: &str, expected: &str) {
    session.command(&format!("MAIL FROM:<{sender}>"), "250 2.1.0");
    session.command(&format!("RCPT TO:<{recipient}>"), expected);
    session.command("RSET", "250");
}

#[test]
fn spf_decides_before_the_first_recipient() {
    let options = with_senders().set("front.spf", "\"fail\"");
    let system = System::start(&options);
    let mut session = connected(&system, "mx.client.test");
    offer(
        &mut session,
        "a@fail.test",
        "alice@example.org",
        "550 5.7.23",
    );
    // A client that SPF is against does not learn who is here.
    offer(
        &mut session,
        "a@fail.test",
        "nobody@example.org",
        "550 5.7.23",
    );
    offer(
        &mut session,
        "a@pass.test",
        "nobody@example.org",
        "550 5.1.1",
    );
    offer(&mut session, "a@pass.test", "x@example.com", "550 5.7.1");
    for sender in [
        "a@soft.test",
        "a@wrong.test",
        "a@down.test",
        "a@none.test",
        "",
    ] {
        let mut session = connected(&system, "mx.client.test");
        session.command(&format!("MAIL FROM:<{sender}>"), "250");
        session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
    }
    // The null reverse-path has the policy of the name in EHLO, and other senders have that policy as well.
    let mut session = connected(&system, "fail.test");
    for sender in ["", "a@pass.test", "a@down.test"] {
        offer(&mut session, sender, "alice@example.org", "550 5.7.23");
    }
    // The name that counts is the last one.
    session.command("EHLO soft.test", "250");
    session.command("MAIL FROM:<a@pass.test>", "250");
    session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
    system.wait_log(&["front refused", "service=smtp", "5.7.23"]);
}

#[test]
fn results_without_a_policy_are_treated_by_the_settings() {
    let options = with_senders()
        .set("front.spf", "\"softfail\"")
        .set("front.spf_unavailable", "\"defer\"")
        .set("front.spf_permerror", "\"refuse\"");
    let system = System::start(&options);
    let mut session = connected(&system, "mx.client.test");
    for (sender, expected) in [
        ("a@soft.test", "550 5.7.23"),
        ("a@wrong.test", "550 5.7.24"),
        ("a@down.test", "451 4.7.24"),
    ] {
        offer(&mut session, sender, "alice@example.org", expected);
    }
    session.command("MAIL FROM:<a@none.test>", "250");
    session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
}

/// A worker asks about every further sender, so that one good sender opens no door for others.
#[test]
fn workers_ask_about_further_senders() {
    let options = with_senders()
        .set("front.spf", "\"fail\"")
        .set("front.spf_unavailable", "\"defer\"")
        .set("front.refused_helo", "[\".bad.test\"]")
        .set("front.refused_senders", "[\"spam.test\", \"<>\"]")
        .set("front.allowed_senders", "[\"good@spam.test\"]");
    let system = System::start(&options);
    let mut session = connected(&system, "mx.client.test");
    session.command("MAIL FROM:<a@pass.test>", "250");
    session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
    session.command("DATA", "354");
    session.send(b"Subject: first\r\n\r\none\r\n.\r\n");
    session.expect("250 2.0.0");
    session.command("MAIL FROM:<a@fail.test>", "550 5.7.23");
    session.command("MAIL FROM:<a@down.test>", "451 4.7.24");
    session.command("MAIL FROM:<a@spam.test>", "550 5.7.1");
    session.command("MAIL FROM:<>", "550 5.7.1");
    session.command("MAIL FROM:<good@spam.test>", "250 2.1.0");
    session.command("RCPT TO:<alice@example.org>", "250 2.1.5");
    session.command("EHLO mx.bad.test", "250");
    session.command("MAIL FROM:<a@pass.test>", "554 5.7.1");
    session.command("EHLO fail.test", "250");
    session.command("MAIL FROM:<a@pass.test>", "550 5.7.23");
    session.command("EHLO mx.client.test", "250");
    session.command("MAIL FROM:<b@pass.test>", "250 2.1.0");
    session.command("QUIT", "221");
    assert_eq!(system.wait_mail("alice", 1).len(), 1);
    system.wait_log(&["worker refused", "service=smtp", "5.7.23"]);
}

#[test]
fn known_networks_are_not_asked_about() {
    for known in ["relay.networks", "front.allowed_networks"] {
        let options = with_senders()
            .set("front.spf", "\"softfail\"")
            .set("front.spf_unavailable", "\"defer\"")
            .set("front.refused_helo", "[\"mx.client.test\"]")
            .set("front.refused_senders", "[\"fail.test\"]")
            .set(known, "[\"127.0.0.0/8\"]");
        let system = System::start(&options);
        let mut session = connected(&system, "mx.client.test");
        for sender in ["a@fail.test", "a@down.test"] {
            offer(&mut session, sender, "alice@example.org", "250 2.1.5");
        }
    }
}

#[test]
fn names_and_senders_are_refused_until_the_settings_change() {
    let options = with_senders()
        .set("front.refused_helo", "[\"bad.test\", \".bad.test\"]")
        .set(
            "front.refused_senders",
            "[\"bob@one.test\", \".spam.test\"]",
        );
    let system = System::start(&options);
    for helo in ["bad.test", "MX.bad.test"] {
        let mut session = connected(&system, helo);
        session.command("MAIL FROM:<a@pass.test>", "554 5.7.1");
        // The name that counts is the last one.
        session.command("EHLO mx.client.test", "250");
        offer(
            &mut session,
            "a@pass.test",
            "nobody@example.org",
            "550 5.1.1",
        );
    }
    let mut session = connected(&system, "mx.client.test");
    session.command("MAIL FROM:<Bob@one.test>", "550 5.7.1");
    session.command("MAIL FROM:<a@sub.spam.test>", "550 5.7.1");
    offer(
        &mut session,
        "a@one.test",
        "nobody@example.org",
        "550 5.1.1",
    );
    offer(
        &mut session,
        "a@spam.test",
        "nobody@example.org",
        "550 5.1.1",
    );
    let changed = with_senders().set("front.refused_senders", "[\"one.test\"]");
    system.reconfigure(&changed);
    crate::harness::wait_until("other rules", || {
        let mut session = connected(&system, "bad.test");
        session.send(b"MAIL FROM:<a@one.test>\r\n");
        session.reply().starts_with("550 5.7.1")
    });
    let mut session = connected(&system, "bad.test");
    offer(
        &mut session,
        "a@sub.spam.test",
        "nobody@example.org",
        "550 5.1.1",
    );
}

/// Sends a message of a sender in a session, and returns its queue id.
fn send(session: &mut Session, sender: &str) -> String {
    session.submit(sender, &["alice@example.org"], "Subject: x\r\n\r\n")
}

/// The result of SPF goes with the message: with the first sender from the front, with others from the worker.
#[test]
fn messages_carry_the_result_of_spf() {
    let options = with_senders().set("front.spf", "\"fail\"");
    let system = System::start(&options);
    let mut session = connected(&system, "mx.client.test");
    let senders = [
        ("a@pass.test", "pass"),
        ("a@none.test", "none"),
        ("a@soft.test", "softfail"),
        ("\"a;\\\" x=\"@wrong.test", "permerror"),
        ("", "none"),
    ];
    // All senders in one session, then each sender in a separate session.
    let mut ids: Vec<_> = senders
        .iter()
        .map(|(sender, _)| send(&mut session, sender))
        .collect();
    for (sender, _) in senders {
        ids.push(send(&mut connected(&system, "mx.client.test"), sender));
    }
    let mail = system.wait_mail("alice", ids.len());
    for (id, (sender, result)) in ids.iter().zip(senders.iter().cycle()) {
        let mut mail = mail
            .iter()
            .filter(|mail| mail.contains(&format!("id {id}")));
        let text = unfold(mail.next().expect("the message"));
        let quoted = sender.replace('\\', "\\\\").replace('"', "\\\"");
        let identity = if sender.is_empty() {
            "helo"
        } else {
            "mailfrom"
        };
        let field = format!(
            "Received-SPF: {result} receiver=mx.example.org; client-ip=127.0.0.1; \
             envelope-from=\"{quoted}\"; helo=mx.client.test; identity={identity}\n"
        );
        let fields: Vec<_> = text.split_inclusive('\n').collect();
        let place = fields.iter().position(|line| *line == field).expect(&text);
        assert!(fields[place + 1].starts_with("Received: from"), "{text}");
        let found = wait_for("the event", || {
            let traces = system.json(&["trace", id]);
            let mut events = traces[0]["events"].as_array()?.iter();
            let received = events.find(|event| event["ev"] == "received")?;
            Some(received["spf"].clone())
        });
        assert_eq!(found, *result, "{id}");
    }
}

/// A HELO name with a policy has a field of its own, from the front and from a worker.
#[test]
fn messages_carry_the_result_of_spf_for_the_helo_name() {
    let options = with_senders().set("front.spf", "\"fail\"");
    let system = System::start(&options);
    let mut session = connected(&system, "mx.helo.test");
    let mut ids = vec![send(&mut session, "a@soft.test")];
    ids.push(send(&mut session, "b@none.test"));
    let mail = system.wait_mail("alice", ids.len());
    for (id, (sender, result)) in ids
        .iter()
        .zip([("a@soft.test", "softfail"), ("b@none.test", "none")])
    {
        let of_id = |mail: &&String| mail.contains(&format!("id {id}"));
        let text = unfold(mail.iter().find(of_id).expect("the message"));
        let field = |result, identity| {
            format!(
                "Received-SPF: {result} receiver=mx.example.org; client-ip=127.0.0.1; \
                 envelope-from=\"{sender}\"; helo=mx.helo.test; identity={identity}\n"
            )
        };
        let fields = field(result, "mailfrom") + &field("pass", "helo") + "Received: from";
        assert!(text.contains(&fields), "{text}");
        let found = wait_for("the event", || {
            let traces = system.json(&["trace", id]);
            let mut events = traces[0]["events"].as_array()?.iter();
            let received = events.find(|event| event["ev"] == "received")?;
            Some((received["spf"].clone(), received["spf_helo"].clone()))
        });
        assert_eq!(found, (result.into(), "pass".into()), "{id}");
    }
}

/// Without a question nothing is written, whatever the client says itself.
#[test]
fn messages_without_a_question_about_spf_have_no_result() {
    let options = with_senders()
        .set("front.spf", "\"fail\"")
        .set("front.allowed_networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&options);
    let mut session = connected(&system, "mx.client.test");
    for _ in 0..2 {
        session.submit(
            "a@soft.test",
            &["alice@example.org"],
            "Received-SPF: pass\r\nSubject: x\r\n\r\n",
        );
    }
    for mail in system.wait_mail("alice", 2) {
        assert_eq!(mail.matches("Received-SPF:").count(), 1, "{mail}");
        let ours = mail.find("Received: from").expect("our field");
        assert!(mail.find("Received-SPF: pass\n") > Some(ours), "{mail}");
    }
}
