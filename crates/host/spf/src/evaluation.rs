//! The evaluation of policies: check_host() of RFC 7208 section 4.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::macros::{DomainSpec, Letter};
use crate::name::{self, is_name, is_within, shortened};
use crate::policy::{Malformed, Mechanism, Policy, Prefixes, Qualifier, is_policy};
use crate::{Dns, Family, Session, SpfResult, Unavailable};

/// Most terms of a check that ask the DNS (RFC 7208 section 4.6.4).
const TERMS_MAX: u8 = 10;
/// Most terms of a check with a question for an absent name or absent records. RFC 7208 section 4.6.4 counts "terms", not
/// questions: an `mx` is one, however many of its hosts have no address of the client's family. Otherwise three exchangers without IPv6
/// would make the policy of their domain wrong for clients of IPv6.
const VOID_TERMS_MAX: u8 = 2;
/// Most exchangers of an `mx` and names of a client (RFC 7208 section 4.6.4).
const HOSTS_MAX: usize = 10;
/// The local part of an identity without one (RFC 7208 section 4.3).
const POSTMASTER: &str = "postmaster";

/// Evaluates the policy of the reverse-path's domain, and for the null reverse-path that of the HELO name.
pub async fn check(dns: &impl Dns, session: Session<'_>) -> SpfResult {
    let (local, domain) = match session.reverse_path.rsplit_once('@') {
        Some(("", domain)) => (POSTMASTER, domain),
        Some(parts) => parts,
        None => (POSTMASTER, session.helo),
    };
    let mut check = Check {
        dns,
        client: session.client.to_canonical(),
        helo: session.helo,
        local,
        domain,
        terms: 0,
        void_terms: 0,
        client_names: None,
        is_nameless: false,
    };
    match check.policy(domain).await {
        Ok(Some(Qualifier::Pass)) => SpfResult::Pass,
        Ok(Some(Qualifier::Fail)) => SpfResult::Fail,
        Ok(Some(Qualifier::SoftFail)) => SpfResult::SoftFail,
        Ok(Some(Qualifier::Neutral)) => SpfResult::Neutral,
        Ok(None) => SpfResult::None,
        Err(Broken::ForNow) => SpfResult::TempError,
        Err(Broken::Policy) => SpfResult::PermError,
    }
}

/// Why a check has no result.
#[derive(Debug, Clone, Copy)]
enum Broken {
    /// The DNS does not answer: temperror.
    ForNow,
    /// A policy is wrong or asks for too much: permerror.
    Policy,
}

impl From<Unavailable> for Broken {
    fn from(_: Unavailable) -> Self {
        Self::ForNow
    }
}

impl From<Malformed> for Broken {
    fn from(_: Malformed) -> Self {
        Self::Policy
    }
}

/// A check under way.
struct Check<'a, D> {
    dns: &'a D,
    client: IpAddr,
    helo: &'a str,
    /// The local part of the identity.
    local: &'a str,
    /// The domain of the identity.
    domain: &'a str,
    /// Terms that have asked the DNS.
    terms: u8,
    /// Terms that have found nothing.
    void_terms: u8,
    /// The names of the client whose addresses contain that of the client, once they were looked up.
    client_names: Option<Vec<String>>,
    /// Whether the look-up of these names has found none.
    is_nameless: bool,
}

