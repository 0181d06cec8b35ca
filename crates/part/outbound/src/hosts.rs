//! Which hosts take the mail of a destination, in which order (RFC 5321 section 5).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use vere_delivery::Unroutable;
use vere_net::resolver::{AddressAnswer, MxAnswer};
use vere_net::sts::{FetchError, Held, StsAnswer};
use vere_queue::{Destination, Place, SiteName, TlsWish};
use vere_sasl::client::Credentials;
use vere_settings::{NextHop, Protocol, Route, Settings, Source, TlsMode};
use vere_smtp::address::AddressLiteral;

use super::own::Own;
use super::statuses::{LOOP, NO_DOMAIN, NO_MAIL};
use super::{Outbound, OutboundConfig};
use vere_process::clock;

/// Hosts tried in one attempt: the rest of a long list costs the queue more than it helps.
pub const HOSTS_MAX: usize = 5;
/// Addresses tried of one host.
const ADDRESSES_MAX: usize = 8;

/// The hosts of a destination, and how to talk to them.
#[derive(Debug)]
pub struct Hosts {
    /// In the order to be tried, at most [`HOSTS_MAX`].
    pub hosts: Vec<Host>,
    /// Which hosts serve the destination, whatever their order, also those that are not tried.
    pub site: SiteName,
    /// What the settings say of encryption.
    pub tls: TlsMode,
    /// What the senders say of it.
    pub(super) wish: TlsWish,
    /// The domain that mail goes to, for a destination that is one.
    pub(super) domain: Option<String>,
    /// Whether DNSSEC proves that these are the domain's hosts.
    pub proven: bool,
    /// What the domain says of it.
    pub sts: Option<Arc<Held>>,
    /// Why the domain's policy cannot be fetched.
    pub(super) sts_fault: Option<FetchError>,
    /// SMTP or LMTP.
    pub protocol: Protocol,
    /// User name and password for the next hop.
    pub(super) login: Option<Credentials>,
    pub(super) password_in_clear: bool,
    /// Under which addresses and name we come.
    pub(super) source: Option<Source>,
}

/// One host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The host name or IP address.
    pub name: String,
    /// The TCP port.
    pub port: u16,
    /// The preference of its MX record; absent for a host that was not found by one.
    pub preference: Option<u16>,
    /// Its addresses, or why none is known.
    pub addresses: Result<Vec<IpAddr>, String>,
    /// Names below which its TLSA records may lie.
    pub tlsa_bases: Vec<String>,
}

impl Host {
    fn new(name: impl Into<String>, port: u16) -> Self {
        let name = name.into();
        Self {
            // A name that is an address already stands for itself.
            addresses: match name.parse::<IpAddr>() {
                Ok(address) => Ok(vec![address]),
                Err(_) => Err("its addresses were not asked for".to_owned()),
            },
            name,
            port,
            preference: None,
            tlsa_bases: Vec::new(),
        }
    }

    /// Where it listens, if it is known.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        let addresses = self.addresses.iter().flatten();
        addresses.map(|address| SocketAddr::new(*address, self.port))
    }
}

impl Outbound {
    /// Finds the hosts of a destination and their addresses.
    ///
    /// # Errors
    /// When a name cannot be looked up now, does not exist, says that it takes no mail, or leads back here.
    pub async fn find(&self, destination: &Destination) -> Result<Hosts, Unroutable> {
        let wish = destination.wish;
        let hosts = self.find_place(&destination.place, wish).await?;
        Ok(Hosts { wish, ..hosts })
    }

    /// Whether one of the hosts is this system: mail for such a host comes back.
    #[must_use]
    pub fn is_own(&self, hosts: &Hosts) -> bool {
        let config = self.config();
        let own = Own::new(&config.settings, &self.interfaces);
        let mut sockets = hosts.hosts.iter().flat_map(Host::sockets);
        sockets.any(|at| own.listens_on(at))
    }

