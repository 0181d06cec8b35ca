//! Serves `/metrics`, `/health/live` and `/health/ready` over HTTP/1.1, and nothing else.
//!
//! For an address that only the operator's own systems reach: there is no authentication. At most
//! [`CONNECTIONS_MAX`] connections are served at once, further ones wait; a request line with its
//! header has 16 KiB and 5 s, a body is not read.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::Metrics;

/// Connections served at once.
pub const CONNECTIONS_MAX: usize = 32;
const REQUEST_OCTETS_MAX: usize = 16 * 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Wait after an error of accept, such as no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Whether the process takes mail.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Health {
    /// Not yet.
    #[default]
    Starting,
    /// It does.
    Ready,
    /// The process is not ready, for this reason, and may become ready again.
    NotReady(String),
    /// No longer.
    Stopping,
}

/// Serves connections of `listener` until the future is dropped.
pub async fn serve(listener: TcpListener, metrics: Metrics, health: watch::Receiver<Health>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "metrics endpoint cannot take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (metrics, health) = (metrics.clone(), health.clone());
        tokio::spawn(async move {
            connection(stream, metrics, health).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, metrics: Metrics, health: watch::Receiver<Health>) {
    let service = service_fn(|request: Request<Incoming>| {
        let health = health.borrow().clone();
        let response = respond(request.method(), request.uri().path(), &metrics, &health);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(REQUEST_OCTETS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "metrics endpoint: connection ended");
    }
}

fn respond(
    method: &Method,
    path: &str,
    metrics: &Metrics,
    health: &Health,
) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD\n".to_owned(),
        );
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/metrics" => content(StatusCode::OK, OPENMETRICS, metrics.encode()),
        "/health/live" => text(StatusCode::OK, "live\n".to_owned()),
        "/health/ready" => match health {
            Health::Ready => text(StatusCode::OK, "ready\n".to_owned()),
            Health::Starting => text(StatusCode::SERVICE_UNAVAILABLE, "starting\n".to_owned()),
            Health::Stopping => text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned()),
            Health::NotReady(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        _ => text(StatusCode::NOT_FOUND, "try /metrics\n".to_owned()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    content(status, TEXT, body)
}

fn content(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
