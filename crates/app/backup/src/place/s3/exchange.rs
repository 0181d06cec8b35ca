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

/// Time for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for an answer, beside that for the octets, and the slowest accepted rate in octets per second.
const ANSWER: Duration = Duration::from_secs(30);
const RATE_MIN: u64 = 32 * 1024;
/// Octets of an answer: a list, with its seal.
const OCTETS_MAX: u64 = manifest::OCTETS_MAX + 1024;

/// Makes clients, each with connections of its own: a runtime drives the connections that it began.
#[derive(Debug, Clone)]
pub(super) struct Exchanges(ClientConfig);

impl Exchanges {
    /// Clients that trust the CA certificates of a PEM file, or those of the system.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn new(bundle: Option<&OsStr>) -> Result<Self, Failure> {
        let roots = vere_http::authorities(bundle.map(Path::new), true)?;
        Ok(Self(vere_http::client_config(roots)?.with_no_client_auth()))
    }
}

impl HttpConnector for Exchanges {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        // An endpoint by http is the choice of the operator, who named it.
        let client = vere_http::HttpClient::new(self.0.clone(), Schemes::Any, Some(CONNECT));
        Ok(HttpClient::new(Client(client)))
    }
}

/// A client.
#[derive(Debug)]
struct Client(vere_http::HttpClient<HttpRequestBody>);

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
        let began = Instant::now();
        let octets = request.body().content_length() as u64;
        let head = timeout_at(began + allowed(octets), self.0.request(request)).await;
        let head = head.map_err(|_| silent())?.map_err(lost)?;
        let (head, mut body) = head.into_parts();
        let (began, mut read) = (Instant::now(), Vec::new());
        loop {
            let frame = timeout_at(began + allowed(read.len() as u64), body.frame()).await;
            let Some(frame) = frame.map_err(|_| silent())? else {
                break;
            };
            let frame = frame.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
            if let Ok(octets) = frame.into_data() {
                read.extend_from_slice(&octets);
            }
            if read.len() as u64 > OCTETS_MAX {
                return Err(HttpError::new(
                    HttpErrorKind::Decode,
                    Fault("the answer is too long"),
                ));
            }
        }
        Ok(HttpResponse::from_parts(head, HttpResponseBody::from(read)))
    }
}

/// Time for so many octets.
const fn allowed(octets: u64) -> Duration {
    ANSWER.saturating_add(Duration::from_secs(octets / RATE_MIN))
}

fn silent() -> HttpError {
    HttpError::new(
        HttpErrorKind::Timeout,
        Fault("the server does not answer, or too slowly"),
    )
}

fn lost(error: vere_http::HttpError) -> HttpError {
    let kind = match (error.concerns_certificates(), error.sent()) {
        (true, _) => HttpErrorKind::Unknown,
        (false, false) => HttpErrorKind::Connect,
        (false, true) => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}

/// The kind of an error, and the text with all causes.
pub(super) fn failed(error: object_store::Error) -> io::Error {
    let kind = match &error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
            ErrorKind::AlreadyExists
        }
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// What is wrong with an answer.
#[derive(Debug)]
struct Fault(&'static str);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Fault {}
