//! Guides about mail that waits, and about other systems.

use super::Operator;
use crate::harness::{Authority, Manners, Mx, Options, System, free_address, quoted};

/// Exit codes of a destination that does not answer, and of a wrong password.
const CLOSED: &[(&str, &[i32])] = &[("vere dial", &[3]), ("vere auth test", &[3])];

/// A system to whose destination example.com no connection is possible.
pub(super) fn closed() -> Options {
    Options::default()
        .set("delivery.port", &free_address().port().to_string())
        .set("delivery.retry", "[\"1h\"]")
        .record("example.com MX 10 mx.example.com")
        .record("mx.example.com A 127.0.0.1")
}

/// Such a system with two messages that wait, and the queue id of the first.
fn waiting() -> (System, String) {
    let system = System::start(&closed());
    let id = system.submit_about("alice@example.org", &["x@example.com"], "one");
    system.submit_about("alice@example.org", &["someone@example.com"], "two");
    system.wait_last_reply("cannot connect");
    (system, id)
}

#[test]
fn queues_are_held_rerouted_and_emptied() {
    let (system, id) = waiting();
    if let Some(mut operator) = Operator::of(&system, &[(" ID", &format!(" {id}"))], CLOSED) {
        operator.follow("queues");
    }
}

#[test]
fn trouble_is_found() {
    let (system, id) = waiting();
    system.submit_about("x@example.net", &["alice@example.org"], "three");
    let texts = [
        (" ID", &*format!(" {id}")),
        ("ADDRESS", "alice@example.org"),
    ];
    if let Some(mut operator) = Operator::of(&system, &texts, CLOSED) {
        operator.follow("troubleshooting");
    }
}

#[test]
fn mail_leaves_by_a_smarthost_with_tls() {
    let authority = Authority::new();
    let mx = Mx::start(Manners {
        certificate: Some(authority.sign("mx", &["mx.example.com"])),
        ..Manners::default()
    });
    // The same port of another address is closed.
    let options = Options::default()
        .set("delivery.port", &mx.port().to_string())
        .set("delivery.ca", &quoted(&authority.ca))
        .set("delivery.retry", "[\"1h\"]")
        .record("elsewhere.example MX 10 mx.example.com")
        .record("mx.example.com A 127.0.0.1")
        .record("example.com MX 10 away.example.com")
        .record("away.example.com A 127.0.0.77");
    let system = System::start(&options);
    let texts = [
        ("192.0.2.1 ", "127.0.0.1 "),
        ("example.com", "elsewhere.example"),
    ];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("tls");
    }
    system.submit_about("alice@example.org", &["x@example.com"], "one");
    system.wait_last_reply("cannot connect");
    system.configure(&options.route("*", mx.address, ""));
    let address = mx.address.to_string();
    let texts = [
        ("smtp.provider.example:587", &*address),
        ("smtp.provider.example", "127.0.0.1"),
        ("[192.0.2.25]:587", &*format!("[127.0.0.1]:{}", mx.port())),
    ];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("smarthost");
    }
}
