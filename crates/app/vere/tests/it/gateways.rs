//! Several gateways that share nodes and register.

use crate::harness::{Options, Session, Sink, System, free_address, quoted, wait_for};
use crate::replicas::{states, wait_states};

/// Settings of another gateway with the nodes and the register of this one.
pub(crate) fn beside(first: &System, options: Options, name: &str) -> Options {
    let data = first.directory.path().join("data");
    let elsewhere = "runs = \"elsewhere\"";
    options
        .node("a", first.nodes[0], elsewhere)
        .node("b", first.nodes[1], elsewhere)
        .set("spool.secret", &quoted(&data.join("spool.key")))
        .set("cluster.folder", &quoted(&data.join("register")))
        .set("gateway.name", &format!("\"{name}\""))
}

fn submit(system: &System, subject: &str) {
    let text = format!("Subject: {subject}\r\n\r\nbody");
    Session::greeted(system.smtp).submit("a@example.net", &["x@example.com"], &text);
}

#[test]
fn two_gateways_on_the_same_nodes_have_queues_of_their_own() {
    let next_hop = free_address();
    let first = System::start(&Options::to(next_hop));
    let second = System::start(&beside(&first, Options::to(next_hop), "second"));
    wait_states(&first, ["sync", "sync"]);
    wait_states(&second, ["sync", "sync"]);
    submit(&first, "one");
    submit(&second, "two");
    submit(&second, "three");
    assert_eq!((first.queued(), second.queued()), (1, 2));
    for (group, records) in [("gateway", 1), ("second", 2)] {
        let text = first.command(&["spool", "stat", "--group", group, "--json"]);
        let stat: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let nodes = stat["nodes"].as_array().expect("nodes");
        assert_eq!(nodes.len(), 2);
        assert!(
            nodes.iter().all(|node| node["records"] == records),
            "{text}"
        );
    }
    // Each takes back what is its own, and neither takes anything from the other.
    second.kill_and_wait("gateway");
    wait_for("the second gateway's queues", || {
        (second.queued_if_up() == Some(2)).then_some(())
    });
    submit(&first, "four");
    assert_eq!(first.queued(), 2);
    assert_eq!(states(&first).len(), 2);
    let sink = Sink::start_at(next_hop, &[]);
    wait_for("all four", || (sink.mail().len() >= 4).then_some(()));
    let mut subjects: Vec<String> = sink.mail().iter().map(|text| subject(text)).collect();
    subjects.sort();
    assert_eq!(subjects, ["four", "one", "three", "two"]);
    second.stop();
    first.wait_empty();
    first.stop();
}

fn subject(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("Subject: "));
    line.unwrap_or_default().to_owned()
}

#[test]
fn a_gateway_of_a_name_that_lives_does_not_begin_and_the_first_goes_on() {
    let next_hop = free_address();
    let mut first = System::start(&Options::to(next_hop));
    wait_states(&first, ["sync", "sync"]);
    let (status, log) = System::failing_start(&beside(&first, Options::to(next_hop), "gateway"));
    assert!(!status.success(), "{status}");
    let text = "another gateway named gateway lives";
    assert!(log.contains(text), "{log}");
    submit(&first, "one");
    assert!(!first.log().contains("taken the group over"));
    // Stopped in order, killed, and all at once: it delivers at once again, though its lease is long.
    first.configure(&Options::to(next_hop).set("cluster.lease", "\"10m\""));
    first.restart();
    first.kill_and_wait("gateway");
    wait_for("the gateway", || first.queued_if_up());
    first.crash();
    let sink = Sink::start_at(next_hop, &[]);
    sink.wait_mail(1);
    first.wait_empty();
    first.stop();
}
