//! Serves `/metrics`, `/health/live` and `/health/ready` over HTTP/1.1, and nothing else.
//!
//! For an address that only the operator's own systems reach: there is no authentication. At most
//! [`CONNECTIONS_MAX`] connections are served at once, further ones take the place of the oldest.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use hyper::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::watch;
use vere_http::server::{self, Bounds, Terms, content};

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
    let terms = Terms::fixed("metrics", Bounds::of_few(CONNECTIONS_MAX));
    server::serve(listener, terms, routes(metrics, health)).await;
}

fn routes(metrics: Metrics, health: watch::Receiver<Health>) -> Router {
    let shown = async |State(metrics): State<Metrics>| {
        content(StatusCode::OK, OPENMETRICS, metrics.encode())
    };
    let live = async || text(StatusCode::OK, "live\n".to_owned());
    let ready = async move || ready(&health.borrow());
    Router::new()
        .route("/metrics", get(shown))
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .fallback(async || text(StatusCode::NOT_FOUND, "try /metrics\n".to_owned()))
        .with_state(metrics)
}

fn ready(health: &Health) -> Response {
    let (status, word) = match health {
        Health::Ready => (StatusCode::OK, "ready"),
        Health::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
        Health::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        Health::NotReady(why) => (StatusCode::SERVICE_UNAVAILABLE, why.as_str()),
    };
    text(status, format!("{word}\n"))
}

fn text(status: StatusCode, body: String) -> Response {
    content(status, TEXT, body)
}
