//! The text format, its reference, and the endpoint as a client sees it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{
    CONNECTIONS_MAX, Handshake, HandshakeResult, Health, Metrics, NodeName, SmtpService, TlsSide,
    reference, serve,
};

#[test]
fn the_text_is_openmetrics() {
    let metrics = Metrics::new();
    metrics
        .smtp
        .messages_received
        .get_or_create(&SmtpService::Smtp)
        .inc_by(3);
    metrics.clone().queue.bytes.set(4096);
    let handshake = Handshake {
        side: TlsSide::Client,
        result: HandshakeResult::Unverified,
    };
    metrics.tls.handshakes.get_or_create(&handshake).inc();
    metrics
        .spool
        .connected
        .get_or_create(&NodeName("a\"b".to_owned()))
        .set(1);
    metrics.smtp.store_seconds.observe(0.003);
    let text = metrics.encode();
    for line in [
        "# TYPE vere_smtp_messages_received counter",
        "vere_smtp_messages_received_total{service=\"smtp\"} 3",
        "vere_queue_bytes 4096",
        "vere_tls_handshakes_total{side=\"client\",result=\"unverified\"} 1",
        "vere_spool_connected{node=\"a\\\"b\"} 1",
        "vere_smtp_store_seconds_bucket{le=\"0.005\"} 1",
        "# TYPE vere_process_resident_memory_bytes gauge",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "no {line} in\n{text}"
        );
    }
    assert!(text.ends_with("# EOF\n"));
}

/// Whoever adds a metric runs this with `VERE_BLESS=1` to write the reference again.
#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/internals/metrics.md");
    if std::env::var_os("VERE_BLESS").is_some() {
        fs::write(&path, reference()).expect("room");
    }
    let found = fs::read_to_string(&path).expect("the reference");
    assert!(
        found == reference(),
        "docs/internals/metrics.md differs: run with VERE_BLESS=1"
    );
}

#[test]
fn names_end_with_their_unit() {
    for row in reference()
        .lines()
        .filter(|line| line.starts_with("| `vere_"))
    {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = columns[1].trim_matches('`');
        assert!(
            name.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
            "{name}"
        );
        assert_eq!(name.ends_with("_total"), columns[2] == "counter", "{name}");
        assert_eq!(
            columns[2] == "histogram",
            name.ends_with("_seconds") && columns[2] != "gauge"
        );
        assert!(
            !columns[4].is_empty() && !columns[4].ends_with('.'),
            "{row}"
        );
    }
}

async fn endpoint(health: Health) -> (SocketAddr, watch::Sender<Health>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    let (sender, receiver) = watch::channel(health);
    tokio::spawn(serve(listener, Metrics::new(), receiver));
    (address, sender)
}

async fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("listening");
    stream.write_all(request).await.expect("connected");
    let mut answer = Vec::new();
    // A reset after the answer is as good as an end.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).expect("text")
}

async fn get(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes()).await
}

#[tokio::test]
async fn metrics_and_health_are_served() {
    let (address, health) = endpoint(Health::Starting).await;
    let answer = get(address, "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0;"));
    assert!(answer.ends_with("# EOF\n"));
    assert!(
        get(address, "/health/live")
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    for (state, status, body) in [
        (Health::Starting, "503 Service Unavailable", "starting"),
        (Health::Ready, "200 OK", "ready"),
        (
            Health::NotReady("no spool node".to_owned()),
            "503 Service Unavailable",
            "no spool node",
        ),
        (Health::Stopping, "503 Service Unavailable", "stopping"),
    ] {
        health.send(state).expect("serving");
        let answer = get(address, "/health/ready").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{answer}"
        );
        assert!(answer.ends_with(&format!("\r\n\r\n{body}\n")), "{answer}");
    }
}

#[tokio::test]
async fn everything_else_is_refused() {
    let (address, _health) = endpoint(Health::Ready).await;
    assert!(get(address, "/").await.starts_with("HTTP/1.1 404 "));
    assert!(
        get(address, "/metrics/..")
            .await
            .starts_with("HTTP/1.1 404 ")
    );
    let post =
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let answer = exchange(address, post).await;
    assert!(
        answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET,HEAD"),
        "{answer}"
    );
    assert!(
        exchange(address, b"EHLO x\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 400 ")
    );
    let long = format!(
        "GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(64 * 1024)
    );
    assert!(
        exchange(address, long.as_bytes())
            .await
            .starts_with("HTTP/1.1 431 ")
    );
}

/// Connections that say nothing may not keep others from being served for long.
#[tokio::test(start_paused = true)]
async fn silent_connections_are_bounded_and_end() {
    let (address, _health) = endpoint(Health::Ready).await;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        silent.push(TcpStream::connect(address).await.expect("listening"));
    }
    let answer = tokio::time::timeout(Duration::from_secs(60), get(address, "/health/live")).await;
    assert!(answer.expect("in time").starts_with("HTTP/1.1 200 OK\r\n"));
}
