//! Checks of values about the way out: patterns of routes, next hops, rates.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::text::{host_name, span};
use crate::outgoing::{NextHop, Rate, RoutePattern};

/// Messages of a rate.
const RATE_MAX: u32 = 1_000_000;

pub(super) fn pattern(text: &str) -> Result<RoutePattern, String> {
    if text == "*" {
        return Ok(RoutePattern::Any);
    }
    if let Some(parent) = text.strip_prefix('.') {
        return host_name(parent).map(RoutePattern::Subdomains);
    }
    host_name(text).map(RoutePattern::Exact)
}

/// Checks a next hop: `"mx" / "local" / host [":" port]`, IPv6 addresses in brackets.
pub(super) fn next_hop(text: &str) -> Result<NextHop, String> {
    match text {
        "mx" => return Ok(NextHop::Mx),
        "local" => return Ok(NextHop::Local),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or("expected a closing bracket")?;
        let address: Ipv6Addr = address
            .parse()
            .map_err(|_| "expected an IPv6 address between the brackets")?;
        let port = match port {
            "" => 0,
            port => hop_port(
                port.strip_prefix(':')
                    .ok_or("has no colon before the port")?,
            )?,
        };
        return Ok(NextHop::Host {
            host: address.to_string(),
            port,
        });
    }
    let (host, port) = match text.split_once(':') {
        Some((_, port)) if port.contains(':') => {
            return Err("an IPv6 address must stand in brackets".to_owned());
        }
        Some((host, port)) => (host, hop_port(port)?),
        None => (text, 0),
    };
    let host = match host.parse::<Ipv4Addr>() {
        Ok(address) => address.to_string(),
        Err(_) => host_name(host)?,
    };
    Ok(NextHop::Host { host, port })
}

/// Checks a rate: `1*DIGIT "/" span`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let (messages, per) = text.split_once('/').ok_or("has no slash before the time")?;
    let messages = messages.parse().ok();
    let messages = messages.filter(|count| (1..=RATE_MAX).contains(count));
    Ok(Rate {
        messages: messages.ok_or_else(|| format!("the number is not from 1 to {RATE_MAX}"))?,
        per: span(per, 1, 24 * 60 * 60 * 1_000)?,
    })
}

fn hop_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| "the port is not a number from 1 to 65535".to_owned())
}
