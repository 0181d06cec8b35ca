//! Chains of seals, verified by the verifier of received mail and by dkimpy.
//!
//! dkimpy's verdicts need Debian's package python3-dkim, and are skipped without the package.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use vere_auth::{Arc, Dns, Family, Message, Session, Unavailable, authenticate};
use vere_dkim::{Chain, KeyAlgorithm, MessageDraft, NotSealable, Sealer, StoredKey};
use vere_units::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const OCTETS_MAX: usize = 1 << 20;
const RESULTS: &str = "Authentication-Results: mx.example.org;\r\n\tarc=none;\r\n\tspf=pass \
     smtp.mailfrom=ann@far.example;\r\n\tdmarc=pass (p=reject) header.from=far.example\r\n";
const MESSAGE: &str = "Received: from somewhere\r\nDKIM-Signature: v=1; a=x\r\nFrom: Ann <ann@far.example>\r\n\
     To:  bob@example.net,\r\n\tcarol@example.net\r\nSubject:   two  words \r\n\
     Date: Thu, 1 Jan 2026 00:00:00 +0000\r\nDKIM-Signature: v=1; a=y\r\n\r\nA  line \t\r\n\r\nend\r\n\r\n";
/// Debian's interpreter: another one lacks the package.
const PYTHON: &str = "/usr/bin/python3";
/// Reads a record and a message as hexadecimal lines, and prints the result of the chain.
const VERIFIER: &str = "import sys, dkim\n\
     record, message = [bytes.fromhex(line) for line in sys.stdin.read().split()]\n\
     print((dkim.arc_verify(message, dnsfunc=lambda name, timeout=5: record)[0] or b'none').decode())\n";

fn key() -> &'static StoredKey {
    static KEY: OnceLock<StoredKey> = OnceLock::new();
    KEY.get_or_init(|| {
        StoredKey::generate("example.org", "r1", KeyAlgorithm::RsaSha256, 2048, NOW, NOW)
            .expect("a key")
    })
}

fn draft(message: &str, chain: Chain, octets_max: usize) -> Result<MessageDraft, NotSealable> {
    let sealer = Sealer {
        domain: "example.org",
        selector: &key().selector,
        now: NOW,
        octets_max,
    };
    MessageDraft::of(message.as_bytes(), chain, RESULTS.as_bytes(), sealer)
}

fn seal(message: &str, chain: Chain) -> String {
    let private = key().private().expect("a key");
    let sign = |octets: &[u8]| private.sign(octets).expect("signed");
    let draft = draft(message, chain, OCTETS_MAX).expect("sealable");
    let value = sign(draft.octets());
    let draft = draft.signed(&value).expect("sealable");
    let value = sign(draft.octets());
    String::from_utf8(draft.signed(&value)).expect("text") + message
}

/// The message behind a number of systems, each with further fields.
fn sealed(message: &str, sets: usize) -> String {
    (0..sets).fold(message.to_owned(), |message, earlier| {
        let chain = if earlier == 0 {
            Chain::None
        } else {
            Chain::Valid
        };
        let received = format!("Received: by system {earlier}\r\n{RESULTS}{message}");
        seal(&received, chain)
    })
}

struct Record;

impl Dns for Record {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        let is_key = name == key().record_name();
        Ok(is_key
            .then(|| key().record_text().into_bytes())
            .into_iter()
            .collect())
    }

    async fn exists(&self, _: &str) -> Result<bool, Unavailable> {
        Ok(true)
    }

    async fn addresses(&self, _: &str, _: Family) -> Result<Vec<IpAddr>, Unavailable> {
        Ok(Vec::new())
    }

    async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
        Ok(Vec::new())
    }
}

fn verify(message: &str) -> Arc {
    let session = Session {
        client: [192, 0, 2, 1].into(),
        helo: "mx.example.org",
        reverse_path: "",
        spf: None,
        spf_helo: None,
    };
    let message = Message::of(message.as_bytes());
    let now = NOW.as_millis() / 1_000 + 60;
    let mut future = pin!(authenticate(&Record, &message, session, now));
    let ready = |_| match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(found) => Some(found.arc),
        Poll::Pending => None,
    };
    (0..100)
        .find_map(ready)
        .expect("records that are there at once")
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, octet| {
        let _ = write!(hex, "{octet:02x}");
        hex
    })
}

