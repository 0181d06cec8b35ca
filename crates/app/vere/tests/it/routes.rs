//! Mail that waits while the routes change by a reload.

use std::net::SocketAddr;

use crate::harness::{Options, Session, Sink, System, free_address, wait_for};

/// Waits a long time for the next attempt, so that what leaves soon left by its new route.
fn patient(options: Options) -> Options {
    options.set("delivery.retry", "[\"1h\"]")
}

fn submit(system: &System, to: &[&str], number: usize) -> String {
    let text = format!("Subject: number {number}\r\n\r\nbody");
    Session::greeted(system.smtp).submit("a@example.net", to, &text)
}

/// So many wait, and the next hop was tried in vain.
fn wait_tried(system: &System, count: u64) {
    wait_for("a failed attempt", || {
        let queues = system.queues();
        let sum = |what: &str| queues.iter().filter_map(|queue| queue[what].as_u64()).sum();
        let tried = queues.iter().any(|queue| queue["last_reply"].is_string());
        let (messages, in_flight): (u64, u64) = (sum("messages"), sum("in_flight"));
        (tried && messages == count && in_flight == 0).then_some(())
    });
}

fn numbers(sink: &Sink) -> Vec<String> {
    let mail = sink.mail();
    let lines = mail.iter().flat_map(|text| text.lines());
    let found = lines.filter_map(|line| line.strip_prefix("Subject: number "));
    let mut found: Vec<_> = found.map(str::to_owned).collect();
    found.sort();
    found
}

#[test]
fn what_waits_for_a_next_hop_that_was_corrected_leaves_by_the_new_one() {
    let dead = free_address();
    let system = System::start(&patient(Options::to(dead)));
    let ids: Vec<_> = (0..3)
        .map(|number| submit(&system, &["x@example.com"], number))
        .collect();
    wait_tried(&system, 3);
    let sink = Sink::start();
    system.configure(&patient(Options::to(sink.address)));
    system.reload();
    sink.wait_mail(3);
    assert_eq!(numbers(&sink), ["0", "1", "2"]);
    system.wait_empty();
    system.wait_log(&["moved to where its route leads now", "messages=3"]);
    let trace = system.command(&["trace", &ids[0]]);
    let (from, to) = (format!("relay:{dead}"), format!("relay:{}", sink.address));
    assert!(trace.contains(&from) && trace.contains(&to), "{trace}");
    assert!(
        !system
            .log()
            .contains("no route names this next hop any more")
    );
    system.stop();
}

#[test]
fn recipients_of_one_message_part_by_what_routes_say_of_their_domains() {
    let dead = free_address();
    let options = |a: SocketAddr, b: SocketAddr| {
        let options = patient(Options::default()).route("a.example", a, "");
        options.route("b.example", b, "")
    };
    let system = System::start(&options(dead, dead));
    let both = ["x@a.example", "y@b.example"];
    submit(&system, &both, 0);
    submit(&system, &both[1..], 1);
    wait_tried(&system, 2);
    // The old next hop is named still, by one of the two.
    let sink = Sink::start();
    system.configure(&options(sink.address, dead));
    system.reload();
    sink.wait_mail(1);
    assert_eq!(numbers(&sink), ["0"]);
    let queues = wait_for("the other recipient", || {
        let queues = system.queues();
        let waiting = queues.iter().filter_map(|queue| queue["messages"].as_u64());
        (waiting.sum::<u64>() == 2).then_some(queues)
    });
    let waiting: Vec<_> = queues
        .iter()
        .filter(|queue| queue["messages"] != 0)
        .map(|queue| queue["destination"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(waiting, [format!("relay:{dead}")]);
    let own = Sink::start_at(dead, &[]);
    system.command(&["queue", "retry", &format!("relay:{dead}")]);
    own.wait_mail(2);
    assert_eq!(numbers(&own), ["0", "1"]);
    system.wait_empty();
    assert_eq!(sink.mail().len(), 1);
    system.stop();
}

#[test]
fn a_kill_while_mail_moves_loses_and_doubles_none() {
    let dead = free_address();
    let mut system = System::start(&patient(Options::to(dead)));
    let destination = format!("relay:{dead}");
    system.command(&["queue", "hold", &destination]);
    for number in 10..50 {
        submit(&system, &["x@example.com"], number);
    }
    let next = free_address();
    system.configure(&patient(Options::to(next)));
    system.command(&["queue", "release", &destination]);
    system.reload();
    wait_for("the first that moved", || {
        let queues = system.queues();
        let to = format!("relay:{next}");
        queues
            .iter()
            .any(|queue| queue["destination"] == to.as_str())
            .then_some(())
    });
    system.crash();
    // What the kill kept from moving does so at the start.
    let sink = Sink::start_at(next, &[]);
    wait_for("all of them", || {
        // One may have met the next hop before it was there.
        system.command(&["queue", "retry", "--all"]);
        (sink.mail().len() >= 40).then_some(())
    });
    system.wait_empty();
    let wanted: Vec<_> = (10..50).map(|number| number.to_string()).collect();
    assert_eq!(numbers(&sink), wanted);
    system.stop();
}

#[test]
fn what_an_operator_holds_stays_and_is_told_of() {
    let sink = Sink::start();
    let dead = free_address();
    let system = System::start(&Options::to(dead));
    let name = format!("relay:{dead}");
    system.command(&["queue", "hold", &name]);
    submit(&system, &["x@example.com"], 0);
    system.configure(&Options::to(sink.address));
    system.reload();
    system.wait_log(&["no route names this next hop", &name, "messages=1"]);
    let listed = system.command(&["queue", "list"]);
    assert!(listed.contains("(no route names it)"), "{listed}");
    // An order for the destination itself: the mail stays, and goes by what was ordered.
    let to = sink.address.to_string();
    system.command(&["queue", "reroute", &name, "--to", &to, "--yes"]);
    system.command(&["queue", "release", &name]);
    sink.wait_mail(1);
    system.stop();
}

#[test]
fn a_message_that_is_held_moves_and_is_held_there() {
    let sink = Sink::start();
    let dead = free_address();
    let system = System::start(&patient(Options::to(dead)));
    let ids: Vec<_> = (0..2)
        .map(|number| submit(&system, &["x@example.com"], number))
        .collect();
    wait_tried(&system, 2);
    system.command(&["queue", "hold", "--id", &ids[0]]);
    system.configure(&patient(Options::to(sink.address)));
    system.reload();
    sink.wait_mail(1);
    assert_eq!(numbers(&sink), ["1"]);
    let name = format!("relay:{}", sink.address);
    wait_for("the held one", || {
        let shown = system.command(&["queue", "show", &ids[0], "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let (at, state) = (&shown[0]["destination"], &shown[0]["state"]);
        (*at == name.as_str() && *state == "held").then_some(())
    });
    system.command(&["queue", "release", "--id", &ids[0]]);
    sink.wait_mail(2);
    system.wait_empty();
    system.stop();
}
