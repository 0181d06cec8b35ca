//! What operators do to queues while mail goes on: hold, refuse, try again, return, remove.

use serde_json::Value;

use crate::harness::{
    Options, Session, Sink, System, assert_has, assert_starts, free_address, wait_for, wait_until,
};
use crate::metrics;

/// Sends numbered messages of alice; returns their queue ids.
pub(crate) fn submit(system: &System, count: usize) -> Vec<String> {
    let mut session = Session::greeted(system.smtp);
    let number = |number| {
        session.submit_about(
            "alice@example.org",
            &["x@example.com"],
            format_args!("number {number}"),
        )
    };
    (0..count).map(number).collect()
}

/// The first queue with a given text.
fn queue_with(system: &System, what: &str) -> Value {
    system.wait_queue(what, |queue| !queue[what].is_null() && queue[what] != 0)
}

#[test]
fn what_is_held_stays_over_kill_9_of_everything_until_it_is_released() {
    let sink = Sink::start();
    let mut system = System::start(&Options::to(sink.address));
    let destination = format!("relay:{}", sink.address);
    let said = system.command(&["queue", "hold", &destination]);
    assert_eq!(said, format!("{destination}: held until taken back\n"));
    submit(&system, 3);
    system.crash();
    let queue = queue_with(&system, "held_until");
    assert_eq!(queue["messages"], 3);
    assert_eq!(queue["connections"], 0);
    let orders = system.json(&["queue", "orders"]);
    assert_eq!(orders[0]["destination"], destination.as_str());
    submit(&system, 1);
    let shown = system.json(&["queue", "show", &destination]);
    let messages = shown.as_array().expect("a list");
    assert_eq!(messages.len(), 4);
    assert!(
        messages.iter().all(|message| message["attempts"] == 0),
        "a hold uses up no retries: {shown}"
    );
    assert_eq!(sink.mail().len(), 0);
    system.command(&["queue", "release", &destination]);
    sink.wait_mail(4);
    system.wait_empty();
    assert_eq!(system.command(&["queue", "orders"]), "no orders\n");
}

#[test]
fn mail_for_a_refused_destination_is_answered_450_and_what_is_queued_leaves() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let destination = format!("relay:{}", sink.address);
    system.command(&["queue", "hold", &destination]);
    submit(&system, 1);
    let said = system.json(&["queue", "refuse", &destination, "--for", "1h"]);
    assert!(said["refused_until"].is_string(), "{said}");
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<alice@example.org>", "250");
    let reply = session.command("RCPT TO:<x@example.com>", "450");
    assert_starts(&reply, "450 4.3.2 no mail for this destination now");
    session.command("RCPT TO:<alice@example.org>", "250");
    system.command(&["queue", "release", &destination]);
    sink.wait_mail(1);
    system.command(&["queue", "accept", &destination]);
    session.command("RCPT TO:<x@example.com>", "250");
}

#[test]
fn a_destination_with_as_much_as_may_wait_is_answered_452() {
    let options = Options::to(free_address())
        .set("limits.messages_per_destination_max", "2")
        .set("limits.queued_messages_max", "3");
    let system = System::start(&options);
    submit(&system, 2);
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<a@example.net>", "250");
    let reply = session.command("RCPT TO:<x@example.com>", "452");
    assert_starts(&reply, "452 4.3.1 too much mail waits");
    session.command("RCPT TO:<alice@example.org>", "250");
    session.command("RSET", "250");
    system.command(&["queue", "hold", "local"]);
    session.message("a@example.net", &["alice@example.org"], "A: b\r\n\r\n");
    session.command("MAIL FROM:<a@example.net>", "452 4.3.1");
    system.command(&["queue", "release", "local"]);
    system.wait_mail("alice", 1);
    // The file exists before its message is settled.
    wait_until("room again", || {
        let queues = system.queues();
        queues.iter().all(|queue| queue["destination"] != "local")
    });
    session.command("MAIL FROM:<a@example.net>", "250");
}

