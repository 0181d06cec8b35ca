//! The sender, against a collector of this test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use tokio::task::LocalSet;
use vere_telemetry::log::{LogLevel, LogRecord};

use super::*;

/// A collector that answers with these status lines and header fields, one after another, and hands over each request: the head in lower
/// case, and the body.
fn collector(answers: &'static [&'static str]) -> (SocketAddr, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (hand, requests) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(reader.read_line(&mut head).unwrap() > 0);
            }
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length = length.split('\r').next().unwrap().parse().unwrap();
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let text =
                format!("HTTP/1.1 {answer}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
            reader.get_mut().write_all(text.as_bytes()).unwrap();
            hand.send((head, serde_json::from_slice(&body).unwrap()))
                .unwrap();
        }
    });
    (address, requests)
}

fn settings(address: SocketAddr, rest: &str) -> Settings {
    let text = format!(
        "version = 1\nhostname = \"mx.example.org\"\n[log]\notlp = \"http://{address}/\"\n{rest}"
    );
    Settings::parse(&text, "/etc/vere/vere.toml").unwrap()
}

fn packet(message: &str) -> Vec<u8> {
    let record = LogRecord {
        time_ms: 1,
        severity: LogLevel::Info,
        role: "gateway".to_owned(),
        pid: 1,
        message: message.to_owned(),
        fields: Vec::new(),
        lost: 0,
    };
    record.encode().unwrap()
}

/// Sends two records to a collector with these answers. Returns the metrics.
async fn send(settings: &Settings) -> String {
    let metrics = Metrics::new();
    let sender = Sender::new(settings, &metrics).unwrap();
    for message in ["one", "two"] {
        sender.queue.take(&packet(message));
    }
    LocalSet::new().run_until(sender.flush()).await;
    metrics.encode()
}

#[tokio::test]
async fn a_request_that_may_succeed_later_is_repeated() {
    let (address, requests) = collector(&[
        "503 Service Unavailable\r\nRetry-After: 0",
        "429 Too Many Requests\r\nRetry-After: 0",
        "200 OK",
    ]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    std::fs::write(&file, "Authorization: Bearer s3cret\n").unwrap();
    let settings = settings(address, &format!("otlp_headers = \"{}\"\n", file.display()));
    let metrics = send(&settings).await;
    let all: Vec<_> = requests.try_iter().collect();
    assert_eq!(all.len(), 3);
    assert!(
        all.iter().all(|(_, body)| *body == all[0].1),
        "the same records"
    );
    let (head, body) = &all[2];
    assert!(head.starts_with("post /v1/logs http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    assert!(head.contains("authorization: bearer s3cret\r\n"), "{head}");
    let records = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
    assert_eq!(records.as_array().unwrap().len(), 2);
    assert!(
        metrics.contains("vere_otlp_records_total{result=\"sent\"} 2\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn records_that_the_collector_never_takes_are_dropped() {
    let (address, requests) = collector(&["400 Bad Request"]);
    let metrics = send(&settings(address, "")).await;
    assert_eq!(requests.try_iter().count(), 1);
    assert!(
        metrics.contains("vere_otlp_records_total{result=\"refused\"} 2\n"),
        "{metrics}"
    );
}

#[test]
fn pauses_grow_up_to_a_minute() {
    let pauses: Vec<Duration> = [0, 1, 2, 10, u32::MAX].map(pause).to_vec();
    assert!(
        pauses[0] >= RETRY_FIRST && pauses[0] <= RETRY_FIRST * 2,
        "{pauses:?}"
    );
    assert!(pauses[2] >= RETRY_FIRST * 4, "{pauses:?}");
    assert!(
        pauses[4] >= RETRY_MAX && pauses[4] <= RETRY_MAX * 5 / 4,
        "{pauses:?}"
    );
}
