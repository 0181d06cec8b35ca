//! Which hosts take the mail of a destination (RFC 5321 section 5).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use vere_net::resolver::{AddressAnswer, MxAnswer};
use vere_queue::Destination;
use vere_settings::{NextHop, Protocol, Route, TlsMode};
use vere_smtp::address::AddressLiteral;

use crate::gateway::state::Gateway;

/// Hosts tried in one attempt: the rest of a long list costs the queue more than it helps.
const HOSTS_MAX: usize = 5;

/// The hosts of a destination, and how to talk to them.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
    pub(super) tls: TlsMode,
    pub(super) protocol: Protocol,
    /// User name and password for the next hop.
    pub(super) login: Option<Arc<Route>>,
}

/// One host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

/// Why there is no host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unroutable {
    /// It may be found later.
    Temporary(String),
    /// It never takes mail.
    Permanent { status: &'static str, reply: String },
}

impl Hosts {
    /// The hosts in the order to be tried, at most [`HOSTS_MAX`].
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().take(HOSTS_MAX)
    }
}

/// Finds the hosts of a destination.
///
/// # Errors
/// When a name cannot be looked up now, does not exist, or says that it takes no mail.
pub(super) async fn find(
    gateway: &Gateway,
    destination: &Destination,
) -> Result<Hosts, Unroutable> {
    let settings = gateway.settings();
    match destination {
        Destination::Relay(next_hop) => {
            let host = parse_next_hop(next_hop, settings.delivery.port);
            let route = settings
                .routes
                .iter()
                .find(|route| is_route_to(route, &host))
                .cloned();
            Ok(Hosts {
                hosts: vec![host],
                tls: route
                    .as_ref()
                    .map_or(settings.delivery.tls, |route| route.tls),
                protocol: route
                    .as_ref()
                    .map_or(Protocol::Smtp, |route| route.protocol),
                login: route.filter(|route| route.username.is_some()).map(Arc::new),
            })
        }
        Destination::Domain(domain) => {
            let port = settings.delivery.port;
            let names = exchangers(gateway, domain).await?;
            let hosts = names.into_iter().map(|name| Host { name, port }).collect();
            Ok(Hosts {
                hosts,
                tls: settings.delivery.tls,
                protocol: Protocol::Smtp,
                login: None,
            })
        }
        Destination::Local => Err(Unroutable::Temporary(
            "local mail is not relayed".to_owned(),
        )),
    }
}

fn is_route_to(route: &Route, to: &Host) -> bool {
    matches!(&route.next_hop, NextHop::Host { host, port } if *host == to.name && *port == to.port)
}

/// `HOST:PORT` or `[ADDRESS]:PORT`, as the routing wrote it.
fn parse_next_hop(next_hop: &str, default_port: u16) -> Host {
    let (name, port) = next_hop.rsplit_once(':').unwrap_or((next_hop, ""));
    let name = name.trim_start_matches('[').trim_end_matches(']');
    Host {
        name: name.to_owned(),
        port: port.parse().unwrap_or(default_port),
    }
}

async fn exchangers(gateway: &Gateway, domain: &str) -> Result<Vec<String>, Unroutable> {
    if let Ok(literal) = AddressLiteral::parse(domain) {
        return match literal {
            AddressLiteral::V4(address) => Ok(vec![address.to_string()]),
            AddressLiteral::V6(address) => Ok(vec![address.to_string()]),
        };
    }
    match gateway.resolver.mx(domain).await {
        MxAnswer::Hosts(hosts) => Ok(hosts.into_iter().map(|(_, name)| name).collect()),
        MxAnswer::None => Ok(vec![domain.to_owned()]),
        MxAnswer::NullMx => Err(permanent(
            "5.1.10",
            format!("{domain} takes no mail (null MX)"),
        )),
        MxAnswer::NoSuchDomain => Err(permanent(
            "5.1.2",
            format!("domain {domain} does not exist"),
        )),
        MxAnswer::TempFail(failure) => Err(Unroutable::Temporary(format!(
            "cannot look up the mail exchangers of {domain}: {failure}"
        ))),
    }
}

fn permanent(status: &'static str, reply: String) -> Unroutable {
    Unroutable::Permanent { status, reply }
}

/// The addresses of a host; a name that is an address already stands for itself.
///
/// # Errors
/// What to tell, when there is none.
pub(super) async fn addresses(gateway: &Gateway, host: &Host) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = host.name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, host.port)]);
    }
    match gateway.resolver.addresses(&host.name).await {
        AddressAnswer::Found(addresses) => Ok(addresses
            .into_iter()
            .map(|address| SocketAddr::new(address, host.port))
            .collect()),
        AddressAnswer::TempFail(failure) => Err(format!("cannot look up {}: {failure}", host.name)),
        _ => Err(format!("{} has no address", host.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_hops_are_read_back() {
        let host = |name: &str, port| Host {
            name: name.to_owned(),
            port,
        };
        assert_eq!(
            parse_next_hop("mx.example:2525", 25),
            host("mx.example", 2525)
        );
        assert_eq!(parse_next_hop("[::1]:26", 25), host("::1", 26));
        assert_eq!(parse_next_hop("127.0.0.1:26", 25), host("127.0.0.1", 26));
    }
}