    async fn find_place(&self, place: &Place, wish: TlsWish) -> Result<Hosts, Unroutable> {
        let config = self.config();
        let settings = &config.settings;
        let port = settings.delivery.port;
        match place {
            Place::Relay(next_hop) => {
                let host = parse_next_hop(next_hop, port);
                let route = settings.routes.iter().find(|r| is_route_to(r, &host));
                let hosts = self.resolve(vec![host]).await;
                Ok(Hosts::new(&config, hosts, route))
            }
            Place::Domain(domain) => {
                let own = Own::new(settings, &self.interfaces);
                let (hosts, proven) = self.exchangers(domain, port).await?;
                let hosts = cut(hosts, |host| own.is_called(&host.name), domain)?;
                let names = names(&hosts);
                let hosts = self.resolve(hosts).await;
                let is_own = |host: &Host| host.sockets().any(|at| own.listens_on(at));
                let hosts = cut(hosts, is_own, domain)?;
                let mut hosts = Hosts::new(&config, hosts, mx_route(settings, domain));
                hosts.site = site(&names, hosts.source.as_ref());
                let asked = !domain.starts_with('[') && wish != TlsWish::Optional;
                let answer = match asked {
                    true => self.sts_policy(domain, hosts.tls).await,
                    false => StsAnswer::None,
                };
                let (sts, sts_fault) = match answer {
                    StsAnswer::Policy(held) => (Some(held), None),
                    // The failure was logged where it happened; RFC 8461 section 5.1 lets the mail go.
                    StsAnswer::Unavailable(fault) => (None, Some(fault)),
                    StsAnswer::None => (None, None),
                };
                Ok(Hosts {
                    domain: Some(domain.clone()),
                    proven,
                    sts,
                    sts_fault,
                    ..hosts
                })
            }
            // The mail store of this system, on this machine.
            Place::Local => {
                let store = settings.lmtp.listen.first();
                let host =
                    |address: &SocketAddr| Host::new(address.ip().to_string(), address.port());
                let hosts = Hosts::new(&config, store.map(host).into_iter().collect(), None);
                Ok(Hosts {
                    tls: TlsMode::Off,
                    protocol: Protocol::Lmtp,
                    source: None,
                    ..hosts
                })
            }
        }
    }

    /// The mail exchangers of a domain, and whether DNSSEC proves them.
    async fn exchangers(&self, domain: &str, port: u16) -> Result<(Vec<Host>, bool), Unroutable> {
        if let Ok(literal) = AddressLiteral::parse(domain) {
            let address = match literal {
                AddressLiteral::V4(address) => address.to_string(),
                AddressLiteral::V6(address) => address.to_string(),
            };
            return Ok((vec![Host::new(address, port)], false));
        }
        let by_mx = |(preference, name): (u16, String)| Host {
            preference: Some(preference),
            ..Host::new(name, port)
        };
        let (answer, proven) = self.resolver.exchangers(domain).await;
        match answer {
            MxAnswer::Hosts(hosts) => Ok((hosts.into_iter().map(by_mx).collect(), proven)),
            MxAnswer::None => Ok((vec![Host::new(domain, port)], proven)),
            MxAnswer::NullMx => Err(permanent(
                NO_MAIL,
                format!("{domain} takes no mail (null MX)"),
            )),
            MxAnswer::NoSuchDomain => Err(permanent(
                NO_DOMAIN,
                format!("domain {domain} does not exist"),
            )),
            MxAnswer::TempFail(failure) => Err(Unroutable::Temporary(format!(
                "cannot look up the mail exchangers of {domain}: {failure}"
            ))),
        }
    }

    /// Looks up the addresses of the first hosts, all at the same time, and puts those last that did not
    /// answer a moment ago.
    async fn resolve(&self, mut hosts: Vec<Host>) -> Vec<Host> {
        hosts.truncate(HOSTS_MAX);
        let names = hosts.iter().map(|host| host.name.clone()).collect();
        let answers = self.resolver.hosts(names).await;
        for (host, answer) in hosts.iter_mut().zip(answers) {
            if host.name.parse::<IpAddr>().is_err() {
                host.addresses = known(answer.addresses, &host.name);
                host.tlsa_bases = answer.tlsa_bases;
            }
        }
        let now = clock::steady();
        let failures = self.failures.borrow();
        let fails = |host: &Host| {
            let mut sockets = host.sockets().peekable();
            sockets.peek().is_some() && sockets.all(|at| failures.is_failing(at, now))
        };
        hosts.sort_by_key(|host| fails(host));
        hosts
    }
}

impl Hosts {
    fn new(config: &OutboundConfig, hosts: Vec<Host>, route: Option<&Route>) -> Self {
        let settings = &config.settings;
        let source = match route {
            Some(route) => route.source.as_ref(),
            None => settings.delivery.source.as_ref(),
        };
        let source = source.and_then(|name| settings.source(name)).cloned();
        Self {
            site: site(&names(&hosts), source.as_ref()),
            hosts,
            tls: route.map_or(settings.delivery.tls, |route| route.tls),
            domain: None,
            wish: TlsWish::None,
            // A host that the settings name is the right one.
            proven: true,
            sts: None,
            sts_fault: None,
            protocol: route.map_or(Protocol::Smtp, |route| route.protocol),
            login: route.and_then(|route| config.credentials(route)),
            password_in_clear: route.is_some_and(may_send_password_in_clear),
            source,
        }
    }
}

fn names(hosts: &[Host]) -> Vec<(String, u16)> {
    hosts
        .iter()
        .map(|host| (host.name.clone(), host.port))
        .collect()
}

