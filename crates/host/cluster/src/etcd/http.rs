//! HTTP to one endpoint: every exchange has a bound; a failure says whether the request may have
//! been carried out.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use rustls::ClientConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use vere_http::{FileError, HttpClient, Schemes, authorities, certificates, client_config};

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
#[derive(Debug, Clone)]
pub(super) struct Http(HttpClient<Full<Bytes>>);

impl Http {
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, RegisterError> {
        // The connect timeout ends before the timeout of the exchange: an unreachable host has
        // certainly changed no value.
        let connect = Some(options.timeout * 3 / 4);
        Ok(Self(HttpClient::new(tls(options)?, Schemes::Any, connect)))
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
            let mut value = HeaderValue::try_from(token).map_err(unsent)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(Full::new(body)).map_err(unsent)?;
        let answer = self.0.request(request).await.map_err(|error| Failure {
            sent: error.sent(),
            certificates: error.concerns_certificates(),
            reason: error.to_string(),
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

fn unsent(error: impl fmt::Display) -> Failure {
    Failure {
        reason: error.to_string(),
        sent: false,
        certificates: false,
    }
}

/// Trusts the given authority only, or the system's; shows a certificate if there is one.
fn tls(options: &EtcdOptions) -> Result<ClientConfig, RegisterError> {
    let https = |url: &String| url.starts_with("https:");
    let roots = authorities(options.ca.as_deref(), options.endpoints.iter().any(https));
    let builder = client_config(roots.map_err(refused)?).map_err(refused)?;
    let Some(files) = &options.certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates(&files.certificate).map_err(refused)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| refused(FileError::new(&files.key, &error)))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| refused(FileError::new(&files.certificate, &error)))
}

fn refused(error: impl fmt::Display) -> RegisterError {
    RegisterError::refused(error.to_string())
}

/// The default timeout of an endpoint.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
