//! HTTPS to the authority: every request has a time limit, every answer a bound.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Limited;
use hyper::Request;
use instant_acme::{Account, AccountBuilder, BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::time::timeout;
use vere_http::{HttpClient as PooledClient, Schemes};

use super::AcmeError;
use crate::tls::Roots;

/// Longest wait for the header of an answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Octets of an answer: a chain has some 10 KiB.
const ANSWER_OCTETS_MAX: usize = 1024 * 1024;

/// Makes the HTTP client of an account.
#[derive(Clone)]
pub(super) struct ClientFactory {
    make: Arc<dyn Fn() -> Box<dyn HttpClient> + Send + Sync>,
}

impl fmt::Debug for ClientFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientFactory").finish_non_exhaustive()
    }
}

impl ClientFactory {
    /// Clients for HTTPS only, with `roots` as trusted roots.
    pub(super) fn https(roots: &Roots) -> Result<Self, AcmeError> {
        let config = roots.client_config().map_err(AcmeError::Roots)?;
        let client = PooledClient::new(config, Schemes::Https, None);
        Ok(Self::new(move || Box::new(Bounded(client.clone()))))
    }

    pub(super) fn new(make: impl Fn() -> Box<dyn HttpClient> + Send + Sync + 'static) -> Self {
        Self {
            make: Arc::new(make),
        }
    }

    pub(super) fn builder(&self) -> AccountBuilder {
        Account::builder_with_http((self.make)())
    }
}

struct Bounded(PooledClient<BodyWrapper<Bytes>>);

impl HttpClient for Bounded {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            match timeout(REQUEST_TIMEOUT, client.request(request)).await {
                Ok(Ok(answer)) => {
                    let bounded = answer.map(|body| Limited::new(body, ANSWER_OCTETS_MAX));
                    Ok(BytesResponse::from(bounded))
                }
                Ok(Err(error)) => Err(Error::Other(Box::new(error))),
                Err(_) => Err(Error::Other(
                    format!("no answer in {REQUEST_TIMEOUT:?}").into(),
                )),
            }
        })
    }
}
