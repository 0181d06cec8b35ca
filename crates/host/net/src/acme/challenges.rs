//! Answers http-01 challenges (RFC 8555 section 8.3): a listener without any other purpose.
//!
//! The listener is reachable from everywhere, so connections, header and time are bounded.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

const PATH: &str = "/.well-known/acme-challenge/";
/// Connections at once: an authority looks from a handful of places.
const CONNECTIONS_MAX: usize = 64;
const REQUEST_OCTETS_MAX: usize = 8 * 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection with a slow reader is closed after this time.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);
/// Wait after an error of accept, such as no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The answers to the challenges of orders under way; clones share them.
#[derive(Clone, Default)]
pub struct Challenges {
    answers: Arc<Mutex<HashMap<String, String>>>,
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Challenges")
            .field("open", &self.lock().len())
            .finish()
    }
}

impl Challenges {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, path: &str) -> Option<String> {
        self.lock().get(path.strip_prefix(PATH)?).cloned()
    }
}

/// The answers of an order, withdrawn when the order ends, also by an error.
#[derive(Debug)]
pub(super) struct Answers {
    challenges: Challenges,
    tokens: Vec<String>,
}

impl Answers {
    pub(super) fn new(challenges: Challenges) -> Self {
        Self {
            challenges,
            tokens: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, token: String, answer: String) {
        self.challenges.lock().insert(token.clone(), answer);
        self.tokens.push(token);
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let mut answers = self.challenges.lock();
        for token in &self.tokens {
            answers.remove(token);
        }
    }
}

/// Serves connections of `listener` until the future is dropped.
pub async fn serve_challenges(listener: TcpListener, challenges: Challenges) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "challenge listener cannot take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let challenges = challenges.clone();
        tokio::spawn(async move {
            // An unfinished connection is closed after the timeout.
            let _ = timeout(CONNECTION_TIMEOUT, connection(stream, challenges)).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, challenges: Challenges) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path(), &challenges);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(REQUEST_OCTETS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "challenge listener: connection ended");
    }
}

fn respond(method: &Method, path: &str, challenges: &Challenges) -> Response<Full<Bytes>> {
    let answer = if method == Method::GET {
        challenges.answer(path)
    } else {
        None
    };
    let found = answer.is_some();
    let body = answer.unwrap_or_else(|| "only ACME challenges are answered here\n".to_owned());
    let mut response = Response::new(Full::new(Bytes::from(body)));
    if !found {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
