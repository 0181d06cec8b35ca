//! Signatures of dkimpy, and the verdicts of dkimpy and Mail::DKIM about the same messages, changed and unchanged.
//!
//! Skips without these packages of Debian: python3-dkim, python3-nacl, python3-authres, libmail-dkim-perl.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

use std::collections::HashMap;
use std::io::Write as _;
use std::net::IpAddr;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use vere_auth::{Arc, Authentication, Dns, Family, Message, Session, Unavailable, authenticate};

/// Prints records, and messages with the verdicts of dkimpy: `record NAME HEX`, `dkim 0 HEX`, `arc 1 HEX`.
const SIGNER: &str = include_str!("peers/signer.py");
/// Reads records and messages, and prints the verdict of Mail::DKIM about each message.
const VERIFIER: &str = include_str!("peers/verifier.pl");
/// Debian's interpreter: another one lacks the package.
const PYTHON: &str = "/usr/bin/python3";

#[derive(Debug, Default)]
struct Records(HashMap<String, Vec<u8>>);

impl Dns for Records {
    async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
        Ok(self.0.get(name).cloned().into_iter().collect())
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

impl Records {
    fn evaluate(&self, octets: &[u8], now: u64) -> Authentication {
        let session = Session {
            client: [192, 0, 2, 1].into(),
            helo: "mx.example.org",
            reverse_path: "",
            spf: None,
            spf_helo: None,
        };
        let message = Message::of(octets);
        let mut future = pin!(authenticate(self, &message, session, now));
        for _ in 0..100 {
            if let Poll::Ready(value) = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                return value;
            }
        }
        panic!("an evaluation that waits for nothing");
    }
}

/// A message with the verdict of its signer.
#[derive(Debug)]
struct Case {
    is_arc: bool,
    is_valid: bool,
    octets: Vec<u8>,
}

fn octets(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn is_there(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// What the signer has printed, its records, and its messages.
static CASES: LazyLock<Option<(String, Records, Vec<Case>)>> = LazyLock::new(cases);

/// Runs the signer; `None` where dkimpy is not installed.
fn cases() -> Option<(String, Records, Vec<Case>)> {
    if !is_there(PYTHON, &["-c", "import authres, dkim, nacl"]) {
        eprintln!("skipped: python3-dkim, python3-nacl or python3-authres is not installed");
        return None;
    }
    let output = Command::new(PYTHON)
        .args(["-c", SIGNER])
        .output()
        .expect("a python");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("ASCII");
    let (mut records, mut cases) = (Records::default(), Vec::new());
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["record", name, hex] => {
                records.0.insert(name.to_owned(), octets(hex));
            }
            [kind, verdict, hex] => cases.push(Case {
                is_arc: kind == "arc",
                is_valid: verdict == "1",
                octets: octets(hex),
            }),
            _ => panic!("{line}"),
        }
    }
    assert!(cases.len() > 200, "{}", cases.len());
    Some((text, records, cases))
}

fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a clock after 1970").as_secs()
}

/// Our verdict about a case: whether the signature or the chain passes, and why not.
fn verdict(records: &Records, case: &Case) -> (bool, String) {
    let authentication = records.evaluate(&case.octets, now());
    match case.is_arc {
        true => (
            matches!(authentication.arc, Arc::Pass { .. }),
            format!("{:?}", authentication.arc),
        ),
        false => {
            let first = authentication.dkim.first().and_then(|signed| signed.fault);
            (
                !authentication.dkim.is_empty() && first.is_none(),
                format!("{first:?}"),
            )
        }
    }
}

#[test]
fn dkimpy_agrees() {
    let Some((_, records, cases)) = &*CASES else {
        return;
    };
    let mut differences = Vec::new();
    for case in cases {
        let (is_valid, why) = verdict(records, case);
        // dkimpy keeps the blank before a colon, which RFC 6376 section 3.4.2 deletes; Mail::DKIM deletes the blank.
        let has_blank = case.octets.windows(9).any(|octets| octets == b"SUBJECT :");
        if is_valid != case.is_valid && !has_blank {
            let text = String::from_utf8_lossy(&case.octets);
            differences.push(format!(
                "dkimpy {} we {is_valid} {why}\n{text:?}",
                case.is_valid
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n\n")
    );
    let valid = |is_arc| {
        cases
            .iter()
            .filter(|case| case.is_arc == is_arc && case.is_valid)
            .count()
    };
    assert!(
        valid(true) >= 10 && valid(false) >= 40,
        "{} {}",
        valid(true),
        valid(false)
    );
}

#[test]
fn mail_dkim_agrees() {
    let Some((text, records, cases)) = &*CASES else {
        return;
    };
    if !is_there("perl", &["-MMail::DKIM::Verifier", "-MNet::DNS", "-e", "1"]) {
        eprintln!("skipped: libmail-dkim-perl is not installed");
        return;
    }
    let mut verifier = Command::new("perl")
        .args(["-e", VERIFIER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a perl");
    let mut input = verifier.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = verifier.wait_with_output().expect("an end");
    writer.join().expect("no panic").expect("a reader");
    assert!(output.status.success());
    let results = String::from_utf8(output.stdout).expect("ASCII");
    let results: Vec<_> = results.lines().collect();
    assert_eq!(results.len(), cases.len());
    let mut differences = Vec::new();
    for (case, result) in cases.iter().zip(results) {
        let (is_valid, why) = verdict(records, case);
        // Mail::DKIM adds no line end to a body without one (RFC 6376 section 3.4.3); dkimpy does. Some versions know no Ed25519.
        let is_odd = result == "unknown" || !case.octets.ends_with(b"\r\n");
        if is_valid != result.starts_with("pass") && !is_odd {
            let text = String::from_utf8_lossy(&case.octets);
            differences.push(format!("Mail::DKIM {result} we {is_valid} {why}\n{text:?}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n\n")
    );
}
