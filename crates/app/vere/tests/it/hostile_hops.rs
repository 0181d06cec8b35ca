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

/// A name, the next hop of that name, and the outcome of mail for it.
type Case = (&'static str, Manners, Due);

/// One unusual reply.
fn replying(command: &'static str, reply: &'static str) -> Manners {
    Manners {
        replies: Vec::leak(vec![(command, reply)]),
        ..Manners::default()
    }
}

fn greeting(text: String) -> Manners {
    Manners {
        greeting: Some(text.leak()),
        ..Manners::default()
    }
}

/// A reply that says "later", with the name in it.
fn later(name: &'static str, command: &'static str, reply: &'static str) -> Case {
    (name, replying(command, reply), Due::Waits(name))
}

/// A reply that says "never" by its status.
fn never(name: &'static str, command: &'static str, reply: &'static str) -> Case {
    let status = reply.split(' ').nth(1).expect("a status");
    (name, replying(command, reply), Due::Returns(status))
}

/// A reply that belongs to no dialogue.
fn odd(name: &'static str, command: &'static str, reply: &'static str) -> Case {
    (name, replying(command, reply), Due::Waits(""))
}

fn cut(name: &'static str, command: &'static str) -> Case {
    odd(name, command, "close")
}

fn odd_greeting(name: &'static str, text: impl Into<String>) -> Case {
    (name, greeting(text.into()), Due::Waits(""))
}

fn refusing_greeting(name: &'static str, text: &str) -> Case {
    (name, greeting(text.to_owned()), Due::Waits(name))
}

fn cases(authority: &Authority) -> Vec<Case> {
    let good = authority.sign("good", &["127.0.0.1"]);
    let expired = authority.sign_expired("expired", &["127.0.0.1"]);
    let tls = |name, reply, due| {
        let manners = Manners {
            certificate: Some(good.clone()),
            ..replying("STARTTLS", reply)
        };
        (name, manners, due)
    };
    let of_years_ago = Manners {
        certificate: Some(expired),
        ..Manners::default()
    };
    let dripping = Manners {
        drip: true,
        ..Manners::default()
    };
    vec![
        // Every step says "later": the message waits.
        refusing_greeting("greet4", "421 4.3.2 greet4"),
        later("ehlo4", "EHLO", "450 4.3.2 ehlo4"),
        later("mail4", "MAIL", "451 4.7.1 mail4"),
        later("rcpt4", "RCPT", "450 4.2.1 rcpt4"),
        later("data4", "DATA", "451 4.3.0 data4"),
        later("dot4", ".", "452 4.3.1 dot4"),
        later("dot421", ".", "421 4.3.2 dot421"),
        // Every step says "never": a refused host is left for later, a refused message comes back.
        refusing_greeting("greet5", "554 5.3.2 greet5"),
        never("mail5", "MAIL", "550 5.7.1 mail5"),
        never("rcpt5", "RCPT", "550 5.1.1 rcpt5"),
        never("data5", "DATA", "554 5.6.0 data5"),
        never("dot5", ".", "554 5.7.1 dot5"),
        // Every step cuts.
        cut("cutehlo", "EHLO"),
        cut("cutmail", "MAIL"),
        cut("cutrcpt", "RCPT"),
        cut("cutdata", "DATA"),
        cut("cutdot", "."),
        // A malformed reply, or a reply to another command.
        odd_greeting("nonsense", "HTTP/1.1 400 Bad Request"),
        odd_greeting("digits", "999 who knows"),
        odd_greeting("endless", "220-more\r\n".repeat(100_000)),
        odd_greeting("longline", format!("220 {}", "x".repeat(1_000_000))),
        odd_greeting("early", "220 mx\r\n250 ok\r\n250 ok\r\n354 go\r\n250 taken"),
        odd("mail354", "MAIL", "354 go on"),
        odd("data250", "DATA", "250 taken"),
        odd("doubled", "MAIL", "250 ok\r\n250 ok\r\n250 ok"),
        // A lie in TLS: opportunistic encryption gives way, unless the lie is an attack.
        tls("notls", "220 2.0.0 but I do not speak it", Due::Goes),
        tls("refusedtls", "454 4.7.0 not now", Due::Goes),
        tls("cuttls", "close", Due::Waits("")),
        tls("injected", "220 go\r\n250 injected", Due::Waits("")),
        ("expired", of_years_ago, Due::Goes),
        // Slow, but right.
        ("drip", dripping, Due::Goes),
    ]
}

#[test]
fn whatever_a_next_hop_does_is_settled_rightly() {
    let authority = Authority::new();
    let cases = cases(&authority);
    // A single attempt each: waiting messages are still queued at the end.
    let mut options = Options::default()
        .set("delivery.ca", &quoted(&authority.ca))
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
        system.submit_about("alice@example.org", &[&to], name);
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
}

/// The time-outs are minutes long: meanwhile silent hops delay no other mail, and their messages survive the end of
/// any process.
#[test]
fn hops_that_fall_silent_hold_up_nobody_and_lose_nothing() {
    let mut hops = vec![Mx::start(greeting("silent".to_owned()))];
    let silent = ["EHLO", "MAIL", "RCPT", "DATA", "."];
    hops.extend(silent.map(|command| Mx::start(replying(command, "silent"))));
    let fine = Sink::start();
    let mut options = Options::default().route("fine.test", fine.address, "");
    for (number, hop) in hops.iter().enumerate() {
        options = options.route(&format!("hop{number}.test"), hop.address, "");
    }
    let mut system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let mut submit = |to: &str| {
        session.submit_about("alice@example.org", &[to], to);
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
}