#[test]
fn messages_are_tried_again_returned_and_removed_by_hand() {
    let address = free_address();
    let options = Options::to(address).set("delivery.retry", "[\"1h\"]");
    let system = System::start(&options);
    let ids = submit(&system, 4);
    let destination = format!("relay:{address}");
    queue_with(&system, "deferred");

    let said = system.refused(&["queue", "purge", &destination]);
    assert_has(&said, &["4 messages", "add --yes"]);
    for verb in ["purge", "bounce", "expire", "retry"] {
        let would = system.json(&["queue", verb, &destination, "--dry-run"]);
        assert_eq!(would["messages"], 4, "{verb}: {would}");
    }
    let said = system.refused(&["queue", "purge", "nowhere.example", "--yes"]);
    assert!(said.contains("no queue nowhere.example"), "{said}");
    let said = system.command(&["queue", "purge", "--all", "--id", &ids[3], "--yes"]);
    assert_eq!(said, "1 message removed\n");
    assert!(system.command(&["trace", &ids[3]]).contains("purged"));

    let none = [
        "queue",
        "bounce",
        "--all",
        "--sender",
        "b@example.org",
        "--yes",
    ];
    assert_eq!(
        system.command(&none),
        "0 messages returned to their senders\n"
    );
    let bounce = ["queue", "bounce", &destination, "--id", &ids[2], "--yes"];
    assert_eq!(
        system.command(&bounce),
        "1 message returned to their senders\n"
    );
    let report = system.wait_mail("alice", 1).remove(0);
    assert_has(&report, &["returned by order of an operator"]);
    let silent = [
        "queue",
        "expire",
        &destination,
        "--id",
        &ids[1],
        "--recipient",
        "X@example.com",
        "--no-report",
        "--yes",
    ];
    assert_eq!(system.json(&silent)["messages"], 1);

    let sink = Sink::start_at(address, &[]);
    system.command(&["queue", "retry", &destination]);
    let arrived = sink.wait_mail(1);
    assert!(arrived[0].contains("Subject: number 0"), "{}", arrived[0]);
    system.wait_empty();
    system.wait_mail("alice", 1);
}

#[test]
fn mail_goes_another_way_over_kill_9_of_everything_until_that_is_undone() {
    let dead = free_address();
    let sink = Sink::start();
    let options = Options::to(dead).set("delivery.retry", "[\"1h\"]");
    let mut system = System::start(&options);
    let destination = format!("relay:{dead}");
    submit(&system, 2);
    queue_with(&system, "deferred");
    let there = sink.address.to_string();
    let own = destination.as_str();
    let reroute = ["queue", "reroute", own];
    let said = system.refused(&[&reroute[..], &["--to", &there]].concat());
    assert_has(&said, &["2 messages", "add --yes"]);
    for (name, way) in [("local", there.as_str()), (destination.as_str(), "local")] {
        let flag = if way == "local" { "--mx" } else { "--to" };
        system.refused(&["queue", "reroute", name, flag, way, "--yes"]);
    }
    system.command(&["queue", "hold", &destination]);
    system.command(&[&reroute[..], &["--to", &there, "--yes"]].concat());
    system.crash();
    let way = format!("relay:{there}");
    assert_eq!(queue_with(&system, "way")["way"], way.as_str());
    system.command(&["queue", "release", &destination]);
    system.command(&["queue", "retry", &destination]);
    sink.wait_mail(2);
    // New mail goes to the new destination too.
    submit(&system, 1);
    sink.wait_mail(3);
    system.command(&[&reroute[..], &["--undo", "--yes"]].concat());
    assert_eq!(system.command(&["queue", "orders"]), "no orders\n");
    // The open connection is not used any more.
    submit(&system, 1);
    queue_with(&system, "deferred");
    let own = Sink::start_at(dead, &[]);
    system.command(&["queue", "retry", &destination]);
    own.wait_mail(1);
    assert_eq!(sink.mail().len(), 3);
    let said = system.command(&[&reroute[..], &["--to", &there, "--for", "1s", "--yes"]].concat());
    assert!(said.contains(&format!("by way of {way} until 2")), "{said}");
    wait_until("the end of an order", || {
        let orders = system.command(&["queue", "orders"]);
        orders == "no orders\n"
    });
    submit(&system, 1);
    own.wait_mail(2);
}

#[test]
fn another_way_that_takes_no_mail_at_all_returns_nothing_to_its_sender() {
    let sink = Sink::start();
    let options = Options::to(sink.address)
        .set("delivery.retry", "[\"1h\"]")
        .record("null.example MX 0 .");
    let system = System::start(&options);
    let destination = format!("relay:{}", sink.address);
    for (domain, said) in [
        ("null.example", "null MX"),
        ("none.example", "does not exist"),
    ] {
        system.command(&["queue", "hold", &destination]);
        submit(&system, 2);
        system.command(&["queue", "reroute", &destination, "--mx", domain, "--yes"]);
        system.command(&["queue", "release", &destination]);
        let queue = wait_for("a pause", || {
            let mut queues = system.queues().into_iter();
            queues.find(|queue| {
                let last = queue["last_reply"].as_str().unwrap_or_default();
                last.contains(said) && queue["paused_until"].is_string()
            })
        });
        assert_eq!(queue["messages"], 2, "{queue}");
        // The operator sees the mistyped route, and no other host has heard of the mail.
        system.command(&["queue", "reroute", &destination, "--undo", "--yes"]);
        // A message tried meanwhile waits for its next attempt.
        system.command(&["queue", "retry", &destination]);
        system.wait_empty();
    }
    sink.wait_mail(4);
    assert_eq!(system.mail("alice").len(), 0);
}

