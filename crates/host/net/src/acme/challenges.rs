//! Answers http-01 challenges (RFC 8555 section 8.3): a listener without any other purpose, reachable from everywhere.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Response, StatusCode};
use tokio::net::TcpListener;
use vere_http::server;

const PATH: &str = "/.well-known/acme-challenge/";
/// Connections at once: an authority looks from a handful of places.
const CONNECTIONS_MAX: usize = 64;

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
    let respond = move |method: &Method, path: &str| respond(method, path, &challenges);
    server::serve(listener, "challenges", CONNECTIONS_MAX, respond).await;
}

fn respond(method: &Method, path: &str, challenges: &Challenges) -> Response<Full<Bytes>> {
    let answer = challenges.answer(path).filter(|_| method == Method::GET);
    let (status, body) = match answer {
        Some(answer) => (StatusCode::OK, answer),
        None => {
            let body = "only ACME challenges are answered here\n";
            (StatusCode::NOT_FOUND, body.to_owned())
        }
    };
    server::content(status, "application/octet-stream", body)
}
