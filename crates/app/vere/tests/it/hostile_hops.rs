//! Next hops that refuse, cut, drip, lie, flood and fall silent at every step: no message is lost or sent twice, and
//! each sender gets the due report.

use std::collections::BTreeMap;

use crate::harness::{
    Authority, Manners, Mx, Options, Session, Sink, System, quoted, unfold, wait_for, wait_until,
};

/// The outcome of the message.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// The message waits, with these words in the last reply.
    Waits(&'static str),
    /// The message is returned, with this status.
    Returns(&'static str),
    /// The message is delivered.
    Goes,
}

fn replying(replies: &'static [(&'static str, &'static str)]) -> Manners {
    Manners {
        replies,
        ..Manners::default()
    }
}

fn greeting(text: String) -> Manners {
    Manners {
        greeting: Some(Box::leak(text.into_boxed_str())),
        ..Manners::default()
    }
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn cases(authority: &Authority, folder: &std::path::Path) -> Vec<(&'static str, Manners, Due)> {
    let good = authority.sign(folder, "good", &["127.0.0.1"]);
    let expired = authority.sign_expired(folder, "expired", &["127.0.0.1"]);
    let tls = |files: &crate::harness::Files, replies| Manners {
        certificate: Some(files.clone()),
        replies,
        ..Manners::default()
    };
    vec![
        // Every step says "later": the message waits.
        (
            "greet4",
            greeting("421 4.3.2 greet4".to_owned()),
            Due::Waits("greet4"),
        ),
        (
            "ehlo4",
            replying(&[("EHLO", "450 4.3.2 ehlo4")]),
            Due::Waits("ehlo4"),
        ),
        (
            "mail4",
            replying(&[("MAIL", "451 4.7.1 mail4")]),
            Due::Waits("mail4"),
        ),
        (
            "rcpt4",
            replying(&[("RCPT", "450 4.2.1 rcpt4")]),
            Due::Waits("rcpt4"),
        ),
        (
            "data4",
            replying(&[("DATA", "451 4.3.0 data4")]),
            Due::Waits("data4"),
        ),
        (
            "dot4",
            replying(&[(".", "452 4.3.1 dot4")]),
            Due::Waits("dot4"),
        ),
        (
            "dot421",
            replying(&[(".", "421 4.3.2 dot421")]),
            Due::Waits("dot421"),
        ),
        // Every step says "never": a refused host is left for later, a refused message comes back.
        (
            "greet5",
            greeting("554 5.3.2 greet5".to_owned()),
            Due::Waits("greet5"),
        ),
        (
            "mail5",
            replying(&[("MAIL", "550 5.7.1 mail5")]),
            Due::Returns("5.7.1"),
        ),
        (
            "rcpt5",
            replying(&[("RCPT", "550 5.1.1 rcpt5")]),
            Due::Returns("5.1.1"),
        ),
        (
            "data5",
            replying(&[("DATA", "554 5.6.0 data5")]),
            Due::Returns("5.6.0"),
        ),
        (
            "dot5",
            replying(&[(".", "554 5.7.1 dot5")]),
            Due::Returns("5.7.1"),
        ),
        // Every step cuts.
        ("cutehlo", replying(&[("EHLO", "close")]), Due::Waits("")),
        ("cutmail", replying(&[("MAIL", "close")]), Due::Waits("")),
        ("cutrcpt", replying(&[("RCPT", "close")]), Due::Waits("")),
        ("cutdata", replying(&[("DATA", "close")]), Due::Waits("")),
        ("cutdot", replying(&[(".", "close")]), Due::Waits("")),
        // A malformed reply, or a reply to another command.
        (
            "nonsense",
            greeting("HTTP/1.1 400 Bad Request".to_owned()),
            Due::Waits(""),
        ),
        (
            "digits",
            greeting("999 who knows".to_owned()),
            Due::Waits(""),
        ),
        (
            "endless",
            greeting("220-more\r\n".repeat(100_000)),
            Due::Waits(""),
        ),
        (
            "longline",
            greeting(format!("220 {}", "x".repeat(1_000_000))),
            Due::Waits(""),
        ),
        (
            "early",
            greeting("220 mx\r\n250 ok\r\n250 ok\r\n354 go\r\n250 taken".to_owned()),
            Due::Waits(""),
        ),
        (
            "mail354",
            replying(&[("MAIL", "354 go on")]),
            Due::Waits(""),
        ),
        (
            "data250",
            replying(&[("DATA", "250 taken")]),
            Due::Waits(""),
        ),
        (
            "doubled",
            replying(&[("MAIL", "250 ok\r\n250 ok\r\n250 ok")]),
            Due::Waits(""),
        ),
        // A lie in TLS: opportunistic encryption gives way, unless the lie is an attack.
        (
            "notls",
            tls(&good, &[("STARTTLS", "220 2.0.0 but I do not speak it")]),
            Due::Goes,
        ),
        (
            "refusedtls",
            tls(&good, &[("STARTTLS", "454 4.7.0 not now")]),
            Due::Goes,
        ),
        (
            "cuttls",
            tls(&good, &[("STARTTLS", "close")]),
            Due::Waits(""),
        ),
        (
            "injected",
            tls(&good, &[("STARTTLS", "220 go\r\n250 injected")]),
            Due::Waits(""),
        ),
        ("expired", tls(&expired, &[]), Due::Goes),
        // Slow, but right.
        (
            "drip",
            Manners {
                drip: true,
                ..Manners::default()
            },
            Due::Goes,
        ),
    ]
}

#[test]
fn whatever_a_next_hop_does_is_settled_rightly() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let authority = Authority::new();
    let ca = authority.write(folder.path());
    let cases = cases(&authority, folder.path());
    // A single attempt each: waiting messages are still queued at the end.
    let mut options = Options::default()
        .set("delivery.ca", &quoted(&ca))
        .set("delivery.retry", "[\"1h\"]");
    let mut hops = BTreeMap::new();
    for (name, manners, _) in &cases {
        let mx = Mx::start(manners.clone());
        options = options.route(&format!("{name}.example"), mx.address, "");
        hops.insert(*name, mx);
    }
    let system = System::start(&options);
    for (name, ..) in &cases {
        let to = format!("x@{name}.example");
        system.submit(
            "alice@example.org",
            &[&to],
            &format!("Subject: {name}\r\n\r\nbody"),
        );
    }
    let returned = cases
        .iter()
        .filter(|case| matches!(case.2, Due::Returns(_)));
    let reports: Vec<String> = system
        .wait_mail("alice", returned.count())
        .iter()
        .map(|report| unfold(report))
        .collect();
    for (name, _, due) in &cases {
        let queue = format!("relay:{}", hops[name].address);
        let delivered = || hops[name].messages().len();
        match due {
            Due::Waits(words) => {
                let reply = wait_for(&format!("a failed attempt for {name}"), || {
                    let queues = system.queues();
                    let row = queues.iter().find(|row| row["destination"] == queue)?;
                    let waits = row["messages"] == 1 && row["in_flight"] == 0;
                    row["last_reply"]
                        .as_str()
                        .filter(|_| waits)
                        .map(str::to_owned)
                });
                assert!(reply.contains(words), "{name}: {reply}");
                assert!(reply.len() < 2_000, "{name}: {} octets", reply.len());
            }
            Due::Returns(status) => {
                let to = format!("x@{name}.example");
                let mut about = reports.iter().filter(|report| report.contains(&to));
                let report = about
                    .next()
                    .unwrap_or_else(|| panic!("no report for {name}"));
                assert!(report.contains(&format!("Status: {status}\n")), "{report}");
                assert!(about.next().is_none(), "{name}: one report is enough");
            }
            Due::Goes => {
                hops[name].wait_messages(1);
            }
        }
        assert!(delivered() <= 1, "{name}: sent twice");
    }
    // The gateway is unharmed.
    system.command(&["queue", "list"]);
    system.stop();
}

/// The time-outs are minutes long: meanwhile silent hops delay no other mail, and their messages survive the end of
/// any process.
#[test]
fn hops_that_fall_silent_hold_up_nobody_and_lose_nothing() {
    let hops: Vec<Mx> = [
        greeting("silent".to_owned()),
        replying(&[("EHLO", "silent")]),
        replying(&[("MAIL", "silent")]),
        replying(&[("RCPT", "silent")]),
        replying(&[("DATA", "silent")]),
        replying(&[(".", "silent")]),
    ]
    .map(Mx::start)
    .into();
    let fine = Sink::start();
    let mut options = Options::default().route("fine.test", fine.address, "");
    for (number, hop) in hops.iter().enumerate() {
        options = options.route(&format!("hop{number}.test"), hop.address, "");
    }
    let mut system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let mut submit = |to: &str| {
        let text = format!("Subject: {to}\r\n\r\nbody");
        session.submit("alice@example.org", &[to], &text);
    };
    for number in 0..hops.len() {
        submit(&format!("x@hop{number}.test"));
    }
    wait_until("an attempt at each", || {
        let queues = system.queues();
        let trying = queues.iter().filter(|queue| queue["connections"] == 1);
        trying.count() == hops.len()
    });
    submit("x@fine.test");
    fine.wait_mail(1);
    for hop in &hops {
        let destination = format!("relay:{}", hop.address);
        let to = fine.address.to_string();
        system.command(&["queue", "reroute", &destination, "--to", &to, "--yes"]);
    }
    system.crash();
    let mail = fine.wait_mail(1 + hops.len());
    for number in 0..hops.len() {
        let subject = format!("Subject: x@hop{number}.test");
        let of = mail.iter().filter(|text| text.contains(&subject));
        assert_eq!(of.count(), 1, "{subject}");
    }
    assert!(system.mail("alice").is_empty());
    system.wait_empty();
    system.stop();
}
