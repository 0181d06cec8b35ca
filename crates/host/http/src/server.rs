//! A small server (HTTP/1.1): one request per connection, and everything that a client may hold is bounded.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Longest request line with its header; a body is not read.
const REQUEST_OCTETS_MAX: usize = 8 * 1024;
/// Longest wait for a whole header.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection is closed after this time, also one whose client reads slowly.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);
/// Wait after an error of accept, such as no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections of `listener` until the future is dropped: at most `connections_max` at once, further ones
/// wait. `respond` answers a method and a path; `name` names the listener in the log.
pub async fn serve<F>(listener: TcpListener, name: &'static str, connections_max: usize, respond: F)
where
    F: Fn(&Method, &str) -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
{
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, listener = name, "connection cannot be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let respond = respond.clone();
        tokio::spawn(async move {
            let served = timeout(CONNECTION_TIMEOUT, connection(stream, respond)).await;
            if let Ok(Err(error)) = served {
                tracing::debug!(%error, listener = name, "connection ended");
            }
            drop(place);
        });
    }
}

async fn connection<F>(stream: TcpStream, respond: F) -> hyper::Result<()>
where
    F: Fn(&Method, &str) -> Response<Full<Bytes>>,
{
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(response) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(REQUEST_OCTETS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

/// A response of one piece with a content type.
#[must_use]
pub fn content(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;

    /// More than the buffers of a connection within the machine take.
    const LARGE: usize = 64 << 20;

    async fn client(listener: std::net::SocketAddr, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(listener).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    /// A server of one place, and how long a client waits behind another that sends `first` and no more.
    async fn waits_behind(first: &str) -> Duration {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let respond = |_: &Method, path: &str| {
            let size = if path == "/large" { LARGE } else { 2 };
            content(StatusCode::OK, "text/plain", "x".repeat(size))
        };
        let server = tokio::spawn(serve(listener, "test", 1, respond));
        let began = Instant::now();
        let _holder = client(address, first).await;
        let mut next = client(address, "GET /small HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let mut text = String::new();
        next.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\nxx"), "{text}");
        server.abort();
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_holds_a_place_for_longer_than_a_connection_lasts() {
        for (first, longest) in [
            ("GET /large HTTP/1.1\r\nhost: a\r\n\r\n", CONNECTION_TIMEOUT),
            ("GET /small HTTP/1.1\r\nhost: a\r\n", REQUEST_TIMEOUT),
            ("", REQUEST_TIMEOUT),
            ("GET /small HTTP/1.1\r\nhost: a\r\n\r\n", Duration::ZERO),
        ] {
            let waited = waits_behind(first).await;
            let range = longest..longest + Duration::from_secs(1);
            assert!(range.contains(&waited), "{waited:?} behind {first:?}");
        }
    }

    #[tokio::test]
    async fn a_header_above_the_bound_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let respond = |_: &Method, _: &str| content(StatusCode::OK, "text/plain", String::new());
        let server = tokio::spawn(serve(listener, "test", 1, respond));
        let long = "a".repeat(2 * REQUEST_OCTETS_MAX);
        let mut sender = client(address, "GET / HTTP/1.1\r\nx: ").await;
        // The server may close before it has read everything.
        let _ = sender.write_all(long.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = sender.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
        server.abort();
    }
}