#[test]
fn the_intake_is_throttled_before_the_nodes_are_full() {
    let endpoint = free_address();
    let sink = Sink::start();
    // A segment of 4 MiB is 7 % of the least memory that a node has.
    let options = Options::to(sink.address)
        .set("metrics.listen", &format!("\"{endpoint}\""))
        .set("spool.memory_max", "\"16 MiB\"")
        .set("spool.spill_max", "\"0 MiB\"")
        .set("limits.throttle_from", "20")
        .set("limits.throttle_until", "16");
    let system = System::start(&options);
    let destination = format!("relay:{}", sink.address);
    system.command(&["queue", "hold", &destination]);
    let text = format!("Subject: a\r\n\r\n{}", "A line of it.\r\n".repeat(70_000));
    let mut session = Session::greeted(system.smtp);
    wait_until("nodes to be full enough", || {
        let reply = session.offer("a@example.net", "x@example.com", &text);
        assert!(
            reply.starts_with("250") || reply.starts_with("452 4.3.1"),
            "{reply}"
        );
        reply.starts_with("452")
    });
    system.wait_log(&["intake throttled", "spool.memory_max"]);
    let frame = system.command(&["queue", "top", "--once", "--interval", "200ms"]);
    assert_has(
        &frame,
        &["intake throttled: room of a spool node", "fullest node"],
    );
    metrics::assert_lines(endpoint, &["vere_smtp_throttled 1"]);
    let stat = system.command(&["spool", "stat", "--json"]);
    assert!(stat.contains("\"fill_percent\""), "{stat}");

    system.command(&["queue", "purge", &destination, "--yes"]);
    wait_for("room", || Session::try_connect(system.smtp).ok());
    system.wait_log(&["intake throttling ended"]);
    system.command(&["queue", "release", &destination]);
    system.submit("alice@example.org", &["x@example.com"], "A: b\r\n\r\nc");
    sink.wait_mail(1);
}

#[test]
fn the_intake_is_throttled_before_queues_are_full_and_opens_again_well_below() {
    let endpoint = free_address();
    let sink = Sink::start();
    let options = Options::to(sink.address)
        .set("metrics.listen", &format!("\"{endpoint}\""))
        .set("limits.queued_messages_max", "10")
        .set("limits.throttle_from", "80")
        .set("limits.throttle_until", "50");
    let system = System::start(&options);
    let destination = format!("relay:{}", sink.address);
    system.command(&["queue", "hold", &destination]);
    let ids = submit(&system, 7);
    let mut open = Session::greeted(system.smtp);
    open.submit("alice@example.org", &["x@example.com"], "A: b\r\n\r\nc");
    open.command("MAIL FROM:<alice@example.org>", "452 4.3.1");
    let mut turned_away = Session::open(system.smtp).expect("a connection");
    let greeting = turned_away.reply();
    assert!(greeting.starts_with("421 4.3.2"), "{greeting}");
    system.wait_log(&["intake throttled", "limits.queued_messages_max"]);
    let frame = system.command(&["queue", "top", "--once", "--interval", "200ms"]);
    let line = "intake throttled: limits.queued_messages_max";
    assert!(frame.contains(line), "{frame}");
    let refused = "vere_smtp_connections_refused_total{reason=\"pressure\"} 1";
    metrics::assert_lines(endpoint, &["vere_smtp_throttled 1", refused]);
    // Five of ten is below the beginning, and not yet the end.
    for id in &ids[..3] {
        open.command("MAIL FROM:<alice@example.org>", "452 4.3.1");
        system.command(&["queue", "purge", &destination, "--id", id, "--yes"]);
    }
    open.command("MAIL FROM:<alice@example.org>", "452 4.3.1");
    system.command(&["queue", "purge", &destination, "--id", &ids[3], "--yes"]);
    open.command("MAIL FROM:<alice@example.org>", "250");
    Session::greeted(system.smtp);
    system.wait_log(&["intake throttling ended"]);
    system.command(&["queue", "release", &destination]);
    sink.wait_mail(4);
}

