//! Single messages that an operator holds and releases, over kill -9 of everything and a takeover.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::gateways::{adopted, dying_and_adopting, kill_for_good};
use crate::harness::{Options, Sink, System, assert_has, free_address, wait_until};
use crate::metrics;
use crate::queues::submit;

/// A message in the form of `vere queue show --json`.
fn shown(system: &System, id: &str) -> Value {
    system.json(&["queue", "show", id])[0].clone()
}

/// The message is held until `until`, without an attempt.
fn assert_held(system: &System, id: &str, until: &Value) {
    let message = shown(system, id);
    let state = (&message["state"], &message["attempts"]);
    assert_eq!(state, (&"held".into(), &0.into()));
    assert_eq!(message["held_until"], *until);
}

/// The message is at `place` among the two in `vere queue orders`, with the same state as in the queue.
fn assert_ordered(system: &System, id: &str, until: &Value, place: usize) {
    let orders = system.json(&["queue", "orders"]);
    assert_eq!(orders.as_array().map(Vec::len), Some(2), "{orders}");
    let (row, message) = (&orders[place], shown(system, id));
    assert_eq!((&row["id"], &row["held_until"]), (&id.into(), until));
    for same in ["destination", "held_since"] {
        assert!(row[same].is_string(), "{row}");
        assert_eq!(row[same], message[same]);
    }
    let said = system.command(&["queue", "orders"]);
    let destination = row["destination"].as_str().unwrap_or_default();
    let line = format!("{id} for {destination}: held since ");
    assert!(said.contains(&line), "{said}");
}

/// The ids in `vere queue show --held`, of all queues or of one.
fn held_alone(system: &System, of: &[&str]) -> Vec<String> {
    let rows = system.json(&[&["queue", "show", "--held"], of].concat());
    let rows = rows.as_array().expect("a list").iter();
    rows.map(|row| {
        assert_eq!(row["state"], "held");
        assert_eq!(row["recipients"][0], "x@example.com");
        row["id"].as_str().expect("an id").to_owned()
    })
    .collect()
}

/// `vere queue show --held` lists both messages, which wait for a common destination.
fn assert_lists(system: &System, destination: &str, held: &[String]) {
    assert_eq!(held_alone(system, &[]), held);
    let first = held_alone(system, &[destination, "--limit", "1"]);
    assert_eq!(first, held[..1]);
    assert_eq!(held_alone(system, &["--after", &held[0]]), held[1..]);
    assert_eq!(held_alone(system, &[&held[1]]), held[1..]);
    let (code, said) = system.failing_command(&["queue", "show", "--held", "none.example"]);
    assert!(code == Some(1) && said.contains("no queue"), "{said}");
}

fn subjects(sink: &Sink) -> Vec<String> {
    let mail = sink.mail();
    let lines = mail.iter().flat_map(|text| text.lines());
    let mut subjects: Vec<_> = lines
        .filter_map(|line| line.strip_prefix("Subject: number "))
        .map(str::to_owned)
        .collect();
    subjects.sort();
    subjects
}