impl<D: Dns> Check<'_, D> {
    /// Evaluates the policy of a domain; `None` without a policy.
    async fn policy(&mut self, domain: &str) -> Result<Option<Qualifier>, Broken> {
        let Some(mut policy) = self.record(domain).await? else {
            return Ok(None);
        };
        let mut domain = domain.to_owned();
        loop {
            for directive in &policy.directives {
                if self.matches(&directive.mechanism, &domain).await? {
                    return Ok(Some(directive.qualifier));
                }
            }
            let Some(redirect) = &policy.redirect else {
                return Ok(Some(Qualifier::Neutral));
            };
            self.count_term()?;
            let target = self.target(Some(redirect), &domain).await;
            domain = target.ok_or(Broken::Policy)?;
            policy = self.record(&domain).await?.ok_or(Broken::Policy)?;
        }
    }

    /// Looks up the policy of a domain (RFC 7208 section 4.5).
    async fn record(&self, domain: &str) -> Result<Option<Policy>, Broken> {
        let Some(domain) = name::domain(domain) else {
            return Ok(None);
        };
        let texts = self.dns.texts(domain).await?;
        let mut policies = texts.iter().filter(|text| is_policy(text));
        match (policies.next(), policies.next()) {
            (None, _) => Ok(None),
            (Some(policy), None) => Ok(Some(Policy::parse(policy)?)),
            (Some(_), Some(_)) => Err(Broken::Policy),
        }
    }

    async fn matches(&mut self, mechanism: &Mechanism, domain: &str) -> Result<bool, Broken> {
        let spec = match mechanism {
            Mechanism::All => return Ok(true),
            Mechanism::Ip4(address, v4) => {
                let prefixes = Prefixes { v4: *v4, v6: 128 };
                return Ok(self.is_near((*address).into(), prefixes));
            }
            Mechanism::Ip6(address, v6) => {
                let prefixes = Prefixes { v4: 32, v6: *v6 };
                return Ok(self.is_near((*address).into(), prefixes));
            }
            Mechanism::Include(spec) | Mechanism::Exists(spec) => Some(spec),
            Mechanism::A(spec, _) | Mechanism::Mx(spec, _) | Mechanism::Ptr(spec) => spec.as_ref(),
        };
        self.count_term()?;
        let Some(target) = self.target(spec, domain).await else {
            return Ok(false);
        };
        match mechanism {
            Mechanism::Include(_) => self.include(&target).await,
            Mechanism::A(_, prefixes) => {
                let found = self.addresses(&target, self.family()).await?;
                self.count_void(found.is_empty())?;
                let mut found = found.into_iter();
                Ok(found.any(|address| self.is_near(address, *prefixes)))
            }
            Mechanism::Mx(_, prefixes) => self.exchangers(&target, *prefixes).await,
            Mechanism::Ptr(_) => {
                let names = self.client_names().await;
                let is_found = names.iter().any(|name| is_within(name, &target));
                self.count_void(self.is_nameless)?;
                Ok(is_found)
            }
            // A records alone, for clients of IPv6 as well (RFC 7208 section 5.7).
            _ => {
                let found = self.addresses(&target, Family::V4).await?;
                self.count_void(found.is_empty())?;
                Ok(!found.is_empty())
            }
        }
    }

    /// RFC 7208 section 5.2.
    async fn include(&mut self, target: &str) -> Result<bool, Broken> {
        match Box::pin(self.policy(target)).await? {
            Some(qualifier) => Ok(qualifier == Qualifier::Pass),
            None => Err(Broken::Policy),
        }
    }

    /// RFC 7208 section 5.4.
    async fn exchangers(&mut self, target: &str, prefixes: Prefixes) -> Result<bool, Broken> {
        let hosts = match is_name(target) {
            true => self.dns.exchangers(target).await?,
            false => Vec::new(),
        };
        if hosts.len() > HOSTS_MAX {
            return Err(Broken::Policy);
        }
        let mut is_void = hosts.is_empty();
        for host in &hosts {
            let mut found = self.addresses(host, self.family()).await?.into_iter();
            is_void |= found.len() == 0;
            if found.any(|address| self.is_near(address, prefixes)) {
                return Ok(true);
            }
        }
        self.count_void(is_void)?;
        Ok(false)
    }

    async fn addresses(&self, name: &str, family: Family) -> Result<Vec<IpAddr>, Unavailable> {
        let name = shortened(name);
        match is_name(name) {
            true => self.dns.addresses(name, family).await,
            false => Ok(Vec::new()),
        }
    }

    /// The names of the client that lead back to the client (RFC 7208 section 5.5). Errors leave names out.
    async fn client_names(&mut self) -> &[String] {
        if self.client_names.is_none() {
            let names = self.dns.names(self.client).await;
            self.is_nameless = names.as_ref().is_ok_and(Vec::is_empty);
            let names = names.unwrap_or_default();
            let mut kept = Vec::new();
            for name in names.into_iter().take(HOSTS_MAX) {
                let found = self.addresses(&name, self.family()).await;
                if found.is_ok_and(|found| found.contains(&self.client)) {
                    kept.push(shortened(&name).to_owned());
                }
            }
            self.client_names = Some(kept);
        }
        self.client_names.as_deref().unwrap_or_default()
    }

    /// The value of `%{p}`: the domain itself, else a name below the domain, else any name (RFC 7208 section 7.3).
    async fn client_name(&mut self, domain: &str) -> String {
        let names = self.client_names().await;
        let same = names.iter().find(|name| name.eq_ignore_ascii_case(domain));
        let below = || names.iter().find(|name| is_within(name, domain));
        let any = || names.first();
        let name = same.or_else(below).or_else(any);
        name.cloned().unwrap_or_else(|| "unknown".to_owned())
    }

    /// Expands the name of a term; without one the name is the domain. `None`: the term uses a local part that has no form
    /// in the DNS, and does not match (RFC 8616 section 4).
    async fn target(&mut self, spec: Option<&DomainSpec>, domain: &str) -> Option<String> {
        let Some(spec) = spec else {
            return Some(domain.to_owned());
        };
        let uses_local_part = spec.uses(Letter::Sender) || spec.uses(Letter::LocalPart);
        if uses_local_part && !self.local.is_ascii() {
            return None;
        }
        let client_name = match spec.uses(Letter::ClientName) {
            true => self.client_name(domain).await,
            false => String::new(),
        };
        let name = spec.expanded(|letter| match letter {
            Letter::Sender => format!("{}@{}", self.local, self.domain).into(),
            Letter::LocalPart => self.local.into(),
            Letter::SenderDomain => self.domain.into(),
            Letter::Domain => domain.into(),
            Letter::Address => dotted(self.client).into(),
            Letter::ClientName => Cow::from(&client_name),
            Letter::Family if self.client.is_ipv4() => "in-addr".into(),
            Letter::Family => "ip6".into(),
            Letter::Helo => self.helo.into(),
        });
        Some(shortened(&name).to_owned())
    }

    /// Whether the client is in the network of an address of the same family.
    fn is_near(&self, address: IpAddr, prefixes: Prefixes) -> bool {
        match (self.client, address) {
            (IpAddr::V4(client), IpAddr::V4(address)) => {
                let differences = client.to_bits() ^ address.to_bits();
                differences.leading_zeros() >= prefixes.v4
            }
            (IpAddr::V6(client), IpAddr::V6(address)) => {
                let differences = client.to_bits() ^ address.to_bits();
                differences.leading_zeros() >= prefixes.v6
            }
            _ => false,
        }
    }

    const fn family(&self) -> Family {
        match self.client {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    fn count_term(&mut self) -> Result<(), Broken> {
        self.terms = self.terms.saturating_add(1);
        match self.terms <= TERMS_MAX {
            true => Ok(()),
            false => Err(Broken::Policy),
        }
    }

    fn count_void(&mut self, is_void: bool) -> Result<(), Broken> {
        self.void_terms = self.void_terms.saturating_add(is_void.into());
        match self.void_terms <= VOID_TERMS_MAX {
            true => Ok(()),
            false => Err(Broken::Policy),
        }
    }
}

/// An address as `%{i}` has it (RFC 7208 section 7.3).
fn dotted(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let nibbles = |octet: u8| format!("{:x}.{:x}", octet >> 4, octet & 15);
            address.octets().map(nibbles).join(".")
        }
    }
}
