//! The filters of settings: order, changes, failures, reload, teaching.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use vere_settings::Settings;

use super::real::{Peer, about, python};
use super::{MESSAGE, session};
use crate::circuit::FAILURES_MAX;
use crate::{Asked, Class, Failure, Filters, Findings, Learned, Mail, Session};

/// A peer that answers every request by HTTP with this JSON, and keeps the requests.
struct Answers {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Answers {
    async fn start(json: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let request = serve(stream, json).await;
                kept.lock().unwrap().push(request);
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, json: &str) -> String {
    let mut stream = BufReader::new(stream);
    let (mut request, mut octets) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            octets = length.trim().parse().unwrap();
        }
        request += &line;
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; octets];
    stream.read_exact(&mut body).await.unwrap();
    request += &String::from_utf8_lossy(&body);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", json.len());
    let answer = [head.as_bytes(), json.as_bytes()].concat();
    stream.get_mut().write_all(&answer).await.unwrap();
    request
}

/// A section with name, kind and address, and further lines.
fn section(name: &str, kind: &str, address: &str, lines: &str) -> String {
    let mut text = String::from("[[filter]]\n");
    let _ = writeln!(text, "name = \"{name}\"\nkind = \"{kind}\"");
    let _ = writeln!(text, "address = \"{address}\"\n{lines}");
    text
}

fn settings(sections: &[String]) -> Settings {
    let text = format!(
        "version = 1\nhostname = \"mx.example.org\"\n{}",
        sections.concat()
    );
    Settings::parse(&text, "/etc/vere/vere.toml").expect(&text)
}

fn filters(sections: &[String]) -> Filters {
    Filters::new(&settings(sections)).unwrap()
}

async fn ask(filters: &Filters, message: &[u8]) -> Findings {
    let message = Bytes::copy_from_slice(message);
    filters.ask(Mail::Received, &message, &session()).await
}

fn failures(findings: &Findings) -> Vec<(&str, &Failure)> {
    let answers = findings.answers.iter();
    let failures =
        answers.filter_map(|answer| Some((answer.filter.as_str(), failure(&answer.asked)?)));
    failures.collect()
}

fn failure(asked: &Asked) -> Option<&Failure> {
    match asked {
        Asked::Unavailable(failure) => Some(failure),
        _ => None,
    }
}

fn asked(findings: &Findings) -> Vec<&str> {
    let answers = findings.answers.iter();
    answers.map(|answer| answer.filter.as_str()).collect()
}

/// An address at which nobody listens.
async fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

const MARKS: &str = r#"{"action": "add header", "score": 7.5, "required_score": 15,
    "symbols": {"BAYES_SPAM": {"score": 5.1, "options": ["99%"]}, "A B": {"score": -0.25}},
    "milter": {"add_headers": {"X-One": "1"}, "del_rcpt": ["c@d.example"], "change_from": "new@b.example"}}"#;
const CLEAN: &str =
    r#"{"action": "no action", "score": 0.1, "milter": {"add_headers": {"X-Two": "2"}}}"#;
const REJECTS: &str = r#"{"action": "reject", "score": 20}"#;