/// The result of the chain by dkimpy; `None` without the package.
fn verify_by_dkimpy(message: &str) -> Option<String> {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    let is_there = IS_THERE.get_or_init(|| {
        let mut tried = Command::new(PYTHON);
        let tried = tried.args(["-c", "import dkim"]).stderr(Stdio::null());
        let found = tried.status().is_ok_and(|status| status.success());
        if !found {
            eprintln!("skipped: python3-dkim is not installed");
        }
        found
    });
    if !is_there {
        return None;
    }
    let mut command = Command::new(PYTHON);
    let command = command.args(["-c", VERIFIER]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a python");
    let input = format!("{}\n{}\n", hex(&key().record_text()), hex(message));
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{message}");
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn chains_are_valid_and_no_change_goes_unseen() {
    for sets in 1..=3 {
        let message = sealed(MESSAGE, sets);
        let expected = Arc::Pass {
            sets,
            sealer: "example.org".to_owned(),
            dmarc_passed: true,
        };
        assert_eq!(verify(&message), expected, "{message}");
        if let Some(result) = verify_by_dkimpy(&message) {
            assert_eq!(result, "pass", "{message}");
        }
        let again = message.replace("Subject:   two  words ", "subject: two words");
        assert_eq!(verify(&again), expected, "a form that means the same");
        for (from, to) in [
            ("\r\nend", "\r\nthe end"),
            ("two  words", "three words"),
            ("From: Ann", "From: eve@evil.example\r\nFrom: Ann"),
            ("a=y", "a=z"),
            ("dmarc=pass", "dmarc=fail"),
            ("i=1; mx.", "i=1; my."),
            ("cv=none", "cv=pass"),
        ] {
            // Results and sets of the first system, under fields of later systems with equal texts.
            let at = message.rfind(from).expect("the text");
            let at = match message.rfind("ARC-Seal: i=1") {
                Some(first) if from.contains('=') && from != "a=y" => {
                    first + message[first..].find(from).expect("the text")
                }
                _ => at,
            };
            let changed = [&message[..at], to, &message[at + from.len()..]].concat();
            assert!(matches!(verify(&changed), Arc::Fail(_)), "{changed}");
            if let Some(result) = verify_by_dkimpy(&changed) {
                assert_ne!(result, "pass", "{changed}");
            }
        }
    }
}

#[test]
fn messages_of_every_shape_are_sealed() {
    for message in [
        "From: a@far.example\r\n\r\n",
        "From: a@far.example\r\n\r\n\r\n\r\n",
        "From: a@far.example\r\n\r\nno end",
        "From: a@far.example\r\n\r\na \r\n \t\r\n\r\n",
        "From: a@far.example\r\n\r\n \r\n",
        "Subject: no author\r\n\r\nx\r\n",
        "To: a\r\nTo: b\r\nFrom: a@far.example\r\nFrom : b@far.example\r\nTo: c\r\n\r\n \r\n",
        "From: a@far.example\r\n\r\n8 bit ü\r\n.\r\n",
    ] {
        let message = sealed(message, 2);
        assert!(matches!(verify(&message), Arc::Pass { .. }), "{message}");
        // dkimpy does not know a blank in front of the colon.
        if !message.contains("From :")
            && let Some(result) = verify_by_dkimpy(&message)
        {
            assert_eq!(result, "pass", "{message}");
        }
        let lines = message.split("\r\n");
        let longest = lines.map(str::len).max();
        assert!(longest.is_some_and(|longest| longest <= 78), "{message}");
    }
    // Fields of later systems are not covered.
    let marked = format!("X-Spam-Flag: NO\r\nReceived: x\r\n{}", sealed(MESSAGE, 1));
    assert!(matches!(verify(&marked), Arc::Pass { .. }));
}

#[test]
fn messages_without_a_next_set_are_told_apart() {
    let fault = |message: &str, chain| draft(message, chain, OCTETS_MAX).map(drop).err();
    let one = sealed(MESSAGE, 1);
    assert_eq!(fault(MESSAGE, Chain::None), None);
    assert_eq!(fault(&one, Chain::Valid), None);
    assert_eq!(fault(MESSAGE, Chain::Valid), Some(NotSealable::Chain));
    assert_eq!(fault(&one, Chain::None), Some(NotSealable::Chain));
    for (from, to) in [
        ("ARC-Seal: i=1", "X-Seal: i=1"),
        ("ARC-Seal: i=1", "ARC-Seal: i=2"),
        ("ARC-Seal: i=1", "ARC-Seal: i=one"),
        ("ARC-Message", "ARC-Seal: i=1\r\nARC-Message"),
        (
            "ARC-Authentication-Results: i=1",
            "ARC-Authentication-Results: x; i=1",
        ),
    ] {
        let broken = one.replacen(from, to, 1);
        assert_ne!(broken, one, "{from}");
        assert_eq!(
            fault(&broken, Chain::Valid),
            Some(NotSealable::Chain),
            "{to}"
        );
    }
    let sets = |count: usize| {
        (1..=count).fold(MESSAGE.to_owned(), |message, n| {
            format!("ARC-Seal: i={n}\r\nARC-Message-Signature: b=; i = {n}\r\nARC-Authentication-Results: i={n}; x\r\n{message}")
        })
    };
    assert_eq!(fault(&sets(49), Chain::Valid), None);
    assert_eq!(fault(&sets(50), Chain::Valid), Some(NotSealable::Full));
    let large = draft(MESSAGE, Chain::None, 100).map(drop);
    assert!(matches!(large, Err(NotSealable::TooLarge(octets)) if octets > 100));
    for results in [
        "",
        "X: y\r\n",
        "Authentication-Results: \r\n",
        "Authentication-Results: a\r\nX: y\r\n",
        "Authentication-Results: a\r\n\r\n",
        "Authentication-Results: \u{fc}\r\n",
    ] {
        let sealer = Sealer {
            domain: "example.org",
            selector: "r1",
            now: NOW,
            octets_max: OCTETS_MAX,
        };
        let drafted = MessageDraft::of(MESSAGE.as_bytes(), Chain::None, results.as_bytes(), sealer);
        assert_eq!(drafted.map(drop), Err(NotSealable::Results), "{results}");
    }
}
