//! Whose names accounts use, and how much they send.

use crate::harness::{Options, Session, Sink, System, assert_has, free_address, wait_until};
use crate::metrics;

const ALICE: &str = "alice@example.org";
const REMOTE: &[&str] = &["x@remote.example"];

fn logged_in(system: &System, account: &str) -> Session {
    let mut session = Session::greeted(system.submission);
    session.log_in(account);
    session
}

/// The reply to a message of Alice with this field.
fn from(system: &System, field: &str) -> String {
    let mut session = logged_in(system, ALICE);
    session.envelope(ALICE, REMOTE);
    session.send(format!("{field}\r\nSubject: names\r\n\r\nText\r\n.\r\n").as_bytes());
    session.reply()
}

#[test]
fn an_account_sends_under_its_own_addresses_alone() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address));
    let allowed = [
        "From: Alice <alice@example.org>",
        "From: \"ceo@bank.example\"\r\n <Alice+shop@Example.ORG>",
        // Without the field nobody is named.
        "To: x@remote.example",
    ];
    for field in allowed {
        let reply = from(&system, field);
        assert!(reply.starts_with("250"), "{field}: {reply}");
    }
    let refused = [
        "From: Bob <bob@example.org>",
        "From: <ceo@bank.example>",
        "From: alice@example.org, ceo@bank.example",
        "From: Alice",
        "From: <alice@example.org> <ceo@bank.example>",
        "From: ceo@bank.example: alice@example.org;",
    ];
    for field in refused {
        let reply = from(&system, field);
        assert_has(
            &reply,
            &["550 5.7.1 address in From does not belong to the account"],
        );
    }
    let sender = |sender: &str, reply: &str| {
        let mut session = logged_in(&system, ALICE);
        session.command(&format!("MAIL FROM:<{sender}>"), reply);
    };
    sender("bob@example.org", "553 5.7.1");
    sender("ceo@bank.example", "553 5.7.1");
    // Reports have no sender.
    sender("", "250");
    // An account that writes for another system.
    let lines = format!("[[sending.account]]\nname = \"{ALICE}\"\nsenders = \"foreign\"\n");
    system.reconfigure(&Options::to(sink.address).table(&lines));
    wait_until("the reload", || {
        from(&system, "From: <ceo@bank.example>").starts_with("250")
    });
    sender("ceo@bank.example", "250");
    sender("bob@example.org", "553 5.7.1");
    assert_has(&from(&system, refused[0]), &["550 5.7.1"]);
}

#[test]
fn an_account_that_has_sent_its_share_of_the_hour_comes_again_later() {
    let (sink, endpoint) = (Sink::start(), free_address());
    let options = Options::to(sink.address)
        .set("metrics.listen", &format!("\"{endpoint}\""))
        .set("sending.messages_per_hour", "2")
        .set("sending.recipients_per_hour", "5");
    let system = System::start(&options);
    let mut alice = logged_in(&system, ALICE);
    alice.submit(ALICE, REMOTE, "Subject: one\r\n\r\nText");
    let many: Vec<String> = (0..6).map(|n| format!("x{n}@remote.example")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    alice.envelope(ALICE, &many);
    alice.command(
        "Text\r\n.",
        "550 5.7.1 an account may send to 5 recipients in an hour",
    );
    alice.envelope(ALICE, &many[..5]);
    alice.command("Text\r\n.", "450 4.7.1 too much mail");
    alice.submit(ALICE, &many[..4], "Subject: two\r\n\r\nText");
    alice.command(&format!("MAIL FROM:<{ALICE}>"), "450 4.7.1 too much mail");
    // The next session of the account as well, and nobody else.
    logged_in(&system, ALICE).command(&format!("MAIL FROM:<{ALICE}>"), "450 4.7.1");
    let bob = "bob@example.org";
    logged_in(&system, bob).submit(bob, REMOTE, "Subject: three\r\n\r\nText");
    sink.wait_mail(3);
    let line = "vere_smtp_messages_over_limit_total{result=\"deferred\"} 4";
    metrics::assert_lines(endpoint, &[line]);
    assert_has(&system.log(), &["account has sent as much as may be"]);
}

#[test]
fn mail_beyond_the_share_is_held_over_kill_9_until_it_is_released() {
    let sink = Sink::start();
    let options = Options::to(sink.address)
        .set("sending.messages_per_hour", "1")
        .set("sending.over", "\"hold\"");
    let mut system = System::start(&options);
    let mut alice = logged_in(&system, ALICE);
    alice.submit(ALICE, REMOTE, "Subject: first\r\n\r\nText");
    let id = alice.submit(
        ALICE,
        &["x@remote.example", "bob@example.org"],
        "Subject: second\r\n\r\nText",
    );
    sink.wait_mail(1);
    let orders = system.command(&["queue", "orders"]);
    assert_eq!(orders.lines().count(), 2, "both destinations: {orders}");
    assert_has(
        &orders,
        &[&format!("{id} for relay:{}: held since ", sink.address)],
    );
    let cause = "until taken back, as its account has sent as much as it may";
    assert_eq!(orders.matches(cause).count(), 2, "{orders}");
    let shown = system.json(&["queue", "show", &id]);
    assert_eq!(shown[0]["held_for"], "sending", "{shown}");
    assert_has(&system.command(&["trace", &id]), &["held"]);
    system.crash();
    system.restart();
    assert_eq!(system.command(&["queue", "orders"]).lines().count(), 2);
    assert_eq!(sink.mail().len(), 1);
    system.command(&["queue", "release", "--id", &id]);
    assert!(sink.wait_mail(2).iter().any(|text| text.contains("second")));
    assert_has(&system.wait_mail("bob", 1)[0], &["second"]);
}