#[test]
fn single_messages_stay_held_over_kill_9_of_everything_while_the_others_leave() {
    let (sink, endpoint) = (Sink::start(), free_address());
    let options = Options::to(sink.address).set("metrics.listen", &format!("\"{endpoint}\""));
    let mut system = System::start(&options);
    let destination = format!("relay:{}", sink.address);
    // No message leaves before the hold.
    system.command(&["queue", "hold", &destination]);
    let ids = submit(&system, 5);
    let said = system.command(&["queue", "hold", &destination, "--id", &ids[1]]);
    assert_eq!(
        said,
        format!("{} for {destination}: held until taken back\n", ids[1])
    );
    let said = system.json(&["queue", "hold", "--id", &ids[2], "--for", "1h"]);
    let row = &said[0];
    assert_eq!(
        (&row["outcome"], &row["in_order"]),
        (&"done".into(), &false.into())
    );
    let until = row["held_until"].clone();
    assert!(until.is_string(), "{said}");
    system.command(&["queue", "hold", "--id", &ids[3], "--for", "1s"]);
    let said = system.refused(&["queue", "hold", "--id", "0000000000001"]);
    assert_has(&said, &["no message 0000000000001 is queued"]);
    // A read writes the trace down; events of the last moment before a kill may be missing.
    let trace = system.command(&["trace", &ids[1]]);
    assert!(trace.contains("held"), "{trace}");
    system.crash();
    let held = system.wait_queue("the queue", |queue| queue["messages"] == 5);
    assert!(held["held"].as_u64() >= Some(2), "{held}");
    system.command(&["queue", "release", &destination]);
    wait_until("the others", || subjects(&sink) == ["0", "3", "4"]);
    let queue = system.wait_queue("the two that are held alone", |queue| {
        queue["messages"] == 2
    });
    assert_eq!(queue["held"], 2);
    assert_held(&system, &ids[1], &"taken back".into());
    assert_held(&system, &ids[2], &until);
    assert_ordered(&system, &ids[1], &"taken back".into(), 0);
    assert_ordered(&system, &ids[2], &until, 1);
    assert!(system.command(&["queue", "list"]).contains("(2 held)"));
    assert_lists(&system, &destination, &ids[1..=2]);
    metrics::wait_lines(endpoint, &["vere_queue_messages_held 2"]);
    let said = system.command(&["queue", "purge", "--all", "--id", &ids[2], "--yes"]);
    assert_eq!(said, "1 message removed\n");
    let said = system.command(&["queue", "release", "--id", &ids[1]]);
    assert_eq!(said, format!("{} for {destination}: goes on\n", ids[1]));
    wait_until("the released one", || {
        subjects(&sink) == ["0", "1", "3", "4"]
    });
    let trace = system.command(&["trace", &ids[1]]);
    assert_has(&trace, &["held", "released"]);
    system.wait_empty();
}

#[test]
fn a_held_message_stays_held_where_its_queue_is_adopted() {
    let next_hop = free_address();
    let (first, second) = dying_and_adopting("[\"*\"]", || {
        Options::to(next_hop).set("delivery.retry", "[\"1s\"]")
    });
    let destination = format!("relay:{next_hop}");
    first.command(&["queue", "hold", &destination]);
    let ids = submit(&first, 3);
    first.command(&["queue", "hold", "--id", &ids[0]]);
    first.command(&["queue", "release", &destination]);
    kill_for_good(&first);
    wait_until("the adopted messages", || adopted(&second) == 3);
    let sink = Sink::start_at(next_hop, &[]);
    wait_until("the others", || subjects(&sink) == ["1", "2"]);
    wait_until("the held one alone", || adopted(&second) == 1);
    let said = second.command(&["queue", "orders"]);
    let line = format!("{} for {destination} (of gateway): held since ", ids[0]);
    assert!(said.contains(&line), "{said}");
    assert_eq!(held_alone(&second, &["--group", "gateway"]), ids[..1]);
    let message = shown(&second, &ids[0]);
    assert_eq!(
        (&message["state"], &message["group"]),
        (&"held".into(), &"gateway".into())
    );
    second.command(&["queue", "release", "--id", &ids[0]]);
    wait_until("the released one", || subjects(&sink) == ["0", "1", "2"]);
}

/// Every order gets its answer, and no order waits without end for an earlier order; begun work is finished.
#[test]
fn orders_do_not_wait_for_a_spool_that_stands_still() {
    let dead = free_address();
    let options = Options::to(dead).set("delivery.retry", "[\"1h\"]");
    let system = System::start(&options);
    let id = submit(&system, 1).remove(0);
    let destination = format!("relay:{dead}");
    wait_until("the first attempt", || {
        shown(&system, &id)["state"] == "deferred"
    });
    assert_eq!(system.signal_role("spool", Signal::SIGSTOP), 2);
    let (_, said) = system.failing_command(&["queue", "hold", &destination]);
    assert!(said.contains("the spool does not answer"), "{said}");
    let (_, said) = system.failing_command(&["queue", "hold", "--id", &id]);
    assert!(said.contains("nothing changed"), "{said}");
    assert_eq!(system.signal_role("spool", Signal::SIGCONT), 2);
    wait_until("the order", || {
        let orders = system.json(&["queue", "orders"]);
        orders[0]["held_until"].is_string()
    });
    system.command(&["queue", "release", &destination]);
    system.command(&["queue", "hold", "--id", &id]);
    assert_eq!(shown(&system, &id)["state"], "held");
}
