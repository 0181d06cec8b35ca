//! Clients that hold what they have, and long headers.

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::*;

/// More than the buffers of a connection within the machine take.
const LARGE: usize = 64 << 20;

async fn client(listener: SocketAddr, request: &str) -> TcpStream {
    let mut client = TcpStream::connect(listener).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    client
}

async fn server(bounds: Bounds) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let text = |size| content(StatusCode::OK, "text/plain", "x".repeat(size));
    let routes = Router::new()
        .route("/large", get(async move || text(LARGE)))
        .route("/small", get(async move || text(2)));
    tokio::spawn(serve(listener, Terms::fixed("test", bounds), routes));
    address
}

/// How long the server lets a client go on that sends `first` and no more.
async fn lasts(first: &str) -> Duration {
    let address = server(Bounds::of_few(2)).await;
    let began = Instant::now();
    let mut holder = client(address, first).await;
    if first.contains("/large") {
        // The client reads nothing until the server has given up; what is left in the buffers comes at once.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let mut read = Vec::new();
        let _reset = holder.read_to_end(&mut read).await;
        assert!(read.len() < LARGE, "the server gave up");
        return Duration::from_secs(15);
    }
    let mut answer = Vec::new();
    let _reset = holder.read_to_end(&mut answer).await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn nobody_holds_a_place_for_longer_than_a_connection_lasts() {
    let bounds = Bounds::of_few(2);
    for (first, longest) in [
        (
            "GET /large HTTP/1.1\r\nhost: a\r\n\r\n",
            bounds.connection_timeout,
        ),
        ("GET /small HTTP/1.1\r\nhost: a\r\n", bounds.header_timeout),
        ("", bounds.header_timeout),
        ("GET /small HTTP/1.1\r\nhost: a\r\n\r\n", Duration::ZERO),
    ] {
        let lasted = lasts(first).await;
        let range = longest..longest + Duration::from_secs(1);
        assert!(range.contains(&lasted), "{lasted:?} for {first:?}");
    }
}

#[tokio::test]
async fn a_full_server_closes_the_oldest_connection_for_the_next_client() {
    let address = server(Bounds {
        per_client_max: 9,
        ..Bounds::of_few(1)
    })
    .await;
    let mut holder = client(address, "GET /small HTTP/1.1\r\n").await;
    let mut next = client(address, "GET /small HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut text = String::new();
    next.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\nxx"), "{text}");
    let mut answer = Vec::new();
    let _reset = holder.read_to_end(&mut answer).await;
    assert!(answer.is_empty(), "{answer:?}");
}

#[tokio::test]
async fn a_second_request_over_a_connection_has_no_answer() {
    let address = server(Bounds::of_few(1)).await;
    let request = "GET /small HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2);
    let mut sender = client(address, &request).await;
    let mut answer = Vec::new();
    // The server closes with octets unread, which may reset the connection behind the answer.
    let _reset = sender.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
}

#[tokio::test]
async fn a_header_above_the_bound_ends_the_connection() {
    let address = server(Bounds::of_few(1)).await;
    let long = "a".repeat(2 * HEADER_OCTETS_MIN);
    let mut sender = client(address, "GET /small HTTP/1.1\r\nx: ").await;
    // The server may close before it has read everything.
    let _ = sender.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = sender.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
}