#[test]
fn an_order_that_is_about_nothing_is_refused_and_says_where_the_mail_goes() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let destination = format!("relay:{}", sink.address);
    for words in [
        &["hold", "example.com"][..],
        &["refuse", "example.com"],
        &["reroute", "example.com", "--to", "127.0.0.1:9", "--yes"],
        &["show", "example.com"],
        &["retry", "example.com"],
    ] {
        let (code, said) = system.failing_command(&[&["queue"][..], words].concat());
        let goes = format!("no queue example.com: mail for it goes to {destination}");
        assert!(code == Some(1) && said.contains(&goes), "{words:?}: {said}");
    }
    let (_, said) = system.failing_command(&["queue", "refuse", "relay:127.0.0.1:1"]);
    assert!(said.contains("no queue relay:127.0.0.1:1"), "{said}");
    for (words, what) in [
        (["release", "nope.example"], "is not held"),
        (["accept", destination.as_str()], "is not refused"),
    ] {
        let (_, said) = system.failing_command(&[&["queue"][..], &words].concat());
        assert!(said.contains(what), "{said}");
    }
    assert_eq!(system.command(&["queue", "orders"]), "no orders\n");
    system.command(&["queue", "hold", "example.com", "--ahead"]);
    system.command(&["queue", "release", "example.com"]);
    // Where mail goes by a route, an order may come before the first message.
    system.command(&["queue", "refuse", &destination]);
    system.command(&["queue", "accept", &destination]);
}

#[test]
fn what_operators_do_is_logged_with_who_and_to_what() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let destination = format!("relay:{}", sink.address);
    system.command(&["queue", "hold", &destination, "--for", "1h"]);
    let ids = submit(&system, 3);
    let purge = |words: &[&str]| {
        let all = [&["queue", "purge"][..], words, &["--yes"]].concat();
        system.command(&all)
    };
    assert_eq!(purge(&["--id", &ids[0]]), "1 message removed\n");
    assert_eq!(
        purge(&[&destination, "--recipient", "@b.example"]),
        "0 messages removed\n"
    );
    assert_eq!(
        purge(&[&destination, "--recipient", "example.com"]),
        "2 messages removed\n"
    );
    system.command(&["queue", "release", &destination]);
    let own = std::fs::metadata("/proc/self").expect("our process");
    let uid = format!("uid={} verb=", std::os::unix::fs::MetadataExt::uid(&own));
    let queue = format!("queue={destination}");
    let id = format!("queue_id={}", ids[0]);
    system.wait_log(&["operator", &uid, "verb=hold", &queue, "seconds=3600"]);
    system.wait_log(&["operator", &uid, "verb=purge queue=all", &id, "messages=1"]);
    system.wait_log(&[
        "operator",
        &uid,
        "verb=purge",
        &queue,
        "rcpt=example.com",
        "messages=2",
    ]);
    system.wait_log(&["operator", &uid, "verb=release", &queue]);
    let log = system.log();
    assert_eq!(
        log.matches(" operator uid=").count(),
        5,
        "questions are none: {log}"
    );
}

#[test]
fn mail_for_a_next_hop_that_no_route_names_any_more_is_told_of() {
    let sink = Sink::start();
    let dead = free_address();
    let system = System::start(&Options::to(dead));
    submit(&system, 1);
    queue_with(&system, "messages");
    system.reconfigure(&Options::to(sink.address));
    let name = format!("relay:{dead}");
    system.wait_log(&["no route names this next hop", &name, "messages=1"]);
    let listed = system.command(&["queue", "list"]);
    assert!(listed.contains("(no route names it)"), "{listed}");
    let to = sink.address.to_string();
    system.command(&["queue", "reroute", &name, "--to", &to, "--yes"]);
    system.command(&["queue", "retry", &name]);
    sink.wait_mail(1);
}

/// More messages than in one pass, from several clients at the same time.
#[test]
fn an_order_meets_every_message_of_a_large_queue() {
    let (sink, dead) = (Sink::start(), free_address());
    let options = Options::default()
        .route("example.com", sink.address, "")
        .route("dead.test", dead, "");
    let system = System::start(&options);
    let destination = format!("relay:{}", sink.address);
    system.command(&["queue", "hold", &destination]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| submit(&system, 300));
        }
    });
    let counted = ["queue", "purge", &destination, "--json"];
    let (_, said) = system.failing_command(&counted);
    assert!(said.contains("1200 messages"), "{said}");
    let mine = ["queue", "purge", &destination, "--yes"];
    let purged = [&mine[..], &["--sender", "nobody@example.org"]].concat();
    assert_eq!(system.json(&purged)["messages"], 0);
    assert_eq!(system.json(&mine)["messages"], 1_200);
    system.wait_empty();
    system.command(&["queue", "release", &destination]);
    submit(&system, 1);
    sink.wait_mail(1);
}
