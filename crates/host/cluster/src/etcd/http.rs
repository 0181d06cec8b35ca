//! HTTP to one endpoint: every exchange has a bound; a failure says whether the request may have
//! been carried out.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::EtcdOptions;
use crate::RegisterError;

/// Octets of an answer.
const ANSWER_MAX: usize = 1 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// Whether the request may have been carried out.
    pub(super) sent: bool,
    /// Whether the failure concerns certificates, so that a retry does not help.
    pub(super) certificates: bool,
}

/// A client with a pool of connections.
#[derive(Clone)]
pub(super) struct Http(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Http {
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, RegisterError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // The connect timeout ends before the timeout of the exchange: an unreachable host has
        // certainly changed no value.
        tcp.set_connect_timeout(Some(options.timeout * 3 / 4));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(options)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self(client))
    }

    /// Posts JSON; the caller bounds the time.
    pub(super) async fn post(
        &self,
        url: &str,
        body: Bytes,
        token: Option<&str>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let mut request = Request::post(url).header(CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            let mut value = HeaderValue::try_from(token).map_err(|error| unsent(&error))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| unsent(&error))?;
        let answer = self.0.request(request).await.map_err(|error| Failure {
            sent: !error.is_connect() && !is_tls(&error),
            certificates: is_tls(&error),
            reason: chain(&error),
        })?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| Failure {
            reason: format!("the answer breaks off or exceeds {ANSWER_MAX} octets: {error}"),
            sent: true,
            certificates: false,
        })?;
        Ok((head.status, body.to_bytes()))
    }
}

fn unsent(error: &dyn Error) -> Failure {
    Failure {
        reason: error.to_string(),
        sent: false,
        certificates: false,
    }
}

/// The client itself only says "client error"; its causes say more.
fn chain(error: &(dyn Error + 'static)) -> String {
    let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    texts.join(": ")
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Whether a side rejected the other side's certificate: the request was then not carried out.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let inner = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        matches!(
            inner.or_else(|| cause.downcast_ref()),
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::AlertReceived(_))
        )
    })
}

/// Trusts the given authority only, or the system's; shows a certificate if there is one.
fn tls(options: &EtcdOptions) -> Result<ClientConfig, RegisterError> {
    let mut roots = RootCertStore::empty();
    match &options.ca {
        Some(path) => {
            for root in certificates(path)? {
                roots.add(root).map_err(|error| wrong(path, &error))?;
            }
        }
        None if options
            .endpoints
            .iter()
            .any(|url| url.starts_with("https:")) =>
        {
            // Some systems carry roots that the library cannot read; the other roots suffice.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        None => {}
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| RegisterError::refused(error.to_string()))?
        .with_root_certificates(roots);
    let Some(files) = &options.certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    builder
        .with_client_auth_cert(certificates(&files.certificate)?, key)
        .map_err(|error| wrong(&files.certificate, &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, RegisterError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| wrong(path, &error))?;
    if certificates.is_empty() {
        return Err(wrong(path, &"holds no certificate"));
    }
    Ok(certificates)
}

fn wrong(path: &Path, what: &dyn fmt::Display) -> RegisterError {
    RegisterError::refused(format!("{}: {what}", path.display()))
}

/// The default timeout of an endpoint.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
