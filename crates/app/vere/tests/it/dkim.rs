//! Signatures on mail of local users: made by a process with the keys, checked by an independent verifier (dkimpy),
//! with the records of the keys as `vere dkim` prints the records.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::{
    Options, Session, Sink, System, assert_has, assert_starts, run_with_input, skip, unfold, vere,
    wait_for, wait_until,
};

/// A message of Alice's with a word of its own, to be found by.
fn message(from: &str, word: &str) -> String {
    format!(
        "From: {from}\r\nTo: x@remote.example\r\nSubject: signed  mail {word}\r\n\r\nA line \r\n\r\nend"
    )
}

const ALICE: &str = "Alice <alice@example.org>";

/// A word unique to a message.
fn word() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("word-{}-", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The arrived message with the word in its text.
fn arrived(sink: &Sink, word: &str) -> String {
    wait_for("the message", || {
        sink.mail().into_iter().find(|mail| mail.contains(word))
    })
}

/// Settings with a zone that has no record of a key.
fn options(sink: &Sink) -> Options {
    Options::to(sink.address).record("elsewhere.example A 127.0.0.1")
}

fn start(sink: &Sink, when_unavailable: &str) -> System {
    let options = options(sink).set("dkim.when_unavailable", &format!("\"{when_unavailable}\""));
    System::start(&options)
}

/// Creates keys for example.org that sign although no name server has their records.
pub(crate) fn make_keys(system: &System) {
    system.command(&["dkim", "keygen", "example.org"]);
    system.command(&["dkim", "activate", "example.org", "--force"]);
}

/// Creates one key, of Ed25519.
fn make_key(system: &System) {
    system.command(&["dkim", "keygen", "example.org", "--algorithm", "ed25519"]);
    system.command(&["dkim", "activate", "--force"]);
}

/// The output of `vere dkim list --json`.
fn keys(system: &System) -> Vec<Value> {
    system.rows(&["dkim", "list"])
}

/// Sends messages until a message leaves with `signatures` signatures, since new keys take a moment, and returns the
/// message.
fn wait_signed(system: &System, sink: &Sink, signatures: usize) -> String {
    wait_for("signatures", || {
        let word = word();
        let text = message(ALICE, &word);
        system.submit("alice@example.org", &["x@remote.example"], &text);
        let mail = arrived(sink, &word);
        let signed = (signatures_of(&mail) == signatures).then_some(mail)?;
        // Without the fields that the sink prepends.
        let start = signed.find("DKIM-Signature:")?;
        Some(signed[start..].to_owned())
    })
}

fn signatures_of(mail: &str) -> usize {
    mail.lines()
        .filter(|line| line.starts_with("DKIM-Signature:"))
        .count()
}

/// Whether dkimpy finds every signature valid; `None` when dkimpy is not installed.
fn verify(mail: &str, keys: &[Value]) -> Option<Vec<bool>> {
    const SCRIPT: &str = "import sys, json, dkim\n\
        records, mail = json.loads(sys.stdin.read())\n\
        mail = mail.encode('utf-8', 'surrogateescape')\n\
        find = lambda name, timeout=5: records[name.decode().rstrip('.')].encode()\n\
        one = dkim.DKIM(mail)\n\
        count = sum(1 for name, _ in one.headers if name.lower() == b'dkim-signature')\n\
        print([bool(one.verify(idx=i, dnsfunc=find)) for i in range(count)])\n";
    let python = dkimpy()?;
    let records: serde_json::Map<_, _> = keys
        .iter()
        .map(|key| {
            let name = key["record_name"].as_str().expect("a name").to_owned();
            (name, key["record_text"].clone())
        })
        .collect();
    let input = serde_json::json!([records, mail]).to_string();
    let said = run_with_input(Command::new(python).args(["-c", SCRIPT]), &input);
    let words = said.trim().trim_matches(['[', ']']).split(", ");
    Some(words.map(|word| word == "True").collect())
}

/// Checks the two signatures of a mail by the records of a system's keys, where there is a verifier.
pub(crate) fn check(mail: &str, system: &System) {
    match verify(mail, &keys(system)) {
        Some(results) => assert_eq!(results, [true, true], "{mail}"),
        None => skip(
            "a verifier of somebody else",
            "python3-dkim and python3-nacl are missing",
        ),
    }
}

/// Keys that sign, and keys that wait for their record.
fn states(system: &System) -> (usize, usize) {
    let keys = keys(system);
    let count = |wanted: &str| keys.iter().filter(|key| key["state"] == wanted).count();
    (count("signs"), count("waits"))
}

/// Two keys wait, mail goes unsigned, and an order of the operator lets both sign without their records.
fn activate_without_records(system: &System, sink: &Sink) {
    // Without a record a signature would be worse than none.
    let mut activate = vere();
    activate.args(["dkim", "activate", "example.org", "-c"]);
    let output = activate.arg(&system.config).output();
    let output = output.expect("the command runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_has(&said, &["has no record, and the key waits", "--force"]);
    assert_eq!(states(system), (0, 2));
    let unsigned = word();
    system.submit(
        "alice@example.org",
        &["x@remote.example"],
        &message(ALICE, &unsigned),
    );
    assert_eq!(signatures_of(&arrived(sink, &unsigned)), 0);
    let said = system.command(&["dkim", "activate", "example.org", "--force"]);
    assert_has(&said, &["receivers cannot verify"]);
}

#[test]
fn own_mail_is_signed_twice_and_keys_rotate_without_a_gap() {
    let sink = Sink::start();
    let mut system = start(&sink, "defer");
    let made = system.command(&["dkim", "keygen", "example.org"]);
    assert_starts(
        &made,
        "put these records into the DNS; the keys sign once the records are seen there",
    );
    assert_has(
        &made,
        &["._domainkey.example.org. IN TXT ( \"v=DKIM1; k=rsa; p="],
    );
    assert_eq!(keys(&system).len(), 2);
    let (code, said) = system.failing_command(&["dkim", "keygen", "example.org"]);
    assert!(
        code == Some(1) && said.contains("vere dkim rotate"),
        "{said}"
    );
    activate_without_records(&system, &sink);
    let mail = wait_signed(&system, &sink, 2);
    let whole = unfold(&mail);
    assert_starts(&whole, "DKIM-Signature: v=1; a=rsa-sha256;");
    assert_has(
        &whole,
        &["a=ed25519-sha256;", "c=relaxed/relaxed;", "d=example.org;"],
    );
    match verify(&mail, &keys(&system)) {
        Some(results) => {
            assert_eq!(results, [true, true]);
            let changed = mail.replacen("signed  mail", "forged  mail", 1);
            assert_eq!(verify(&changed, &keys(&system)), Some(vec![false, false]));
        }
        None => skip(
            "a verifier of somebody else",
            "python3-dkim and python3-nacl are missing",
        ),
    }
    // The successors wait for the DNS; the old ones go on until then.
    let rotated = system.command(&["dkim", "rotate", "example.org", "--after", "1h"]);
    assert_has(
        &rotated,
        &["signs until then; keep its record for 7d after that"],
    );
    assert_eq!(states(&system), (2, 2));
    let records = system.command(&["dkim", "dns", "example.org"]);
    assert_eq!(records.lines().count(), 4, "{records}");
    system.refused(&["dkim", "rotate", "example.org"]);
    // A lost key is removed at once, and the remaining key goes on.
    let first = keys(&system)[0].clone();
    let selector = first["selector"].as_str().expect("a selector");
    let said = system.command(&["dkim", "remove", "example.org", selector]);
    assert!(!said.contains("nothing signs"), "{said}");
    let mail = wait_signed(&system, &sink, 1);
    assert!(!mail.contains(&format!("s={selector};")), "{mail}");
    let keys = keys(&system);
    let last = keys.iter().find(|key| key["state"] == "signs");
    let selector = last.and_then(|key| key["selector"].as_str());
    let selector = selector.expect("a key that signs");
    let said = system.command(&["dkim", "remove", "example.org", selector]);
    assert_has(&said, &["nothing signs the mail of example.org"]);
    system.end();
    let made = system.command(&["dkim", "keygen", "example.com"]);
    assert_has(&made, &["no signer runs"]);
}

#[test]
fn keys_sign_once_the_dns_has_their_records_and_old_ones_until_then() {
    let sink = Sink::start();
    let named = |zone: &[String]| {
        let settings = options(&sink).set("dkim.when_unavailable", "\"defer\"");
        zone.iter()
            .fold(settings, |settings, line| settings.record(line))
    };
    let mut system = System::start(&named(&[]));
    let generate = ["dkim", "keygen", "example.org", "--algorithm", "ed25519"];
    system.command(&generate);
    system.wait_log(&["key waits, its record has no record"]);
    let listed = system.command(&["dkim", "list"]);
    assert_has(&listed, &["waits: the name", "has no record, since"]);
    // The record is published; the system finds the waiting key again after its restart.
    let record = |key: &Value| {
        let text = |field: &str| key[field].as_str().expect("a text").to_owned();
        format!("{} TXT \"{}\"", text("record_name"), text("record_text"))
    };
    let first = keys(&system);
    let mut zone = vec![record(&first[0])];
    system.configure(&named(&zone));
    system.crash();
    wait_signed(&system, &sink, 1);
    system.wait_log(&["record seen, key activated"]);
    // The successor of a rotation waits as well, and the old key has no end until then.
    system.command(&["dkim", "rotate", "example.org", "--after", "0s"]);
    let both = keys(&system);
    assert_eq!(both.len(), 2);
    let state = |keys: &[Value], selector: &Value| {
        let mut found = keys.iter().filter(|key| key["selector"] == *selector);
        found
            .next()
            .map(|key| (key["state"].clone(), key["retire_at"].is_null()))
    };
    let old = &first[0]["selector"];
    assert_eq!(state(&both, old), Some(("signs".into(), true)));
    let next = both
        .iter()
        .find(|key| key["selector"] != *old)
        .expect("a key");
    assert_eq!(next["state"], "waits", "{next}");
    zone.push(record(next));
    system.configure(&named(&zone));
    system.restart();
    let selector = next["selector"].as_str().expect("a selector");
    wait_until("the successor to sign", || {
        wait_signed(&system, &sink, 1).contains(&format!("s={selector};"))
    });
    assert_eq!(state(&keys(&system), old), Some(("replaced".into(), false)));
}

#[test]
fn nobody_gets_a_signature_under_another_name() {
    let sink = Sink::start();
    let settings = options(&sink)
        .set("dkim.when_unavailable", "\"defer\"")
        .set("sending.senders", "\"foreign\"");
    let system = System::start(&settings);
    make_key(&system);
    wait_signed(&system, &sink, 1);
    let send = |from: &str| {
        let (mut session, word) = (Session::greeted(system.submission), word());
        session.log_in("alice@example.org");
        let text = message(from, &word);
        session.submit("alice@example.org", &["x@remote.example"], &text);
        signatures_of(&arrived(&sink, &word))
    };
    assert_eq!(send(ALICE), 1);
    assert_eq!(
        send("Alice <alice@elsewhere.example>"),
        0,
        "a domain without keys"
    );
    // Two authors: a reader's program may show either.
    let both = |word: &str| {
        message(
            &format!("{ALICE}\r\nFrom: Alice <alice@elsewhere.example>"),
            word,
        )
    };
    let mut session = Session::greeted(system.submission);
    session.log_in("alice@example.org");
    session.envelope("alice@example.org", &["x@remote.example"]);
    session.command(&format!("{}\r\n.", both("refused")), "554");
    let unsigned = word();
    system.submit("alice@example.org", &["x@remote.example"], &both(&unsigned));
    assert_eq!(signatures_of(&arrived(&sink, &unsigned)), 0, "two authors");
    // A subdomain without keys uses the keys of the parent domain.
    let word = word();
    let below = message("robot@lists.example.org", &word);
    system.submit("alice@example.org", &["x@remote.example"], &below);
    let below = arrived(&sink, &word);
    assert!(unfold(&below).contains("d=example.org;"), "{below}");
    // Mail from outside gets no signature, whatever its author field.
    system.reconfigure(
        &options(&sink)
            .set("dkim.when_unavailable", "\"defer\"")
            .set("sending.senders", "\"foreign\"")
            .set("relay.networks", "[]"),
    );
    let text = message(ALICE, "from-outside");
    wait_until("the reload", || {
        let mut session = Session::greeted(system.smtp);
        session.command("MAIL FROM:<alice@example.org>", "250");
        session.send(b"RCPT TO:<x@remote.example>\r\n");
        session.reply().starts_with("550")
    });
    system.submit("alice@example.org", &["bob@example.org"], &text);
    assert_eq!(signatures_of(&system.wait_mail("bob", 1)[0]), 0);
}

#[test]
fn while_the_signer_is_away_mail_waits_or_goes_unsigned_as_the_settings_say() {
    let sink = Sink::start();
    let system = start(&sink, "defer");
    make_key(&system);
    wait_signed(&system, &sink, 1);
    // A killed signer is back before a client notices.
    system.signal_role("signer", Signal::SIGKILL);
    wait_signed(&system, &sink, 1);
    // A hanging signer is waited for with a limit. The supervisor replaces the signer after a while: then the test
    // makes the new signer hang.
    let send_while_it_hangs = || {
        let word = word();
        system.signal_role("signer", Signal::SIGSTOP);
        let mut session = Session::greeted(system.smtp);
        let to = ["x@remote.example"];
        (
            session.message("alice@example.org", &to, &message(ALICE, &word)),
            word,
        )
    };
    wait_until("a message to be deferred", || {
        let (reply, _) = send_while_it_hangs();
        reply.starts_with("451 4.3.0")
    });
    let unsigned = options(&sink).set("dkim.when_unavailable", "\"unsigned\"");
    system.reconfigure(&unsigned);
    wait_until("a message without a signature", || {
        let (reply, word) = send_while_it_hangs();
        let taken = reply.starts_with("250");
        taken && signatures_of(&arrived(&sink, &word)) == 0
    });
    system.signal_role("signer", Signal::SIGCONT);
    wait_signed(&system, &sink, 1);
}

/// Signs a message with dkimpy in the name of a domain, with the selector `s`: the message and the record of the key. `None` when dkimpy is not
/// installed.
pub(crate) fn sign_by_others(message: &str, domain: &str) -> Option<(String, String)> {
    const SCRIPT: &str = "import sys, json, base64, dkim, nacl.signing\n\
        domain, mail = json.loads(sys.stdin.read())\n\
        mail = mail.encode()\n\
        key = nacl.signing.SigningKey(bytes(range(32)))\n\
        field = dkim.sign(mail, b's', domain.encode(), base64.b64encode(bytes(key)),\n\
        \x20   canonicalize=(b'relaxed', b'relaxed'), signature_algorithm=b'ed25519-sha256')\n\
        public = base64.b64encode(bytes(key.verify_key)).decode()\n\
        print(json.dumps([field.decode(), 'v=DKIM1; k=ed25519; p=' + public]))\n";
    let Some(python) = dkimpy() else {
        skip(
            "a signer of somebody else",
            "python3-dkim and python3-nacl are missing",
        );
        return None;
    };
    let input = serde_json::json!([domain, message]).to_string();
    let said = run_with_input(Command::new(python).args(["-c", SCRIPT]), &input);
    let said: [String; 2] = serde_json::from_str(&said).expect("two texts");
    let [field, record] = said;
    Some((field + message, record))
}

/// An interpreter that has dkimpy.
pub(crate) fn dkimpy() -> Option<&'static str> {
    ["/usr/bin/python3", "python3"].into_iter().find(|python| {
        let tried = Command::new(python)
            .args(["-c", "import dkim, nacl"])
            .output();
        tried.is_ok_and(|output| output.status.success())
    })
}
