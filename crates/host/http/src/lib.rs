//! The HTTP client of the hosts (HTTP/1.1): a pool of connections, TLS by rustls, and failures that say whether
//! the request may have been carried out; single exchanges over [any stream](direct); and a small [`server`].
//!
//! The caller bounds the time of an exchange and the octets of an answer.

pub mod direct;
pub mod server;
mod trust;

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{AlertDescription, ClientConfig};

pub use trust::{FileError, authorities, certificates, client_config};

/// The schemes of URLs that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schemes {
    /// `https` alone.
    Https,
    /// Also `http`, for servers within a machine or a management network.
    Any,
}

/// A client with a pool of connections; clones share the pool.
pub struct HttpClient<B>(Client<HttpsConnector<HttpConnector>, B>);

// Derived, it would ask for bodies that are clones.
impl<B> Clone for HttpClient<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B> fmt::Debug for HttpClient<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl<B> HttpClient<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// A client that connects with its first request, each address within `connect` if given.
    #[must_use]
    pub fn new(tls: ClientConfig, schemes: Schemes, connect: Option<Duration>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(connect);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
        let builder = match schemes {
            Schemes::Https => builder.https_only(),
            Schemes::Any => builder.https_or_http(),
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(builder.enable_http1().wrap_connector(tcp));
        Self(client)
    }

    /// Sends a request; its answer has a head, and a body that is still to be read.
    ///
    /// # Errors
    /// There is no connection, or it ends before the head of an answer.
    pub async fn request(&self, request: Request<B>) -> Result<Response<Incoming>, HttpError> {
        self.0.request(request).await.map_err(HttpError)
    }
}

/// Why a request has no answer. The text has all causes: the client itself only says "client error".
#[derive(Debug)]
pub struct HttpError(hyper_util::client::legacy::Error);

impl HttpError {
    /// Whether the request may have been carried out.
    #[must_use]
    pub fn sent(&self) -> bool {
        !self.0.is_connect() && !self.concerns_certificates()
    }

    /// Whether a side rejected the other side's certificate: a retry does not help.
    #[must_use]
    pub fn concerns_certificates(&self) -> bool {
        causes(&self.0).any(rejects_certificate)
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = causes(&self.0).map(ToString::to_string).collect();
        f.write_str(&texts.join(": "))
    }
}

// The text has the causes already.
impl Error for HttpError {}

/// Other alerts may come when the request was carried out: they say nothing of it.
fn rejects_certificate(cause: &(dyn Error + 'static)) -> bool {
    let inner = cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner.or_else(|| cause.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_)) => true,
        Some(rustls::Error::AlertReceived(alert)) => matches!(
            alert,
            AlertDescription::NoCertificate
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRequired
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
        ),
        _ => false,
    }
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
