//! Serves `/metrics`, `/health/live` and `/health/ready` over HTTP/1.1, and nothing else.
//!
//! For an address that only the operator's own systems reach: there is no authentication. At most
//! [`CONNECTIONS_MAX`] connections are served at once, further ones wait.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::watch;
use vere_http::server::{self, content};

use super::Metrics;

/// Connections served at once.
pub const CONNECTIONS_MAX: usize = 32;

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
    let respond = move |method: &Method, path: &str| {
        let health = health.borrow().clone();
        respond(method, path, &metrics, &health)
    };
    server::serve(listener, "metrics", CONNECTIONS_MAX, respond).await;
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
