//! The checked domain, with the facts that the machine knows.

use std::net::IpAddr;
use std::path::PathBuf;

use nix::ifaddrs::getifaddrs;
use vere_dkim::StoredKey;
use vere_dnsbl::policy::is_public;
use vere_net::resolver::{Resolver, TxtAnswer};
use vere_ports::directory::DomainName;
use vere_process::failure::Failure;
use vere_settings::{RoutePattern, Settings, nearest};

use super::authority::Authority;
use crate::row::Row;

/// The checked domain, with the facts that the machine knows.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) resolver: Resolver,
    /// A resolver that validates, for the proof of TLSA records; `None` with a zone file.
    pub(super) validating: Option<Resolver>,
    /// The port at which the domain's hosts receive mail: 25 outside tests.
    pub(super) mail_port: u16,
    /// The domain in lower case, without a trailing dot.
    pub(super) domain: String,
    /// The host name of the settings: what EHLO says.
    pub(super) hostname: String,
    /// Public addresses of this machine.
    pub(super) addresses: Vec<IpAddr>,
    /// Keys that sign the domain's mail now or later.
    pub(super) keys: Vec<StoredKey>,
    /// Obstacles to signing.
    pub(super) signing: Vec<Row>,
    /// Whether the settings have `[dkim]`.
    pub(super) signs: bool,
    /// Zones of block lists.
    pub(super) lists: Vec<String>,
    /// The authority that issues the certificate (ACME), if one does.
    pub(super) authority: Option<Authority>,
    /// The address for reports of other systems, if the domain has such an account or alias.
    pub(super) reports: Option<String>,
    /// The web server, if one serves the web names of the domain.
    pub(super) web: Option<WebServer>,
    /// Services with SRV records, and the ports of running services.
    pub(super) ports: [(&'static str, Option<u16>); 2],
}

/// The web server of this machine, as the checks need it.
#[derive(Debug, Clone)]
pub(super) struct WebServer {
    /// The port of HTTPS at this machine.
    pub(super) port: u16,
    /// Whether the server has an MTA-STS policy.
    pub(super) has_policy: bool,
    /// Roots for the certificates that clients see; `None` for the system's.
    pub(super) roots: Option<PathBuf>,
}

impl Subject {
    /// The texts of a name with a tag at the beginning. A missing name has no texts.
    ///
    /// # Errors
    /// The row for name servers that do not answer.
    pub(super) async fn texts(
        &self,
        check: &'static str,
        name: &str,
        tag: &str,
    ) -> Result<Vec<String>, Row> {
        match self.resolver.txt(name).await {
            TxtAnswer::Found(texts) => Ok(texts
                .into_iter()
                .filter(|text| begins_with(text, tag))
                .collect()),
            TxtAnswer::None | TxtAnswer::NoSuchName => Ok(Vec::new()),
            TxtAnswer::TempFail(failure) => Err(Row::unanswered(check, name, &failure)),
        }
    }

    /// The addresses of this machine for people.
    pub(super) fn own(&self) -> String {
        listed(&self.addresses)
    }
}

/// Whether a text begins with the tag as a whole word.
fn begins_with(text: &str, tag: &str) -> bool {
    let rest = text.trim_start().get(..tag.len());
    let is_tag = rest.is_some_and(|head| head.eq_ignore_ascii_case(tag));
    let behind = text.trim_start().chars().nth(tag.len());
    is_tag && behind.is_none_or(|next| !next.is_alphanumeric())
}

/// Values in one line.
pub(super) fn listed<T: ToString>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// The public addresses of this machine's interfaces, each once.
#[must_use]
pub fn public_addresses() -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    for interface in getifaddrs().into_iter().flatten() {
        let Some(address) = interface.address else {
            continue;
        };
        let v4 = address.as_sockaddr_in().map(|at| IpAddr::V4(at.ip()));
        let v6 = address.as_sockaddr_in6().map(|at| IpAddr::V6(at.ip()));
        if let Some(address) = v4.or(v6)
            && is_public(address)
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// The given domain as the DNS has it, or all local domains.
///
/// # Errors
/// When the text is no domain, no domain is known, or the directory cannot be read.
pub(super) fn domains(domain: Option<&str>, settings: &Settings) -> Result<Vec<String>, Failure> {
    if let Some(domain) = domain {
        return Ok(vec![DomainName::parse(domain)?.to_string()]);
    }
    let directory = vere_login::directory::open(settings)?;
    let known = directory.store().domains()?.into_iter();
    let domains: Vec<String> = known.map(|domain| domain.name.to_string()).collect();
    match domains.is_empty() {
        true => Err(Failure::new(
            "expected a local domain; found none: name one, or: vere domain add DOMAIN",
        )),
        false => Ok(domains),
    }
}

/// The row for a domain of no local account: the remedies of the further rows would be wrong for a mistyped name.
/// `None` where the domains are not known.
pub(super) fn stranger(domain: &str, settings: &Settings) -> Option<Row> {
    let directory = vere_login::directory::open_if_there(settings).ok()??;
    let known = directory.store().domains().ok()?;
    let known: Vec<String> = known.iter().map(|known| known.name.to_string()).collect();
    // Mail of other systems' domains comes here by a route.
    let route = settings.route(domain);
    let is_routed = route.is_some_and(|route| route.domain != RoutePattern::Any);
    if is_routed || known.iter().any(|known| known == domain) {
        return None;
    }
    let label = match domain.contains('.') {
        true => "",
        false => ", and a name without a dot gets no mail from the internet",
    };
    let meant = nearest(domain, known.iter().map(String::as_str));
    let meant = meant.map_or_else(String::new, |meant| {
        format!("check {meant} if you meant that; otherwise ")
    });
    Some(Row::warning(
        "domain",
        format!("{domain} is not a domain of this system{label}"),
        format!("{meant}add the domain with: vere domain add {domain}"),
    ))
}

/// A domain in lower case, without a trailing dot.
pub(super) fn lower(domain: &str) -> String {
    domain.trim_end_matches('.').to_ascii_lowercase()
}
