//! The one server of this system (HTTP/1.1): metrics, challenges of authorities, and the web server for mail programs.
//!
//! A connection carries one request, and everything that a client may hold is bounded ([`Bounds`]): there is no idle connection, no
//! second request whose beginning could be disputed, and no multiplexing (HTTP/2). The routes are a [`Router`] of axum.

mod bounds;
mod places;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tower_service::Service as _;

pub use bounds::{Bounds, HEADER_OCTETS_MIN};
pub use places::{Counts, Places, client};

/// Wait after an error of accept, such as no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address of the client, an extension of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client(pub SocketAddr);

/// A listener's name in the log, its bounds, which may change, and its connections.
#[derive(Debug, Clone)]
pub struct Terms {
    name: &'static str,
    bounds: watch::Receiver<Bounds>,
    places: Arc<Places>,
}

impl Terms {
    /// Terms without a connection yet; listeners that share the terms share the bounds.
    #[must_use]
    pub fn new(name: &'static str, bounds: watch::Receiver<Bounds>) -> Self {
        Self {
            name,
            bounds,
            places: Arc::default(),
        }
    }

    /// Terms whose bounds never change.
    #[must_use]
    pub fn fixed(name: &'static str, bounds: Bounds) -> Self {
        // The last bounds stay readable without a sender.
        Self::new(name, watch::channel(bounds).1)
    }

    /// The connections.
    #[must_use]
    pub fn places(&self) -> Arc<Places> {
        Arc::clone(&self.places)
    }
}

/// Serves connections of `listener` in the clear until the future is dropped.
pub async fn serve(listener: TcpListener, terms: Terms, routes: Router) {
    serve_with(listener, terms, routes, |stream| async { Ok(stream) }).await;
}

/// Serves connections of `listener` behind a handshake, which has the time of the connection, until the future is dropped.
pub async fn serve_with<S, F, H>(listener: TcpListener, terms: Terms, routes: Router, handshake: H)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    H: Fn(TcpStream) -> F,
{
    let name = terms.name;
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, listener = name, "connection cannot be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let bounds = *terms.bounds.borrow();
        let Some(place) = terms.places.enter(client.ip(), &bounds) else {
            tracing::debug!(%client, listener = name, "connection closed: the client has enough");
            continue;
        };
        let (handshake, routes) = (handshake(stream), routes.clone());
        tokio::spawn(async move {
            let connection = async {
                let stream = handshake.await?;
                one_request(stream, client, routes, &bounds).await
            };
            tokio::select! {
                served = timeout(bounds.connection_timeout, connection) => match served {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%client, %error, listener = name, "connection ended"),
                    Err(_) => tracing::debug!(%client, listener = name, "connection closed: it took too long"),
                },
                () = place.evicted() => {
                    tracing::debug!(%client, listener = name, "connection closed: another needs its place");
                }
            }
        });
    }
}

async fn one_request<S>(
    stream: S,
    client: SocketAddr,
    routes: Router,
    bounds: &Bounds,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let mut routes = routes.clone();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Client(client));
        async move { routes.call(request).await }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .max_buf_size(bounds.header_octets_max.max(HEADER_OCTETS_MIN))
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
        .map_err(io::Error::other)
}

/// A response of one piece with a content type.
#[must_use]
pub fn content(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
