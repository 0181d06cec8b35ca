//! The addressee of a request: the requested name, and the local domain of the name.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use vere_discovery::Address;
use vere_discovery::names::WebName;
use vere_ports::directory::DomainName;

use crate::refusal::{Refusal, refused, unknown};
use crate::site::{Domains, Site, View};

/// A request to a known name.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) view: Arc<View>,
    pub(crate) name: WebName,
    /// The local domain of the name; `None` for the host itself.
    pub(crate) domain: Option<DomainName>,
    domains: Arc<Domains>,
    query: String,
}

impl Asked {
    /// A value of the query, by any of these names in any case.
    pub(crate) fn value(&self, names: &[&str]) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let found =
            pairs.find(|(name, _)| names.iter().any(|known| name.eq_ignore_ascii_case(known)));
        found.map(|(_, value)| value.into_owned())
    }

    /// The address of a user of a local domain. Whether there is such an account makes no difference.
    ///
    /// # Errors
    /// The answer: 400 for a text that is no address, 404 for another domain.
    pub(crate) fn user(&self, text: &str) -> Result<Address, Refusal> {
        let no_address = || refused(StatusCode::BAD_REQUEST, "expected a mail address");
        let user = Address::parse(text).ok_or_else(no_address)?;
        self.local(&user)?;
        Ok(user)
    }

    /// Whether the domain of an address is local.
    ///
    /// # Errors
    /// The answer 404.
    pub(crate) fn local(&self, user: &Address) -> Result<(), Refusal> {
        match is_local(&self.domains, user.domain()) {
            true => Ok(()),
            false => Err(unknown()),
        }
    }
}

impl FromRequestParts<Arc<Site>> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Refusal> {
        let (view, domains) = (site.view(), site.domains());
        let host = host(&parts.headers, &parts.uri).ok_or_else(unknown)?;
        let name = WebName::parse(host).ok_or_else(unknown)?;
        let domain = name.domain(|domain| is_local(&domains, domain)).cloned();
        let is_host = view.hosts.iter().any(|host| host == name.name.as_str());
        if domain.is_none() && !is_host {
            return Err(match *domains {
                Domains::Unknown => refused(StatusCode::SERVICE_UNAVAILABLE, "starting"),
                Domains::Known(_) => unknown(),
            });
        }
        Ok(Self {
            view,
            name,
            domain,
            domains,
            query: parts.uri.query().unwrap_or_default().to_owned(),
        })
    }
}

fn is_local(domains: &Domains, domain: &DomainName) -> bool {
    match domains {
        Domains::Unknown => false,
        Domains::Known(known) => known.contains(domain),
    }
}

/// The requested name: the name of the target, or else of the field (RFC 9112 section 3.2.2). A request with
/// several fields has none.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    if let Some(authority) = uri.authority() {
        return Some(authority.as_str());
    }
    let mut fields = headers.get_all(HOST).iter();
    let (first, second) = (fields.next()?, fields.next());
    first.to_str().ok().filter(|_| second.is_none())
}
