//! Requests to the collector (OTLP/HTTP, `POST /v1/logs`).

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode};
use serde::Deserialize;
use vere_http::{HttpClient, Schemes, authorities, client_config};
use vere_settings::Settings;

use crate::error::OtlpError;

/// The path below the base URL of the setting.
const PATH: &str = "/v1/logs";
/// The longest time of a request with its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most octets read of an answer.
const ANSWER_OCTETS_MAX: usize = 64 * 1024;
/// The most octets of the file of header fields.
const HEADERS_OCTETS_MAX: u64 = 64 * 1024;
/// The longest wait that a collector may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// The collector of the settings.
pub(crate) struct Collector {
    url: String,
    headers: HeaderMap,
    client: HttpClient<Full<Bytes>>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Header fields are secrets.
        f.debug_struct("Collector")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The collector has the records, but for so many.
    Taken(u64),
    /// The same request may succeed later, perhaps not before this time.
    Later(String, Option<Duration>),
    /// The collector never takes these records.
    Refused(String),
}

impl Collector {
    /// The collector of the settings; the first request connects.
    ///
    /// # Errors
    /// The settings name none, or the roots or header fields cannot be used.
    pub(crate) fn new(settings: &Settings) -> Result<Self, OtlpError> {
        let log = &settings.log;
        let base = log.otlp.as_deref().ok_or(OtlpError::NoCollector)?;
        let is_https = base.starts_with("https:");
        let roots = authorities(log.otlp_ca.as_deref(), is_https)?;
        let tls = client_config(roots).map_err(|error| OtlpError::Tls(error.to_string()))?;
        let headers = log.otlp_headers.as_deref().map(headers).transpose()?;
        Ok(Self {
            url: format!("{}{PATH}", base.trim_end_matches('/')),
            headers: headers.unwrap_or_default(),
            client: HttpClient::new(tls.with_no_client_auth(), Schemes::Any, Some(PATIENCE)),
        })
    }

    /// Sends a body.
    pub(crate) async fn post(&self, body: Bytes) -> Answer {
        match tokio::time::timeout(PATIENCE, self.exchange(body)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(problem)) => Answer::Later(problem, None),
            Err(_) => Answer::Later(format!("no answer within {} s", PATIENCE.as_secs()), None),
        }
    }

    async fn exchange(&self, body: Bytes) -> Result<Answer, String> {
        let mut request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(
                USER_AGENT,
                concat!("veredarius/", env!("CARGO_PKG_VERSION")),
            )
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let answer = self.client.request(request).await;
        let (head, body) = answer.map_err(|error| error.to_string())?.into_parts();
        // The answer is read to its end, so that the connection can be used again.
        let body = Limited::new(body, ANSWER_OCTETS_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(judged(head.status, &head.headers, &body))
    }
}

/// The meaning of an answer (OTLP specification, "OTLP/HTTP Response").
fn judged(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Answer {
    if status.is_success() {
        return Answer::Taken(rejected(body));
    }
    let text = format!("the collector answers with status {status}");
    match status.as_u16() {
        429 | 502 | 503 | 504 => Answer::Later(text, retry_after(headers)),
        _ => Answer::Refused(text),
    }
}

/// `ExportLogsServiceResponse`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    partial_success: Option<Partial>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Partial {
    rejected_log_records: Number,
}

/// A 64-bit integer, as a text or as a number: collectors write both.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Plain(u64),
}

impl Default for Number {
    fn default() -> Self {
        Self::Plain(0)
    }
}

fn rejected(body: &[u8]) -> u64 {
    let response: Response = serde_json::from_slice(body).unwrap_or_default();
    match response
        .partial_success
        .unwrap_or_default()
        .rejected_log_records
    {
        Number::Plain(count) => count,
        Number::Text(text) => text.parse().unwrap_or_default(),
    }
}

/// The seconds of `Retry-After` (RFC 9110 section 10.2.3); a date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// The header fields of a file: `Name: value` in each line; empty lines and those that begin with `#` do not count.
fn headers(path: &Path) -> Result<HeaderMap, OtlpError> {
    let wrong = |problem: String| OtlpError::Headers {
        path: path.to_owned(),
        problem,
    };
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(HEADERS_OCTETS_MAX).read_to_string(&mut text));
    read.map_err(|error| wrong(error.to_string()))?;
    let mut headers = HeaderMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let field = line.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        // The line may be a secret.
        let number = number.saturating_add(1);
        let (name, value) =
            field.ok_or_else(|| wrong(format!("line {number}: expected `Name: value`")))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_the_standard_says() {
        let judged = |status: u16, retry: &str, body: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(retry).unwrap());
            super::judged(
                StatusCode::from_u16(status).unwrap(),
                &headers,
                body.as_bytes(),
            )
        };
        assert_eq!(judged(200, "", "{}"), Answer::Taken(0));
        assert_eq!(judged(200, "", "\0"), Answer::Taken(0));
        let partial = "{\"partialSuccess\":{\"rejectedLogRecords\":\"3\",\"errorMessage\":\"x\"}}";
        assert_eq!(judged(200, "", partial), Answer::Taken(3));
        let partial = partial.replace("\"3\"", "3");
        assert_eq!(judged(200, "", &partial), Answer::Taken(3));
        for status in [429, 502, 503, 504] {
            let wait = |retry: &str| match judged(status, retry, "") {
                Answer::Later(_, wait) => wait,
                other => panic!("{other:?}"),
            };
            assert_eq!(wait("7"), Some(Duration::from_secs(7)));
            assert_eq!(wait("99999"), Some(RETRY_AFTER_MAX));
            assert_eq!(wait("Wed, 21 Oct 2026 07:28:00 GMT"), None);
        }
        for status in [400, 401, 404, 413, 500, 302] {
            assert!(
                matches!(judged(status, "7", ""), Answer::Refused(_)),
                "{status}"
            );
        }
    }

    #[test]
    fn header_fields_come_from_a_file_and_are_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        std::fs::write(
            &path,
            "# a comment\n\nAuthorization: Bearer s3cret\nx-scope:  a:b \n",
        )
        .unwrap();
        let found = headers(&path).unwrap();
        assert_eq!(found["authorization"], "Bearer s3cret");
        assert_eq!(found["x-scope"], "a:b");
        assert!(!format!("{found:?}").contains("s3cret"));
        for wrong in ["s3cret", "na me: s3cret", "name: s3\u{1}cret"] {
            std::fs::write(&path, format!("a: b\n{wrong}\n")).unwrap();
            let error = headers(&path).unwrap_err().to_string();
            assert!(
                error.contains("line 2: expected") && !error.contains("s3"),
                "{error}"
            );
        }
    }
}
