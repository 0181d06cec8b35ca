//! Fetches a policy over HTTPS (RFC 8461 section 3.3): from the domain's own policy host, with a
//! certificate valid for that host, without following redirects.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::policy::{POLICY_OCTETS_MAX, Policy, PolicyError};
use crate::resolver::Resolver;
use crate::tls::ClientTls;
use crate::web::{self, ReachError};

/// Longest time for all of it (RFC 8461 section 3.3 suggests a minute).
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The policy host has no address, or the lookup failed temporarily.
    #[error("{0}")]
    Name(String),
    /// The connection to the policy host failed.
    #[error("{0}")]
    Connect(String),
    /// The certificate is not valid for the policy host, or the host offers no TLS.
    #[error("{0}")]
    Tls(String),
    /// The answer is not HTTP.
    #[error("no usable answer: {0}")]
    Http(String),
    /// Any status but 200; redirections are not followed.
    #[error("the policy host answers with status {0}")]
    Status(u16),
    /// The answer is not text (RFC 8461 section 3.2 demands `text/plain`).
    #[error("the policy is {0:?}, not text/plain")]
    MediaType(String),
    /// The answer exceeds the size limit.
    #[error("the policy has more than {POLICY_OCTETS_MAX} octets")]
    TooLong,
    /// The policy is wrong.
    #[error("{0}")]
    Policy(PolicyError),
    /// The fetch timed out.
    #[error("no policy within {FETCH_TIMEOUT:?}")]
    Timeout,
}

impl From<ReachError> for FetchError {
    fn from(error: ReachError) -> Self {
        match error {
            ReachError::Name(text) => Self::Name(text),
            ReachError::Connect(text) => Self::Connect(text),
            ReachError::Tls(text) => Self::Tls(text),
        }
    }
}

/// The host with a domain's policy.
pub(super) fn policy_host(domain: &str) -> String {
    format!("mta-sts.{domain}")
}

/// Fetches the policy of a domain.
pub(super) async fn fetch(
    resolver: &Resolver,
    https: &ClientTls,
    domain: &str,
    port: u16,
) -> Result<Policy, FetchError> {
    match timeout(FETCH_TIMEOUT, get(resolver, https, domain, port)).await {
        Ok(Ok(text)) => Policy::parse(&text).map_err(FetchError::Policy),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(FetchError::Timeout),
    }
}

async fn get(
    resolver: &Resolver,
    https: &ClientTls,
    domain: &str,
    port: u16,
) -> Result<String, FetchError> {
    let host = policy_host(domain);
    let stream = web::connect(resolver, https, &host, port).await?;
    let http = |error: hyper::Error| FetchError::Http(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    let request = Request::get("/.well-known/mta-sts.txt")
        .header(HOST, &host)
        .header(USER_AGENT, "vere")
        .body(Empty::<Bytes>::new())
        .map_err(|error| FetchError::Http(error.to_string()))?;
    let answer = async {
        let answer = sender.send_request(request).await.map_err(http)?;
        if answer.status() != StatusCode::OK {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        media_type(answer.headers().get(CONTENT_TYPE))?;
        let body = Limited::new(answer.into_body(), POLICY_OCTETS_MAX);
        let whole = body.collect().await.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                FetchError::TooLong
            } else {
                FetchError::Http(error.to_string())
            }
        })?;
        let octets = whole.to_bytes();
        Ok(String::from_utf8_lossy(&octets).into_owned())
    };
    // The connection moves the octets that the answer waits for; with the answer both end.
    tokio::pin!(answer, connection);
    tokio::select! {
        biased;
        text = &mut answer => text,
        ended = &mut connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(http(error)),
        },
    }
}

fn media_type(header: Option<&hyper::header::HeaderValue>) -> Result<(), FetchError> {
    let text = header
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("text/plain") {
        Ok(())
    } else {
        Err(FetchError::MediaType(essence.chars().take(64).collect()))
    }
}
