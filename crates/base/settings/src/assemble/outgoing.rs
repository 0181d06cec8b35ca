//! Sections about the way out: limits towards destinations, sources and routes.

use std::net::IpAddr;

use super::{Assembly, tls_mode, yes_or_no};
use crate::outgoing::{
    DestinationLimits, DestinationPriority, DestinationScope, NextHop, Protocol, Route, Source,
    TlsMode,
};

impl Assembly {
    pub(super) fn destination(&self, at: &str, default_port: u16) -> DestinationLimits {
        let key = |name: &str| format!("{at}.{name}");
        let next_hop = self.maybe(&key("next_hop"));
        let next_hop = next_hop.map(|hop| with_port(hop, default_port));
        let domain = self.maybe(&key("domain"));
        let mx = self.maybe(&key("mx"));
        DestinationLimits {
            scope: domain
                .map(DestinationScope::Domain)
                .or(next_hop.map(DestinationScope::NextHop))
                .or(mx.map(DestinationScope::Mx)),
            connections_max: self.maybe(&key("connections_max")),
            messages_per_connection_max: self.maybe(&key("messages_per_connection_max")),
            rate: self.maybe(&key("rate")),
            burst: self.maybe(&key("burst")),
            connection_interval: self.maybe(&key("connection_interval")),
            priority: self.choice(&key("priority"), priority),
            in_order: self.choice(&key("in_order"), yes_or_no),
        }
    }

    pub(super) fn source(&self, at: &str) -> Source {
        // The kind of each option admits a single address family.
        let address = |key: &str| self.maybe::<IpAddr>(&format!("{at}.{key}"));
        let hostname: Option<String> = self.maybe(&format!("{at}.hostname"));
        Source {
            name: self.need(&format!("{at}.name")),
            ipv4: address("ipv4").and_then(|address| match address {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(_) => None,
            }),
            ipv6: address("ipv6").and_then(|address| match address {
                IpAddr::V6(address) => Some(address),
                IpAddr::V4(_) => None,
            }),
            hostname: hostname.unwrap_or_else(|| self.need("hostname")),
        }
    }

    pub(super) fn route(&self, at: &str, tls: TlsMode, default_port: u16) -> Route {
        let next_hop = with_port(self.need(&format!("{at}.next_hop")), default_port);
        let own_tls: Option<&'static str> = self.maybe(&format!("{at}.tls"));
        Route {
            domain: self.need(&format!("{at}.domain")),
            next_hop,
            protocol: self.choice(&format!("{at}.protocol"), protocol),
            tls: own_tls.and_then(tls_mode).unwrap_or(tls),
            username: self.maybe(&format!("{at}.username")),
            password: self.maybe(&format!("{at}.password")),
            password_file: self.maybe_path(&format!("{at}.password_file")),
            password_in_clear: self.choice(&format!("{at}.password_in_clear"), yes_or_no),
            source: self
                .maybe(&format!("{at}.source"))
                .or_else(|| self.maybe("delivery.source")),
            call_ahead: self.choice(&format!("{at}.call_ahead"), yes_or_no),
        }
    }
}

fn with_port(next_hop: NextHop, default_port: u16) -> NextHop {
    match next_hop {
        NextHop::Host { host, port: 0 } => NextHop::Host {
            host,
            port: default_port,
        },
        other => other,
    }
}

fn priority(text: &str) -> Option<DestinationPriority> {
    Some(match text {
        "low" => DestinationPriority::Low,
        "normal" => DestinationPriority::Normal,
        "high" => DestinationPriority::High,
        _ => return None,
    })
}

fn protocol(text: &str) -> Option<Protocol> {
    Some(match text {
        "smtp" => Protocol::Smtp,
        "lmtp" => Protocol::Lmtp,
        _ => return None,
    })
}
