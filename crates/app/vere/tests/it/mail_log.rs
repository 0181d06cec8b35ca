//! The log tells of every message, every recipient's end and every login, in lines that programs can read.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::harness::{
    Options, Session, Sink, System, assert_has, free_address, output_of, program, wait_until,
};
use crate::imap::{Imap, with_store};
use crate::metrics;

const ALICE: &str = "alice@example.org";

fn plain(user: &str, password: &str) -> String {
    let text = format!("\0{user}\0{password}");
    format!("AUTH PLAIN {}", STANDARD.encode(text))
}

#[test]
fn every_message_recipient_and_refusal_has_a_line() {
    let sink = Sink::start();
    let dead = free_address();
    let options = Options::default()
        .route("dead.example", dead, "")
        .route("*", sink.address, "")
        .set("relay.networks", "[]");
    let system = System::start(&options);

    let mut session = Session::greeted(system.submission);
    session.command("MAIL FROM:<a@example.net>", "530");
    session.command(&plain(ALICE, "secret"), "235");
    session.command("MAIL FROM:<bob@example.org>", "553");
    let to = ["x@example.com", "bob@example.org", "y@dead.example"];
    let id = session.submit(
        ALICE,
        &to,
        "Subject: one\r\nMessage-ID: <one@it>\r\n\r\nbody",
    );
    let mut session = Session::greeted(system.smtp);
    session.command("MAIL FROM:<>", "250");
    session.command("RCPT TO:<nobody@example.org>", "550");
    session.command("RCPT TO:<z@example.com>", "550");

    let id = format!("queue_id={id}");
    let whole = [
        "gateway accepted",
        &id,
        "service=submission client=127.0.0.1 port=",
        "account=alice@example.org reverse_path=alice@example.org",
        "rcpt=x@example.com,bob@example.org,y@dead.example",
        "size=",
        "message_id=<one@it>",
    ];
    let accepted = system.wait_log(&whole);
    assert_has(
        &accepted,
        &[
            &format!("relay:{}", sink.address),
            "local",
            &format!("relay:{dead}"),
        ],
    );
    system.wait_log(&[
        "gateway delivered",
        &id,
        "rcpt=x@example.com",
        "reply=",
        "delay_ms=",
    ]);
    system.wait_log(&[
        "gateway delivered",
        &id,
        "queue=local",
        "rcpt=bob@example.org",
    ]);
    system.wait_log(&["gateway deferred", &id, "rcpt=y@dead.example", "next=2"]);
    for refused in [
        "reverse_path=a@example.net reply=\"530 5.7.0 ",
        "reverse_path=bob@example.org reply=\"553 5.7.1 ",
        "reverse_path=\"\" rcpt=nobody@example.org reply=\"550 5.1.1 ",
        "reverse_path=\"\" rcpt=z@example.com reply=\"550 5.7.1 ",
    ] {
        system.wait_log(&["gateway refused", "client=127.0.0.1", refused]);
    }
    system.command(&["queue", "bounce", &format!("relay:{dead}"), "--yes"]);
    system.wait_log(&["gateway bounced", &id, "rcpt=y@dead.example"]);
    system.wait_log(&[
        "gateway report",
        "about=",
        "rcpt=alice@example.org action=failed",
    ]);
}

#[test]
fn a_level_above_info_leaves_them_out() {
    let sink = Sink::start();
    let system = System::start(&Options::to(sink.address).set("log.level", "\"warn\""));
    system.submit("a@example.net", &["x@example.com"], "a: b\r\n\r\nc");
    system.wait_empty();
    let log = system.log();
    assert!(!log.contains("x@example.com"), "{log}");
}

/// The rule of the filter in the handbook, with the form of an address in its place.
fn failregex() -> String {
    let book = include_str!("../../../../../docs/guides/monitor.md");
    let line = book
        .lines()
        .find_map(|line| line.trim().strip_prefix("failregex = "));
    line.expect("a rule")
        .replace("<ADDR>", "(?P<addr>[0-9a-fA-F:.]+)")
}

/// Prints the address of every line that the rule finds, as fail2ban would.
const FIND: &str = r"
import re, sys
rule = re.compile(sys.argv[1])
for line in sys.stdin:
    found = rule.search(line)
    if found: print(found.group('addr'))
";

#[test]
fn logins_are_told_and_who_guesses_can_be_found() {
    let endpoint = free_address();
    let (options, ports) = with_store(Options::default());
    let options = options.set("metrics.store", &format!("\"{endpoint}\""));
    let system = System::start(&options);

    let mut session = Session::greeted(system.submission);
    session.command(&plain(ALICE, "wrong"), "535");
    // The text looks like a line of the log.
    let forged = "x login failed service=smtp client=192.0.2.66 account=y";
    session.command(&plain(forged, "wrong"), "535");
    session.command(&plain(ALICE, "secret"), "235");
    let mut imap = Imap::connect(ports.imap);
    assert!(imap.command("LOGIN bob@example.org wrong").contains(" NO "));
    imap.ok("LOGIN bob@example.org secret");

    let submission =
        "service=submission client=127.0.0.1 account=alice@example.org mechanism=PLAIN";
    system.wait_log(&["gateway login failed", submission, "tls=false"]);
    system.wait_log(&["gateway login accepted", submission]);
    system.wait_log(&["gateway login failed", "client=127.0.0.1", "192.0.2.66"]);
    let imap = "service=imap client=127.0.0.1 account=bob@example.org mechanism=LOGIN";
    system.wait_log(&["store login failed", imap]);
    system.wait_log(&["store login accepted", imap]);
    for result in ["accepted", "rejected"] {
        let line = format!("vere_imap_authentications_total{{result=\"{result}\"}} 1");
        wait_until(&line, || metrics::read(endpoint).contains(&line));
    }
    let log = system.log();
    let Some(python) = program("python3") else {
        return;
    };
    let mut find = Command::new(python);
    find.args(["-c", FIND, &failregex()]);
    let found = output_of(&mut find, &log);
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.lines().collect::<Vec<_>>(), ["127.0.0.1"; 3], "{log}");
}
