//! Lines as they appear, written into memory.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::layer::SubscriberExt as _;
use vere_units::Secret;

use super::{LogFormat, LogOptions, Registry, VALUE_OCTETS_MAX, layer};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `say` writes, without the time.
fn written(format: LogFormat, say: impl FnOnce()) -> String {
    let memory = Memory::default();
    let options = LogOptions {
        format,
        role: Some("gateway".to_owned()),
        ..LogOptions::default()
    };
    let to = memory.clone();
    let subscriber = Registry::default().with(layer(&options, move || to.clone()));
    tracing::subscriber::with_default(subscriber, say);
    let text = String::from_utf8(memory.0.lock().expect("no panic").clone()).expect("text");
    assert_eq!(text.matches('\n').count(), text.lines().count());
    text
}

fn text(say: impl FnOnce()) -> String {
    let line = written(LogFormat::Text, say);
    line.trim_end()
        .split_once(' ')
        .expect("time first")
        .1
        .to_owned()
}

fn json(say: impl FnOnce()) -> serde_json::Value {
    serde_json::from_str(&written(LogFormat::Json, say)).expect("JSON")
}

#[test]
fn a_line_reads_as_level_role_message_fields() {
    let line =
        text(|| tracing::info!(peer = "[::1]:25", code = 250, rest = "a b", "message taken"));
    assert_eq!(
        line,
        "info gateway message taken peer=[::1]:25 code=250 rest=\"a b\""
    );
    let error = io::Error::other("disk full");
    let line = text(|| tracing::error!(%error, ok = false, empty = "", "cannot store"));
    assert_eq!(
        line,
        "error gateway cannot store error=\"disk full\" ok=false empty=\"\""
    );
}

#[test]
fn json_has_the_same_fields() {
    let object = json(|| tracing::warn!(code = 451, left = -1, "later"));
    assert_eq!(object["level"], "warn");
    assert_eq!(object["role"], "gateway");
    assert_eq!(object["message"], "later");
    assert_eq!(object["code"], 451);
    assert_eq!(object["left"], -1);
    assert!(object["t"].as_str().expect("text").ends_with('Z'));
}

#[test]
fn fields_of_spans_are_shown() {
    let say = || {
        let span = tracing::info_span!("session", queue_id = "0000000000007");
        span.in_scope(|| tracing::info!(code = 250, "done"));
    };
    assert_eq!(
        text(say),
        "info gateway done code=250 queue_id=0000000000007"
    );
    assert_eq!(json(say)["queue_id"], "0000000000007");
}

#[test]
fn secrets_are_not_written() {
    let secret = Secret::new("hunter2".to_owned());
    let line = text(|| {
        tracing::info!(?secret, login = ?secret, password = "hunter2", smtp_password = 7, "x");
    });
    assert!(!line.contains("hunter2") && !line.contains('7'), "{line}");
    assert_eq!(line.matches("[redacted]").count(), 4, "{line}");
}

/// A peer's text may neither begin a separate line nor steer the terminal.
#[test]
fn remote_text_is_escaped_and_bounded() {
    let hostile = "x\nerror fake \u{1b}[2J\u{9b} \"y\"";
    let line = text(|| tracing::info!(reply = hostile, "refused {hostile}"));
    assert!(!line.chars().any(char::is_control), "{line}");
    assert_eq!(
        json(|| tracing::info!(reply = hostile, "x"))["reply"],
        hostile
    );
    let long = "x".repeat(10 * VALUE_OCTETS_MAX);
    let line = text(|| tracing::info!(reply = long.as_str(), "{long}"));
    assert!(line.len() < 3 * VALUE_OCTETS_MAX, "{}", line.len());
}
