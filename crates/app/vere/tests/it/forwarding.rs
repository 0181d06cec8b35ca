//! Mail that an alias forwards to another system, and the reports that come back.

use crate::front::with_front;
use crate::harness::{Options, Session, Sink, System, wait_for};

const ALIAS: &str = "sales@example.org";
const STRANGER: &str = "ann@far.example";

fn start(sink: &Sink, front: bool, srs: &str) -> System {
    let options = Options::to(sink.address)
        .set("relay.networks", "[]")
        .set("delivery.srs", srs);
    let system = System::start(&if front { with_front(options) } else { options });
    let targets = ["alias", "add", ALIAS, "x@remote.example", "bob@example.org"];
    system.command(&targets);
    system
}

/// The value of a field that the sink puts in front of a message.
fn field<'a>(mail: &'a str, name: &str) -> &'a str {
    let line = mail.lines().find_map(|line| line.strip_prefix(name));
    let value = line.expect("the sink's field").trim();
    value.trim_start_matches('<').trim_end_matches('>')
}

/// The mail at the sink with this text, once it is there. What was sent before a kill may come twice.
fn found(sink: &Sink, text: &str) -> String {
    let arrived = || sink.mail().into_iter().find(|mail| mail.contains(text));
    wait_for("the message", arrived)
}

fn forwards_and_brings_back(front: bool) {
    let sink = Sink::start();
    let system = start(&sink, front, "\"yes\"");
    let mut session = Session::greeted(system.smtp);
    session.submit(STRANGER, &[ALIAS], "Subject: there\r\n\r\nText");
    let there = found(&sink, "Subject: there");
    let path = field(&there, "Return-Path:").to_owned();
    assert!(path.starts_with("SRS0="), "{path}");
    assert!(path.ends_with("=far.example=ann@example.org"), "{path}");
    // A mailbox of ours sees the sender.
    let here = &system.wait_mail("bob", 1)[0];
    assert!(!here.contains("SRS0"), "{here}");
    // What comes back, also after kill -9 and in lower case, goes on to the sender.
    let mut system = system;
    system.crash();
    system.restart();
    let mut session = Session::greeted(system.smtp);
    session.submit("", &[&path.to_lowercase()], "Subject: back\r\n\r\nText");
    let back = found(&sink, "Subject: back");
    assert_eq!(field(&back, "X-Envelope-To:"), STRANGER);
    assert_eq!(field(&back, "Return-Path:"), "");
    // Reports alone come back: whoever has seen the address would relay through it.
    let mut session = Session::greeted(system.smtp);
    let relayed = session.offer("eve@evil.example", &path, "Subject: relayed\r\n\r\nText");
    assert!(relayed.starts_with("550 5.7.1"), "{relayed}");
    // Nobody else's address is in it.
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<>", "250");
    let forged = path.replace("=ann@", "=eve@");
    session.command(&format!("RCPT TO:<{forged}>"), "550 5.1.1");
    let elsewhere = path.replace("@example.org", "@remote.example");
    session.command(&format!("RCPT TO:<{elsewhere}>"), "550 5.7.1");
}

#[test]
fn forwarded_mail_has_a_sender_of_ours_and_reports_come_back_to_the_stranger() {
    forwards_and_brings_back(false);
}

#[test]
fn the_broker_knows_the_addresses_of_forwarded_mail() {
    forwards_and_brings_back(true);
}

#[test]
fn senders_stay_where_they_are_ours_or_the_settings_want_it() {
    let sink = Sink::start();
    let system = start(&sink, false, "\"yes\"");
    let mut session = Session::greeted(system.smtp);
    session.submit("alice@example.org", &[ALIAS], "Subject: ours\r\n\r\nText");
    let ours = found(&sink, "Subject: ours");
    assert_eq!(field(&ours, "Return-Path:"), "alice@example.org");
    drop(system);
    let system = start(&sink, false, "\"no\"");
    let mut session = Session::greeted(system.smtp);
    session.submit(STRANGER, &[ALIAS], "Subject: plain\r\n\r\nText");
    let plain = found(&sink, "Subject: plain");
    assert_eq!(field(&plain, "Return-Path:"), STRANGER);
}
