//! Couriers: processes that send the gateway's mail. Next hops, senders and operators see no difference from a gateway without couriers.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

use crate::harness::{
    Authority, Manners, Mx, Options, Session, Sink, System, assert_has, free_address, quoted,
    signal, unfold, wait_for, wait_until,
};
use crate::metrics;

/// A system with couriers.
fn with_couriers(options: Options, processes: u32) -> Options {
    options.set("delivery.courier_processes", &processes.to_string())
}

/// Domains whose exchanger is this next hop.
fn with_domains(options: Options, hop: &str, domains: u32) -> Options {
    let (address, port) = hop.rsplit_once(':').expect("an address with a port");
    let options = options
        .set("delivery.port", port)
        .record(&format!("hop.example A {address}"));
    (0..domains).fold(options, |options, number| {
        options.record(&format!("d{number}.example MX 10 hop.example"))
    })
}

fn submit(system: &System, to: &str, subject: &str) -> String {
    system.submit_about("alice@example.org", &[to], subject)
}

#[test]
fn each_recipient_has_its_own_result_and_report() {
    let hop = Mx::start(Manners {
        keywords: &["DSN", "PIPELINING"],
        replies: &[
            ("RCPT TO:<BAD@", "550 5.1.1 nobody here"),
            ("RCPT TO:<LATER@", "450 4.2.1 mailbox busy"),
        ],
        ..Manners::default()
    });
    let endpoint = free_address();
    let options = with_couriers(Options::to(hop.address), 2)
        .set("metrics.listen", &format!("\"{endpoint}\""))
        .set("delivery.retry", "[\"1h\"]");
    let system = System::start(&options);
    assert_eq!(system.role_pids("courier").len(), 2);
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<alice@example.org> RET=HDRS ENVID=e1", "250");
    for (to, notify) in [("good", "SUCCESS"), ("bad", "FAILURE"), ("later", "NEVER")] {
        session.command(
            &format!("RCPT TO:<{to}@example.com> NOTIFY={notify}"),
            "250",
        );
    }
    session.command("DATA", "354");
    session.command("Subject: three\r\n\r\ntext\r\n.", "250");
    let seen = hop.wait_messages(1).remove(0);
    assert!(seen.text.contains("Subject: three"));
    // The next hop has the duty to report success: the parameters arrived there.
    let commands = seen.commands.join("\n");
    assert_has(&commands, &["RET=HDRS ENVID=e1", "NOTIFY=SUCCESS"]);
    let report = unfold(&system.wait_mail("alice", 1)[0]);
    assert_has(
        &report,
        &["Status: 5.1.1\n", "nobody here", "bad@example.com"],
    );
    assert!(!report.contains("good@example.com"), "{report}");
    system.wait_log(&["deferred", "later@example.com", "450 4.2.1 mailbox busy"]);
    // The gateway shows the counts of couriers.
    metrics::wait_lines(
        endpoint,
        &[
            "vere_delivery_connections_begun_total{result=\"open\"} 1",
            "vere_delivery_recipients_total{result=\"relayed\"} 1",
            "vere_delivery_recipients_total{result=\"bounced\"} 1",
            "vere_delivery_recipients_total{result=\"deferred\"} 1",
        ],
    );
}

#[test]
fn policies_of_encryption_and_reloads_reach_the_couriers() {
    let authority = Authority::new();
    let hop = Mx::start(Manners {
        certificate: Some(authority.sign("hop", &["hop.example"])),
        ..Manners::default()
    });
    let endpoint = free_address();
    let next = format!("hop.example:{}", hop.port());
    let options = |ca: bool| {
        let options = with_couriers(Options::default(), 2)
            .set("metrics.listen", &format!("\"{endpoint}\""))
            .record("hop.example A 127.0.0.1")
            .route("*", &next, "tls = \"required\"");
        match ca {
            true => options.set("delivery.ca", &quoted(&authority.ca)),
            false => options,
        }
    };
    let system = System::start(&options(false));
    submit(&system, "x@example.com", "encrypted");
    system.wait_last_reply("TLS handshake failed");
    assert!(hop.messages().is_empty());
    // Each courier learns of the new root.
    system.reconfigure(&options(true));
    let seen = hop.wait_messages(1).remove(0);
    assert_eq!(seen.tls.as_deref(), Some("hop.example"));
    let trace = wait_for("the trace", || {
        let trace = system.command(&["trace", "x@example.com"]);
        trace.contains("delivered").then_some(trace)
    });
    assert_has(&trace, &["TLSv1.3 required", "hop.example [127.0.0.1]"]);
    metrics::wait_lines(
        endpoint,
        &[
            "vere_tls_handshakes_total{side=\"client\",result=\"done\"} 1",
            "vere_tls_policies_total{policy=\"required\",result=\"kept\"} 1",
        ],
    );
}

