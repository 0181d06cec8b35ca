//! Seals of ARC on mail from an alias to another system: verified by an independent verifier (dkimpy), and by the system when the mail comes again.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Map, Value};

use crate::dkim::{dkimpy, make_keys};
use crate::front::{with_front, without_rates};
use crate::harness::{
    Options, Session, Sink, System, run_with_input, skip, unfold, wait_for, wait_until,
};

const ALIAS: &str = "sales@example.org";
const STRANGER: &str = "ann@far.test";
/// Longest wait with a hanging signer: the 5 s of the gateway, and time of a busy machine.
const REPLY_MAX: Duration = Duration::from_secs(30);

fn options(sink: &Sink) -> Options {
    without_rates(with_front(Options::to(sink.address)))
        .set("relay.networks", "[]")
        .set("dkim.arc", "\"yes\"")
        .table("[judging]\n")
        .record("far.test TXT v=spf1 ip4:127.0.0.1 -all")
        .record("_dmarc.far.test TXT v=DMARC1; p=reject")
}

fn start(options: &Options) -> System {
    let system = System::start(options);
    system.command(&["alias", "add", ALIAS, "x@remote.example", "bob@example.org"]);
    system
}

fn message(word: &str) -> String {
    format!("From: <{STRANGER}>\r\nTo: {ALIAS}\r\nSubject: {word}\r\n\r\nA  line \r\n\r\nend")
}

/// Sends a message to the alias, and returns the message at the next system, without the fields of the sink.
fn forwarded(system: &System, sink: &Sink, text: &str) -> String {
    let before = sink.mail();
    let mut session = Session::greeted(system.smtp);
    session.submit(STRANGER, &[ALIAS], text);
    let mail = wait_for("the message", || {
        sink.mail().into_iter().find(|mail| !before.contains(mail))
    });
    let begin = ["ARC-Seal:", "X-Spam-", "Authentication-Results:"];
    let begin = begin.iter().filter_map(|name| mail.find(name)).min();
    mail[begin.expect("fields of ours")..].to_owned()
}

fn seals(mail: &str) -> usize {
    mail.lines()
        .filter(|line| line.starts_with("ARC-Seal:"))
        .count()
}

/// Sends messages until one leaves with a seal, since new keys take a moment.
fn wait_sealed(system: &System, sink: &Sink) -> String {
    wait_for("a seal", || {
        let mail = forwarded(system, sink, &message("first"));
        (seals(&mail) == 1).then_some(mail)
    })
}

fn records(system: &System) -> Vec<(String, String)> {
    let text = |key: &Value, name: &str| key[name].as_str().expect("a text").to_owned();
    let keys = system.rows(&["dkim", "list"]);
    let of = |key: &Value| (text(key, "record_name"), text(key, "record_text"));
    keys.iter().map(of).collect()
}

/// Checks that dkimpy finds the chain valid or broken, where dkimpy is installed.
fn check(mail: &str, system: &System, expected: &str) {
    const SCRIPT: &str = "import sys, json, dkim\n\
        records, mail = json.loads(sys.stdin.read())\n\
        find = lambda name, timeout=5: records[name.decode().rstrip('.')].encode()\n\
        print(dkim.arc_verify(mail.encode(), dnsfunc=find)[0].decode())\n";
    let Some(python) = dkimpy() else {
        skip("a verifier of somebody else", "python3-dkim is missing");
        return;
    };
    let records = records(system).into_iter();
    let records: Map<_, _> = records.map(|(name, text)| (name, text.into())).collect();
    let input = serde_json::json!([records, mail]).to_string();
    let said = run_with_input(Command::new(python).args(["-c", SCRIPT]), &input);
    assert_eq!(said.trim(), expected, "{mail}");
}

#[test]
fn forwarded_mail_is_sealed_and_a_broken_chain_is_not() {
    let sink = Sink::start();
    let mut system = start(&options(&sink));
    let plain = forwarded(&system, &sink, &message("no key"));
    assert_eq!(seals(&plain), 0, "{plain}");
    make_keys(&system);
    let one = wait_sealed(&system, &sink);
    check(&one, &system, "pass");
    let whole = unfold(&one);
    for expected in [
        "ARC-Seal: i=1; a=rsa-sha256; cv=none;",
        "ARC-Authentication-Results: i=1; mx.example.org;",
        " spf=pass smtp.mailfrom=ann@far.test;",
        " dmarc=pass (p=reject) header.from=far.test;",
    ] {
        assert!(whole.contains(expected), "{expected}: {whole}");
    }
    check(&one.replacen("end", "the end", 1), &system, "fail");
    // Copies for local mailboxes have no seal.
    let here = system.mail("bob").concat();
    assert!(
        here.contains("arc=none") && !here.contains("ARC-"),
        "{here}"
    );
    // The system knows the first seal, and adds a second seal.
    let with_keys = records(&system)
        .iter()
        .fold(options(&sink), |options, (name, text)| {
            options.record(&format!("{name} TXT {text}"))
        });
    system.crash();
    system.configure(&with_keys);
    system.restart();
    let one = one.trim_end_matches("\r\n");
    let two = forwarded(&system, &sink, one);
    let whole = unfold(&two);
    assert!(
        whole.contains("ARC-Seal: i=2; a=rsa-sha256; cv=pass;"),
        "{whole}"
    );
    assert!(whole.contains(" arc=pass (i=1 d=example.org)"), "{whole}");
    check(&two, &system, "pass");
    let broken = forwarded(
        &system,
        &sink,
        &one.replacen("Subject: first", "Subject: else", 1),
    );
    assert_eq!(seals(&broken), 1, "{broken}");
    assert!(unfold(&broken).contains(" arc=fail "), "{broken}");
    system.reconfigure(&with_keys.set("dkim.arc", "\"no\""));
    wait_until("a message without a seal", || {
        seals(&forwarded(&system, &sink, &message("plain"))) == 0
    });
}

#[test]
fn without_the_signer_forwarded_mail_leaves_unsealed() {
    let sink = Sink::start();
    let system = start(&options(&sink));
    make_keys(&system);
    wait_sealed(&system, &sink);
    // A killed signer is back before a client notices.
    system.signal_role("signer", Signal::SIGKILL);
    let mail = forwarded(&system, &sink, &message("killed"));
    assert_eq!(seals(&mail), 1, "{mail}");
    // The supervisor replaces a hanging signer: then the test makes the new signer hang.
    wait_until("a message without a seal", || {
        system.signal_role("signer", Signal::SIGSTOP);
        let begun = Instant::now();
        let mail = forwarded(&system, &sink, &message("hanging"));
        assert!(begun.elapsed() < REPLY_MAX, "{:?}", begun.elapsed());
        seals(&mail) == 0
    });
    system.wait_log(&["forwarded message not sealed", "the signer does not answer"]);
    system.signal_role("signer", Signal::SIGCONT);
    wait_sealed(&system, &sink);
}
