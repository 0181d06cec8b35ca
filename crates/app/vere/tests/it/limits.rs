//! Limits towards destinations: rates, connections, and hosts shared by several destinations.

use serde_json::Value;

use crate::harness::{Delay, Options, Session, Sink, System, free_address, wait_for};

fn submit(system: &System, recipient: &str, count: usize) {
    let mut session = Session::greeted(system.smtp);
    for number in 0..count {
        session.submit_about(
            "alice@example.org",
            &[recipient],
            format_args!("number {number}"),
        );
    }
}

fn queue(system: &System, destination: &str) -> Option<Value> {
    let mut queues = system.queues().into_iter();
    queues.find(|queue| queue["destination"] == destination)
}

fn messages(system: &System, destination: &str) -> Vec<Value> {
    system.rows(&["queue", "show", destination])
}

#[test]
fn a_rate_holds_mail_back_without_an_attempt_until_a_reload_lifts_it() {
    let (sink, other) = (Sink::start(), Sink::start());
    let routes = Options::default()
        .route("free.example", other.address, "")
        .route("*", sink.address, "");
    let limits = format!(
        "[[delivery.destination]]\nnext_hop = \"{}\"\nrate = \"2/24h\"\nburst = 2\n",
        sink.address
    );
    let system = System::start(&routes.clone().table(&limits));
    submit(&system, "x@example.com", 6);
    submit(&system, "y@free.example", 6);
    other.wait_mail(6);
    sink.wait_mail(2);
    let destination = format!("relay:{}", sink.address);
    let waiting = wait_for("two are settled", || {
        queue(&system, &destination).filter(|queue| queue["messages"] == 4)
    });
    assert_eq!(waiting["deferred"], 0, "{waiting}");
    assert!(waiting["paused_until"].is_null(), "{waiting}");
    let shown = messages(&system, &destination);
    assert!(
        shown.iter().all(|message| message["attempts"] == 0),
        "{shown:?}"
    );
    system.reconfigure(&routes);
    sink.wait_mail(6);
    system.wait_empty();
}

#[test]
fn connections_to_a_destination_are_as_few_as_its_section_says() {
    let sink = Sink::start();
    // While no octet passes, every begun connection is still there to be counted.
    let delay = Delay::to(sink.address);
    delay.pause();
    let limits = format!(
        "[[delivery.destination]]\nnext_hop = \"{}\"\nconnections_max = 2\n",
        delay.address
    );
    let system = System::start(&Options::to(delay.address).table(&limits));
    submit(&system, "x@example.com", 20);
    let destination = format!("relay:{}", delay.address);
    let seen = wait_for("both are in use", || {
        queue(&system, &destination).filter(|queue| queue["connections"] == 2)
    });
    assert_eq!(seen["connections_max"], 2, "{seen}");
    assert_eq!(seen["site"], delay.address.to_string(), "{seen}");
    delay.go_on();
    sink.wait_mail(20);
    system.wait_empty();
}

#[test]
fn hosts_that_are_down_are_left_alone_by_all_their_domains() {
    let address = free_address();
    let options = Options::default()
        .set("delivery.port", &address.port().to_string())
        .set("delivery.retry", "[\"1h\"]")
        .record("one.example MX 10 mx.shared.example")
        .record("two.example MX 10 mx.shared.example")
        .record("mx.shared.example A 127.0.0.1");
    let system = System::start(&options);
    submit(&system, "x@one.example", 1);
    wait_for("the first one finds out", || {
        queue(&system, "one.example").filter(|queue| !queue["paused_until"].is_null())
    });
    submit(&system, "x@two.example", 3);
    let two = wait_for("the second one is told", || {
        queue(&system, "two.example").filter(|queue| !queue["paused_until"].is_null())
    });
    assert_eq!(two["site"], format!("mx.shared.example:{}", address.port()));
    let shown = messages(&system, "two.example");
    assert!(
        shown.iter().all(|message| message["attempts"] == 0),
        "{shown:?}"
    );
    let sink = Sink::start_at(address, &[]);
    system.command(&["queue", "retry", "two.example"]);
    sink.wait_mail(3);
    // The result of one destination applies to the other: its queue goes on as well.
    system.command(&["queue", "retry", "one.example"]);
    sink.wait_mail(4);
    system.wait_empty();
}

#[test]
fn where_the_order_is_kept_one_that_is_put_off_holds_the_others_also_over_a_crash() {
    let address = free_address();
    let limits =
        format!("[[delivery.destination]]\nnext_hop = \"{address}\"\nin_order = \"yes\"\n");
    let mut system = System::start(&Options::to(address).table(&limits));
    submit(&system, "x@example.com", 3);
    system.crash();
    submit(&system, "x@example.com", 3);
    // The order of arrival is the order of file names: time and number.
    let sink = Sink::start_at(
        address,
        &["rcpt=450 4.3.2 later*2", "dot=451 4.3.0 again*2"],
    );
    let destination = format!("relay:{address}");
    system.command(&["queue", "retry", &destination]);
    sink.wait_mail(6);
    let subjects = sink.in_order().into_iter().map(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Subject: number "));
        line.expect("a subject").to_owned()
    });
    assert_eq!(subjects.collect::<Vec<_>>(), ["0", "1", "2", "0", "1", "2"]);
    system.wait_empty();
}