/// The next hop answers neither to MAIL nor to the end of the text: the gateway tries again by another courier.
#[test]
fn a_killed_courier_loses_nothing() {
    for fault in ["mail=delay:600s*1", "dot=delay:600s*1"] {
        let sink = Sink::with_faults(&[fault]);
        let system = System::start(&with_couriers(Options::to(sink.address), 2));
        let id = submit(&system, "x@example.com", "twice");
        system.wait_queue("an attempt under way", |row| row["in_flight"] == 1);
        wait_until("the message at the next hop", || {
            let trace = system.command(&["trace", &id]);
            trace.contains("attempt")
        });
        system.kill_and_wait("courier");
        system.wait_log(&["courier lost", "attempts=1"]);
        wait_until("the message", || !sink.mail().is_empty());
        system.wait_empty();
        let trace = system.command(&["trace", &id]);
        assert_has(
            &trace,
            &["courier process lost during the attempt", "delivered"],
        );
    }
}

#[test]
fn all_mail_arrives_while_couriers_are_killed() {
    let sink = Sink::start();
    let options = with_couriers(Options::default(), 2);
    let options = with_domains(options, &sink.address.to_string(), 10);
    let system = System::start(&options);
    let mut sent = BTreeSet::new();
    for round in 0..8 {
        for number in 0..10 {
            let subject = format!("message {round} {number}.");
            submit(&system, &format!("x@d{number}.example"), &subject);
            sent.insert(subject);
        }
        if let Some(courier) = system.role_pids("courier").first() {
            signal(*courier, Signal::SIGKILL);
        }
    }
    system.wait_empty();
    let mail = sink.mail().concat();
    let missing: Vec<_> = sent
        .iter()
        .filter(|subject| !mail.contains(*subject))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A courier that stands still is given up before the supervisor ends it. The other courier sends the mail, and the first courier sends
/// nothing of the mail later.
#[test]
fn a_courier_that_stands_still_holds_up_nobody_for_long() {
    let sink = Sink::start();
    let options = with_couriers(Options::default(), 2);
    let options = with_domains(options, &sink.address.to_string(), 8);
    let system = System::start(&options);
    submit(&system, "x@d0.example", "before");
    sink.wait_mail(1);
    let stopped = system.role_pids("courier")[0];
    signal(stopped, Signal::SIGSTOP);
    for number in 0..8 {
        submit(
            &system,
            &format!("x@d{number}.example"),
            &format!("to {number}"),
        );
    }
    wait_until("all mail", || sink.mail().len() >= 9);
    system.wait_empty();
    system.wait_log(&["courier lost"]);
    signal(stopped, Signal::SIGCONT);
    // Two couriers serve again.
    wait_until("two couriers", || {
        let log = system.log();
        log.matches("courier connected").count() >= 3 && system.role_pids("courier").len() == 2
    });
    submit(&system, "x@d0.example", "behind");
    wait_until("the last message", || {
        sink.mail().concat().contains("behind")
    });
}

#[test]
fn couriers_serve_the_next_gateway() {
    let sink = Sink::start();
    let system = System::start(&with_couriers(Options::to(sink.address), 2));
    submit(&system, "x@example.com", "first");
    sink.wait_mail(1);
    let couriers = system.role_pids("courier");
    system.kill_and_wait("gateway");
    wait_until("a greeting", || Session::try_connect(system.smtp).is_ok());
    submit(&system, "x@example.com", "second");
    // The first message may arrive twice: the end of the message may not be recorded.
    wait_until("the second message", || {
        sink.mail().concat().contains("second")
    });
    system.wait_empty();
    assert_eq!(system.role_pids("courier"), couriers);
}

#[test]
fn a_next_hop_that_holds_still_holds_up_no_other() {
    let silent = Mx::start(Manners {
        replies: &[("DATA", "silent")],
        ..Manners::default()
    });
    let sink = Sink::start();
    let options = with_couriers(Options::default(), 1)
        .route("silent.example", silent.address, "")
        .route("*", sink.address, "");
    let mut system = System::start(&options);
    let long = "x".repeat(70) + "\r\n";
    for _ in 0..10 {
        system.submit(
            "alice@example.org",
            &["x@silent.example"],
            &long.repeat(3_000),
        );
    }
    wait_until("attempts under way", || {
        system
            .queues()
            .iter()
            .any(|row| row["in_flight"].as_u64() >= Some(2))
    });
    for number in 0..20 {
        submit(&system, "x@example.com", &format!("number {number}"));
    }
    sink.wait_mail(20);
    // The messages outlive all processes.
    system.restart();
    assert_eq!(system.queued(), 10);
}

/// Mail for local accounts goes to the mail store by a courier as well.
#[test]
fn a_courier_speaks_lmtp_to_the_mail_store() {
    let options = with_couriers(Options::default(), 1)
        .unset("delivery.local")
        .unset("lmtp.listen")
        .set("lmtp.listen", &format!("[\"{}\"]", free_address()));
    let system = System::start(&options);
    submit(&system, "bob@example.org", "local");
    system.wait_empty();
    let trace = system.command(&["trace", "bob@example.org"]);
    assert_has(&trace, &["delivered"]);
    assert!(system.role_pids("courier").len() == 1);
}
