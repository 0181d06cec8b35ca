//! HTTP exchanges with an S3 server by the HTTP client of the hosts, each with a bound in time and octets.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::ClientConfig;
use tokio::time::{Instant, timeout_at};
use vere_http::Schemes;
use vere_process::failure::Failure;

use crate::manifest;

/// The longest time for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The slowest accepted rate in octets per second.
const RATE_MIN: u64 = 32 * 1024;
/// Octets of an answer: a list, with its seal.
const OCTETS_MAX: u64 = manifest::OCTETS_MAX + 1024;

/// Makes clients, each with connections of its own: a runtime drives the connections that it began.
#[derive(Debug, Clone)]
pub(super) struct Exchanges {
    tls: ClientConfig,
    /// Time for an answer, beside the time for the octets.
    answer: Duration,
}

impl Exchanges {
    /// Clients with trust in the CA certificates of a PEM file, or of the system, and with a longest time for an answer.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn new(bundle: Option<&OsStr>, answer: Duration) -> Result<Self, Failure> {
        let roots = vere_http::authorities(bundle.map(Path::new), true)?;
        let tls = vere_http::client_config(roots)?.with_no_client_auth();
        Ok(Self { tls, answer })
    }
}

impl HttpConnector for Exchanges {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        // An endpoint by http is the choice of the operator, who named it.
        let connect = CONNECT.min(self.answer);
        let http = vere_http::HttpClient::new(self.tls.clone(), Schemes::Any, Some(connect));
        let answer = self.answer;
        Ok(HttpClient::new(Client { http, answer }))
    }
}

/// A client.
#[derive(Debug)]
struct Client {
    http: vere_http::HttpClient<HttpRequestBody>,
    answer: Duration,
}

type Answered<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for Client {
    fn call<'client, 'answered>(&'client self, request: HttpRequest) -> Answered<'answered>
    where
        'client: 'answered,
        Self: 'answered,
    {
        Box::pin(self.exchange(request))
    }
}

impl Client {
    /// Sends a request and reads the whole answer, so that a cut answer counts as a failed request.
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (began, octets) = (Instant::now(), request.body().content_length() as u64);
        let head = timeout_at(began + self.allowed(octets), self.http.request(request)).await;
        let head = head.map_err(|_| self.silent(octets))?.map_err(lost)?;
        let (head, mut body) = head.into_parts();
        let (began, mut read) = (Instant::now(), Vec::new());
        loop {
            let until = began + self.allowed(read.len() as u64);
            let frame = timeout_at(until, body.frame()).await;
            let Some(frame) = frame.map_err(|_| self.slow(read.len()))? else {
                break;
            };
            let frame = frame.map_err(|error| cut(read.len(), &error))?;
            if let Ok(octets) = frame.into_data() {
                read.extend_from_slice(&octets);
            }
            if read.len() as u64 > OCTETS_MAX {
                let text = format!("expected an answer of at most {OCTETS_MAX} bytes; found more");
                return Err(HttpError::new(HttpErrorKind::Decode, Fault(text)));
            }
        }
        Ok(HttpResponse::from_parts(head, HttpResponseBody::from(read)))
    }

    /// Time for so many octets.
    const fn allowed(&self, octets: u64) -> Duration {
        let transfer = Duration::from_secs(octets / RATE_MIN);
        self.answer.saturating_add(transfer)
    }

    fn silent(&self, octets: u64) -> HttpError {
        let allowed = self.allowed(octets);
        let text = format!("expected an answer within {allowed:?}; found none");
        HttpError::new(HttpErrorKind::Timeout, Fault(text))
    }

    fn slow(&self, octets: usize) -> HttpError {
        let allowed = self.allowed(octets as u64);
        let text = format!("expected a whole answer; found {octets} bytes of it in {allowed:?}");
        HttpError::new(HttpErrorKind::Timeout, Fault(text))
    }
}

fn cut(octets: usize, error: &impl fmt::Display) -> HttpError {
    let text = format!("expected a whole answer; found an end after {octets} bytes: {error}");
    HttpError::new(HttpErrorKind::Interrupted, Fault(text))
}

fn lost(error: vere_http::HttpError) -> HttpError {
    let kind = match (error.concerns_certificates(), error.sent()) {
        (true, _) => HttpErrorKind::Unknown,
        (false, false) => HttpErrorKind::Connect,
        (false, true) => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}

/// The kind of an error, and the text with all causes. [`ErrorKind::NotConnected`]: the server gave no usable
/// answer.
pub(super) fn failed(error: object_store::Error) -> io::Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
            ErrorKind::AlreadyExists
        }
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        _ => ErrorKind::NotConnected,
    };
    io::Error::new(kind, error)
}

/// What is wrong with an answer.
#[derive(Debug)]
struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Fault {}
