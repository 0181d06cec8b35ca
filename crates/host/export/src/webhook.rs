//! Lines posted to a server by HTTP, with a signature that proves the origin.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use sha2::Sha256;
use vere_http::{HttpClient, Schemes, authorities, client_config};
use vere_units::Secret;

use crate::{Sink, SinkError};

/// The most octets read of an answer; only the status of the answer is used.
const ANSWER_MAX: usize = 64 * 1024;

/// Where lines are posted.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// `https://...`, or `http://...` within a machine or a management network.
    pub url: String,
    /// The PEM file of the authorities that the server's certificate must come from; else the system's
    /// roots.
    pub ca: Option<PathBuf>,
    /// The key of the signature.
    pub key: Secret<String>,
    /// Longest wait for the server's answer.
    pub timeout: Duration,
}

/// A server that receives lines by POST.
pub struct WebhookSink {
    options: WebhookOptions,
    client: HttpClient<Full<Bytes>>,
}

impl fmt::Debug for WebhookSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSink")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl WebhookSink {
    /// A sink that connects with the first batch.
    ///
    /// # Errors
    /// The file of CA certificates is invalid, or the TLS library cannot be used.
    pub fn new(options: WebhookOptions) -> Result<Self, SinkError> {
        let https = options.url.starts_with("https:");
        let roots = authorities(options.ca.as_deref(), https).map_err(refusal)?;
        let tls = client_config(roots).map_err(refusal)?;
        let client = HttpClient::new(
            tls.with_no_client_auth(),
            Schemes::Any,
            Some(options.timeout),
        );
        Ok(Self { options, client })
    }

    async fn post(&self, body: Bytes) -> Result<(), SinkError> {
        let signature = signature(self.options.key.expose(), unix_time(), &body);
        let request = Request::post(&self.options.url)
            .header(CONTENT_TYPE, "application/x-ndjson")
            .header("vere-signature", signature)
            .body(Full::new(body))
            .map_err(refusal)?;
        let answer = self.client.request(request).await.map_err(refusal)?;
        let (head, body) = answer.into_parts();
        // The answer is read to its end, so that the connection can be used again.
        let _ = Limited::new(body, ANSWER_MAX).collect().await;
        if head.status.is_success() {
            Ok(())
        } else {
            Err(SinkError(format!("the server answered {}", head.status)))
        }
    }
}

impl Sink for WebhookSink {
    async fn take(&mut self, lines: &[Bytes]) -> Result<(), SinkError> {
        let mut body = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in lines {
            body.extend_from_slice(line);
            body.push(b'\n');
        }
        let posted = tokio::time::timeout(self.options.timeout, self.post(body.into())).await;
        posted.unwrap_or_else(|_| {
            let after = self.options.timeout;
            Err(SinkError(format!(
                "the server did not answer within {after:?}"
            )))
        })
    }
}

/// The value of the header field `Vere-Signature`: `t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA-256 of
/// SECONDS, a full stop and the body. The time is signed, so that an old post cannot be repeated as a new
/// post.
#[must_use]
pub fn signature(key: &str, seconds: u64, body: &[u8]) -> String {
    let mut text = format!("t={seconds},v1=");
    // HMAC takes keys of any length.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) {
        mac.update(seconds.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        for octet in mac.finalize().into_bytes() {
            let _ = write!(text, "{octet:02x}");
        }
    }
    text
}

fn refusal(error: impl fmt::Display) -> SinkError {
    SinkError(error.to_string())
}

fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
