//! Routes whose next hops are asked about recipients.

use std::net::{IpAddr, SocketAddr};

use super::found::Found;
use crate::model::Settings;
use crate::outgoing::{NextHop, RoutePattern};

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    for (n, route) in settings.routes.iter().enumerate() {
        if !route.call_ahead {
            continue;
        }
        let key = format!("route[{}].call_ahead", n + 1);
        if settings.front.is_none() {
            found.add(&key, "needs [front], whose broker asks the next hop");
        }
        if route.domain == RoutePattern::Any {
            let text = "expected a domain in the same section; domain = \"*\" would relay for every client";
            found.add(&key, text);
        }
        match &route.next_hop {
            NextHop::Mx => {}
            NextHop::Local => found.add(&key, "needs another system as next hop"),
            NextHop::Host { host, port } if is_own(settings, host, *port) => {
                found.add(&key, "needs another system as next hop; found this system");
            }
            NextHop::Host { .. } => {}
        }
    }
}

/// Whether mail for the host would arrive at port 25 of this system. The broker checks the addresses of names.
fn is_own(settings: &Settings, host: &str, port: u16) -> bool {
    let listens = &settings.smtp.listen;
    let Ok(ip) = host.parse::<IpAddr>() else {
        let is_here = host.eq_ignore_ascii_case(&settings.hostname);
        return is_here && listens.iter().any(|on| on.port() == port);
    };
    let ip = ip.to_canonical();
    let meets = |on: &SocketAddr| {
        let is_everywhere = on.ip().is_unspecified() && ip.is_loopback();
        on.port() == port && (on.ip().to_canonical() == ip || is_everywhere)
    };
    listens.iter().any(meets)
}