#[tokio::test]
async fn each_filter_sees_message_and_envelope_as_those_before_have_changed_them() {
    let (one, two) = (Answers::start(MARKS).await, Answers::start(CLEAN).await);
    let filters = filters(&[
        section("one", "rspamd", &one.address, ""),
        section("two", "rspamd", &two.address, ""),
    ]);
    let findings = ask(&filters, MESSAGE).await;
    assert_eq!(asked(&findings), ["one", "two"]);
    let first = &one.requests()[0];
    assert!(first.contains("From: a@b.example\r\n") && !first.contains("X-One"));
    assert!(
        first.to_lowercase().contains("rcpt: c@d.example\r\n"),
        "{first}"
    );
    let second = two.requests()[0].clone();
    assert!(second.contains("X-One: 1\r\n"), "{second}");
    let lower = second.to_lowercase();
    assert!(lower.contains("\r\nfrom: new@b.example\r\n"), "{second}");
    assert!(!lower.contains("rcpt: c@d.example"), "{second}");
    let message = findings.message.as_deref().expect("a changed message");
    let message = String::from_utf8_lossy(message);
    assert!(
        message.contains("X-One: 1\r\nX-Spam: Yes\r\nX-Two: 2\r\n"),
        "{message}"
    );
    assert_eq!(findings.reverse_path.as_deref(), Some("new@b.example"));
    assert_eq!(findings.deleted, ["c@d.example"]);
    assert!(findings.added.is_empty() && findings.defer.is_none());
    let [one, two] = &findings.filters[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(one.action, Some(vere_judge::Verdict::Tag));
    let symbols: Vec<_> = one
        .symbols
        .iter()
        .map(|symbol| format!("{}={}", symbol.name, symbol.score))
        .collect();
    assert_eq!(symbols, ["BAYES_SPAM=5.1", "A_B=-0.25"]);
    assert_eq!(two.action, Some(vere_judge::Verdict::Accept));
}

#[tokio::test]
async fn a_refusal_ends_the_questions_only_where_the_judge_follows() {
    let (one, two) = (Answers::start(REJECTS).await, Answers::start(CLEAN).await);
    let sections = [
        section("one", "rspamd", &one.address, ""),
        section("two", "rspamd", &two.address, ""),
    ];
    let findings = ask(&filters(&sections), MESSAGE).await;
    assert_eq!(asked(&findings), ["one", "two"]);
    let judging = "[judging]\n[[judging.filter]]\nname = \"one\"\naction = \"follow\"\n";
    let sections = [sections.concat(), judging.to_owned()];
    let findings = ask(&filters(&sections), MESSAGE).await;
    assert_eq!(asked(&findings), ["one"]);
    assert_eq!(
        findings.filters[0].action,
        Some(vere_judge::Verdict::Reject)
    );
}

#[tokio::test]
async fn filters_are_asked_about_their_kind_of_mail() {
    let (one, two) = (Answers::start(REJECTS).await, Answers::start(CLEAN).await);
    let filters = filters(&[
        section("received", "rspamd", &two.address, ""),
        section("both", "rspamd", &two.address, "mail = \"all\""),
        section("own", "rspamd", &one.address, "mail = \"submitted\""),
        section("last", "rspamd", &two.address, "mail = \"all\""),
    ]);
    let message = Bytes::from_static(MESSAGE);
    let own = Session {
        account: "alice",
        ..session()
    };
    let findings = filters.ask(Mail::Submitted, &message, &own).await;
    // A refusal of a submitted message decides without [judging].
    assert_eq!(asked(&findings), ["both", "own"]);
    let request = &two.requests()[0];
    assert!(request.to_lowercase().contains("\r\nuser: alice\r\n"));
    let findings = filters.ask(Mail::Received, &message, &session()).await;
    assert_eq!(asked(&findings), ["received", "both", "last"]);
    assert!(!filters.is_empty(Mail::Submitted));
}

/// A virus scanner behind a filter that discards must see the message that is kept aside.
#[tokio::test]
async fn a_message_without_recipients_is_shown_to_the_further_filters() {
    const DISCARDS: &str =
        r#"{"action": "no action", "milter": {"del_rcpt": ["c@d.example", "<E@D.example>"]}}"#;
    let (one, two) = (Answers::start(DISCARDS).await, Answers::start(CLEAN).await);
    let filters = filters(&[
        section("one", "rspamd", &one.address, ""),
        section("two", "rspamd", &two.address, ""),
    ]);
    let findings = ask(&filters, MESSAGE).await;
    assert_eq!(asked(&findings), ["one", "two"]);
    assert!(findings.is_discarded && findings.deleted.is_empty());
    let seen = two.requests().pop().expect("a request");
    assert!(seen.to_lowercase().contains("rcpt: c@d.example\r\n"));
}

#[tokio::test]
async fn without_an_answer_the_message_goes_on_or_waits_as_the_settings_say() {
    let (gone, two) = (nowhere().await, Answers::start(CLEAN).await);
    let with = |when: &str| {
        let when = format!("when_unavailable = \"{when}\"");
        filters(&[
            section("gone", "clamd", &gone, &when),
            section("two", "rspamd", &two.address, ""),
        ])
    };
    let findings = ask(&with("accept"), MESSAGE).await;
    assert_eq!(asked(&findings), ["gone", "two"]);
    assert!(findings.defer.is_none());
    assert_eq!(findings.filters.len(), 1, "no answer is no fact");
    let findings = ask(&with("defer"), MESSAGE).await;
    assert_eq!(asked(&findings), ["gone"]);
    let deferral = findings.defer.expect("a deferral");
    assert_eq!(deferral.filter, "gone");
    assert!(
        deferral.reason.starts_with("cannot connect to "),
        "{deferral:?}"
    );
}

#[tokio::test]
async fn long_messages_are_not_shown_and_no_reason_to_wait() {
    let one = Answers::start(CLEAN).await;
    let filters = filters(&[section(
        "one",
        "rspamd",
        &one.address,
        "size_max = \"1 KiB\"",
    )]);
    let long = [MESSAGE, &[b'x'; 1024]].concat();
    let findings = ask(&filters, &long).await;
    let (octets, size_max) = (long.len(), 1024);
    assert_eq!(
        findings.answers[0].asked,
        Asked::Skipped { octets, size_max }
    );
    assert!(findings.defer.is_none() && findings.filters.is_empty());
    assert!(one.requests().is_empty());
}

#[tokio::test]
async fn a_filter_that_hangs_is_left_alone_while_the_others_are_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap().to_string();
    let two = Answers::start(CLEAN).await;
    let lines = "timeout = \"200ms\"\nwhen_unavailable = \"accept\"";
    let filters = filters(&[
        section("silent", "milter", &silent, lines),
        section("two", "rspamd", &two.address, ""),
    ]);
    for _ in 0..FAILURES_MAX {
        let findings = ask(&filters, MESSAGE).await;
        let late = Failure::Late(Duration::from_millis(200));
        assert_eq!(failures(&findings), [("silent", &late)]);
    }
    let begun = Instant::now();
    for _ in 0..5 {
        let findings = ask(&filters, MESSAGE).await;
        assert_eq!(failures(&findings), [("silent", &Failure::Resting)]);
        assert_eq!(findings.filters[0].name, "two");
    }
    assert!(
        begun.elapsed() < Duration::from_millis(200),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn answers_that_cannot_be_used_do_not_leave_a_filter_alone() {
    let one = Answers::start("{\"action\": \"sing\"}").await;
    let lines = "when_unavailable = \"accept\"";
    let filters = filters(&[section("one", "rspamd", &one.address, lines)]);
    for _ in 0..FAILURES_MAX + 2 {
        let findings = ask(&filters, MESSAGE).await;
        let unknown = Failure::Action("sing".to_owned());
        assert_eq!(failures(&findings), [("one", &unknown)]);
    }
}

#[tokio::test]
async fn a_reload_keeps_what_has_the_same_terms() {
    let gone = nowhere().await;
    let lines = "when_unavailable = \"accept\"\n";
    let one = || section("one", "milter", &gone, lines);
    let before = filters(&[one()]);
    for _ in 0..FAILURES_MAX {
        ask(&before, MESSAGE).await;
    }
    let resting = [("one", &Failure::Resting)];
    let defers = section("one", "milter", &gone, "");
    let after = before.renewed(&settings(&[defers])).unwrap();
    let findings = ask(&after, MESSAGE).await;
    assert_eq!(failures(&findings), resting);
    assert!(findings.defer.is_some(), "the treatment is the new one");
    let other = section("one", "milter", &gone, "timeout = \"1s\"");
    let after = after.renewed(&settings(&[other])).unwrap();
    let findings = ask(&after, MESSAGE).await;
    assert_ne!(failures(&findings), resting, "other terms, another filter");
    assert!(
        before
            .renewed(&settings(&[]))
            .unwrap()
            .is_empty(Mail::Received)
    );
}

#[tokio::test]
async fn a_password_is_read_anew_and_a_missing_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    let one = Answers::start(CLEAN).await;
    let lines = format!("password_file = \"{}\"", path.display());
    let settings = settings(&[section("one", "rspamd", &one.address, &lines)]);
    let text = Filters::new(&settings).unwrap_err().to_string();
    assert!(text.starts_with("filter one: cannot read /"), "{text}");
    std::fs::write(&path, "\n").unwrap();
    let text = Filters::new(&settings).unwrap_err().to_string();
    assert!(
        text.starts_with("filter one: expected a password"),
        "{text}"
    );
    std::fs::write(&path, "first\nnot this\n").unwrap();
    let filters = Filters::new(&settings).unwrap();
    std::fs::write(&path, "second\n").unwrap();
    let renewed = filters.renewed(&settings).unwrap();
    for filters in [&filters, &renewed] {
        ask(filters, MESSAGE).await;
    }
    let requests = one.requests();
    for (request, password) in requests.iter().zip(["first", "second"]) {
        let field = format!("password: {password}\r\n");
        assert!(request.to_lowercase().contains(&field), "{request}");
    }
}

#[tokio::test]
async fn filters_with_a_learn_address_learn() {
    let controller = Answers::start("{\"success\": true}").await;
    let gone = nowhere().await;
    let learns = format!("learn_address = \"{}\"", controller.address);
    let filters = filters(&[
        section("one", "rspamd", &gone, &learns),
        section("two", "rspamd", &gone, ""),
        section("three", "milter", &gone, ""),
    ]);
    let learned = |filter: &str, result| Learned {
        filter: filter.to_owned(),
        result,
    };
    let message = Bytes::from_static(MESSAGE);
    let all = filters.learn(None, &message, Class::Spam).await;
    assert_eq!(all, [learned("one", Ok(()))]);
    let two = filters.learn(Some("two"), &message, Class::Ham).await;
    assert_eq!(two, [learned("two", Err(Failure::NotTaught))]);
    assert!(
        filters
            .learn(Some("x"), &message, Class::Ham)
            .await
            .is_empty()
    );
    assert!(controller.requests()[0].starts_with("POST /learnspam "));
}

#[tokio::test]
async fn a_host_name_is_looked_up() {
    let one = Answers::start(CLEAN).await;
    let address = one.address.replace("127.0.0.1", "localhost");
    let filters = filters(&[section("one", "rspamd", &address, "")]);
    let findings = ask(&filters, MESSAGE).await;
    assert_eq!(findings.filters.len(), 1, "{findings:?}");
}

/// A changed message of a milter by libmilter reaches the next filter, body included; a long one is changed on another thread.
#[tokio::test]
async fn a_milter_comes_before_another_filter() {
    let Some(peer) = python().await else {
        return;
    };
    let two = Answers::start(CLEAN).await;
    let filters = filters(&[milter(&peer), section("two", "rspamd", &two.address, "")]);
    for lines in [1, 60_000] {
        let message = [about("change"), b"more\r\n".repeat(lines)].concat();
        let findings = filters
            .ask(Mail::Received, &message.into(), &session())
            .await;
        assert_eq!(asked(&findings), ["wishes", "two"]);
        assert_eq!(findings.added, ["new@d.example"]);
        assert_eq!(findings.deleted, ["e@d.example"]);
        assert_eq!(findings.reverse_path.as_deref(), Some("other@b.example"));
        let seen = two.requests().pop().expect("a request");
        assert!(seen.contains("X-New: added\r\n\r\nnew body\r\n"));
        assert!(seen.to_lowercase().contains("rcpt: new@d.example\r\n"));
        let message = findings.message.expect("a changed message");
        assert!(String::from_utf8_lossy(&message).contains("X-Two: 2\r\n\r\nnew body\r\n"));
    }
    let refused = Session {
        recipients: &["refused@d.example"],
        ..session()
    };
    let findings = filters
        .ask(Mail::Received, &about("change").into(), &refused)
        .await;
    let message = findings.message.expect("the change of the second");
    assert!(message.ends_with(b"\r\nbody\r\n"));
    assert!(findings.added.is_empty() && findings.reverse_path.is_none());
    let action = findings.filters[0].action;
    assert_eq!(action, Some(vere_judge::Verdict::Reject));
}

fn milter(peer: &Peer) -> String {
    let address = format!("unix:{}", peer.socket().display());
    section("wishes", "milter", &address, "")
}