fn site(names: &[(String, u16)], source: Option<&Source>) -> SiteName {
    let names = names.iter().map(|(name, port)| (name.as_str(), *port));
    SiteName::new(names, source.map(|source| source.name.as_str()))
}

/// The settings allow it for this machine itself, and where the operator says so.
fn may_send_password_in_clear(route: &Route) -> bool {
    let loopback = match &route.next_hop {
        NextHop::Host { host, .. } => host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        NextHop::Mx | NextHop::Local => false,
    };
    route.password_in_clear || loopback
}

fn is_route_to(route: &Route, to: &Host) -> bool {
    matches!(&route.next_hop, NextHop::Host { host, port } if *host == to.name && *port == to.port)
}

/// The route that sends a domain's mail to its exchangers, if there is one.
fn mx_route<'a>(settings: &'a Settings, domain: &str) -> Option<&'a Route> {
    let route = settings.route(domain)?;
    (route.next_hop == NextHop::Mx).then_some(route)
}

/// `HOST:PORT` or `[ADDRESS]:PORT`, as the routing wrote it.
fn parse_next_hop(next_hop: &str, default_port: u16) -> Host {
    let (name, port) = next_hop.rsplit_once(':').unwrap_or((next_hop, ""));
    let name = name.trim_start_matches('[').trim_end_matches(']');
    Host::new(name, port.parse().unwrap_or(default_port))
}

/// Takes out ourselves and every host that is not preferred to us (RFC 5321 section 5.1): they would give
/// the message to us.
fn cut(
    mut hosts: Vec<Host>,
    is_own: impl Fn(&Host) -> bool,
    domain: &str,
) -> Result<Vec<Host>, Unroutable> {
    let own = hosts.iter().filter(|host| is_own(host));
    if let Some(ours) = own.map(|host| host.preference).min() {
        hosts.retain(|host| host.preference < ours);
        if hosts.is_empty() {
            return Err(permanent(
                LOOP,
                format!("mail for {domain} leads back to this system, which does not take it"),
            ));
        }
    }
    Ok(hosts)
}

fn permanent(status: &'static str, reply: String) -> Unroutable {
    Unroutable::Permanent { status, reply }
}

fn known(answer: AddressAnswer, name: &str) -> Result<Vec<IpAddr>, String> {
    match answer {
        AddressAnswer::Found(mut addresses) => {
            addresses.truncate(ADDRESSES_MAX);
            Ok(addresses)
        }
        AddressAnswer::TempFail(failure) => Err(format!("cannot look up {name}: {failure}")),
        AddressAnswer::None | AddressAnswer::NoSuchName => Err(format!("{name} has no address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_hops_are_read_back() {
        for (text, name, port) in [
            ("mx.example:2525", "mx.example", 2525),
            ("[::1]:26", "::1", 26),
            ("127.0.0.1:26", "127.0.0.1", 26),
        ] {
            let host = parse_next_hop(text, 25);
            assert_eq!((host.name.as_str(), host.port), (name, port));
        }
        let literal = parse_next_hop("[::1]:26", 25);
        let sockets: Vec<SocketAddr> = literal.sockets().collect();
        assert_eq!(sockets, ["[::1]:26".parse().unwrap()]);
    }

    fn list(records: &[(u16, &str)]) -> Vec<Host> {
        let host = |(preference, name): &(u16, &str)| Host {
            preference: Some(*preference),
            ..Host::new(*name, 25)
        };
        records.iter().map(host).collect()
    }

    fn names(hosts: &[Host]) -> Vec<&str> {
        hosts.iter().map(|host| host.name.as_str()).collect()
    }

    /// RFC 5321 section 5.1: all MX records with a preference equal to or greater than ours go.
    #[test]
    fn what_is_not_preferred_to_us_is_cut() {
        let all = list(&[(10, "a"), (20, "b"), (20, "us"), (30, "c")]);
        let left = cut(all, |host| host.name == "us", "example.org").unwrap();
        assert_eq!(names(&left), ["a"]);
        let strangers = list(&[(10, "a"), (20, "b")]);
        let left = cut(strangers, |_| false, "example.org").unwrap();
        assert_eq!(names(&left), ["a", "b"]);
        let ours = list(&[(10, "us"), (10, "a"), (20, "b")]);
        let error = cut(ours, |host| host.name == "us", "example.org").unwrap_err();
        assert!(matches!(
            error,
            Unroutable::Permanent {
                status: "5.4.6",
                ..
            }
        ));
        // A domain without MX records whose address is ours.
        let implicit = vec![Host::new("example.org", 25)];
        assert!(cut(implicit, |_| true, "example.org").is_err());
    }
}
