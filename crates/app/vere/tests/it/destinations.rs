//! Queues of destinations come and go; mail for the destinations remains.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use crate::harness::{Options, Session, Sink, System, wait_until, wait_within};

/// The names of the queues at the nodes, without the queues that are no destination.
fn kept(system: &System) -> BTreeSet<String> {
    let stat = system.json(&["spool", "stat", "--queues"]);
    let nodes = stat["nodes"].as_array().cloned().unwrap_or_default();
    let queues = nodes.iter().map(|node| {
        let queues = node["queues"].as_array();
        queues.unwrap_or_else(|| panic!("a node tells no queues: {node}"))
    });
    let names = queues.flatten().filter_map(|queue| queue["name"].as_str());
    names
        .filter(|name| !name.starts_with('@'))
        .map(str::to_owned)
        .collect()
}

/// Domains `d0.example` and so on, all served by a common host.
fn domains(count: usize, host: SocketAddr) -> Options {
    let options = Options::default().set("delivery.port", &host.port().to_string());
    (0..count).fold(
        options.record("mx.example A 127.0.0.1"),
        |options, number| options.record(&format!("d{number}.example MX 10 mx.example")),
    )
}

fn submit(system: &System, recipients: &[String], subject: &str) {
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    system.submit_about("a@example.net", &recipients, subject);
}

fn to(domains: impl IntoIterator<Item = usize>) -> Vec<String> {
    domains
        .into_iter()
        .map(|number| format!("x@d{number}.example"))
        .collect()
}

#[test]
fn queues_without_mail_are_ended_and_made_again() {
    let sink = Sink::start();
    let options = domains(40, sink.address).set("delivery.queue_idle", "\"1s\"");
    let system = System::start(&options);
    submit(&system, &to(0..40), "first");
    sink.wait_mail(40);
    wait_until("an end of all queues", || kept(&system).is_empty());
    submit(&system, &to([7, 3]), "second");
    sink.wait_mail(42);
    system.wait_empty();
}

#[test]
fn empty_queues_make_room_when_there_is_none() {
    let sink = Sink::start();
    // Some of the twenty are no destinations.
    let options = domains(40, sink.address).set("spool.queues_max", "20");
    let system = System::start(&options);
    for number in 0..40 {
        let recipient = format!("x@d{number}.example");
        // A queue cannot end before the end of its connection, kept for the next message.
        wait_until("room for its queue", || {
            let text = "Subject: one of many\r\n\r\nbody";
            let mut session = Session::greeted(system.smtp);
            let reply = session.message("a@example.net", &[&recipient], text);
            let taken = reply.starts_with("250 ");
            assert!(taken || reply.starts_with("452 "), "{reply}");
            taken
        });
        sink.wait_mail(number + 1);
    }
    let kept = kept(&system);
    assert!(!kept.is_empty() && kept.len() <= 20, "{kept:?}");
}

/// No new destination waits for a separate sync, nor for idle connections: the idle connections alone would take
/// ten minutes here.
#[test]
fn mail_for_very_many_new_destinations_leaves_at_once() {
    const DOMAINS: usize = 1_200;
    let sink = Sink::start();
    let shared = domains(DOMAINS / 2, sink.address)
        .set("delivery.connections_per_site_max", "5")
        .set("delivery.connections_max", "40");
    let options = (DOMAINS / 2..DOMAINS).fold(shared, |options, number| {
        options
            .record(&format!("d{number}.example MX 10 mx{number}.example"))
            .record(&format!("mx{number}.example A 127.0.0.1"))
    });
    let mut system = System::start(&options);
    let all: Vec<_> = (0..DOMAINS).collect();
    for some in all.chunks(400) {
        submit(&system, &to(some.iter().copied()), "to all");
    }
    let arrived = || {
        let files = std::fs::read_dir(sink.directory.path()).expect("the sink's folder");
        files.count()
    };
    wait_within(Duration::from_secs(300), "all mail in the sink", || {
        (arrived() >= DOMAINS).then_some(())
    });
    let texts = sink.wait_mail(DOMAINS);
    let to_whom = |text: &String| text.lines().nth(1).unwrap_or_default().to_owned();
    let reached: BTreeSet<String> = texts.iter().map(to_whom).collect();
    assert_eq!(reached.len(), DOMAINS, "each once");
    assert_eq!(kept(&system).len(), DOMAINS);
    // The restart reads as many queues back, and mail finds its queue.
    system.wait_empty();
    system.crash();
    submit(&system, &to((0..DOMAINS).step_by(100)), "to some");
    wait_until("mail for some of them", || {
        let mail = sink.mail();
        let some = mail.iter().filter(|text| subject(text) == "to some");
        let reached: BTreeSet<String> = some.map(to_whom).collect();
        reached.len() == DOMAINS / 100
    });
    assert_eq!(kept(&system).len(), DOMAINS);
}

/// Mail keeps coming for ending queues.
#[test]
fn nothing_is_lost_or_doubled_while_queues_come_and_go() {
    const MESSAGES: usize = 120;
    let sink = Sink::start();
    let options = domains(12, sink.address).set("delivery.queue_idle", "\"1s\"");
    let mut system = System::start(&options);
    for number in 0..MESSAGES {
        // Each pair of domains is idle for about the time after which a queue is forgotten.
        let pair = number / 20 % 6 * 2;
        submit(&system, &to([pair, pair + 1]), &format!("{number:03}"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut seen: Vec<String> = sink
        .wait_mail(2 * MESSAGES)
        .iter()
        .map(|text| subject(text))
        .collect();
    seen.sort_unstable();
    let twice = (0..MESSAGES).flat_map(|number| [number, number]);
    let expected: Vec<_> = twice.map(|number| format!("{number:03}")).collect();
    assert_eq!(seen, expected);
    wait_until("an end of all queues", || kept(&system).is_empty());
    system.crash();
    submit(&system, &to(0..12), "after");
    sink.wait_mail(2 * MESSAGES + 12);
}

fn subject(text: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Subject: "));
    line.unwrap_or_default().to_owned()
}
