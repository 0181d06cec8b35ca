//! The register of several gateways and nodes.

use std::net::IpAddr;

use super::found::Found;
use crate::model::{Etcd, Register, Settings};
use crate::value::Value;
use crate::x400::GROUP_PREFIX;

/// Octets of a gateway's name, which is part of file names.
const GATEWAY_NAME_MAX: usize = 64;

/// The most members of an etcd cluster.
const ENDPOINTS_MAX: usize = 16;

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    let wanted = found.document.values.get("cluster.register");
    let wants_etcd = wanted.is_some_and(|wanted| *wanted == Value::Choice("etcd"));
    let has_etcd = found.document.counts.contains_key("cluster.etcd");
    match &settings.cluster.register {
        Register::Etcd(etcd) => endpoints(etcd, found),
        Register::File(_) if wants_etcd => found.add("cluster.register", "needs [cluster.etcd]"),
        Register::File(_) if has_etcd => {
            let text = "has no effect without cluster.register = \"etcd\"";
            found.add("cluster.etcd.endpoints", text);
        }
        Register::File(_) => {}
    }
    found.pair("cluster.etcd.certificate", "cluster.etcd.key");
    found.pair("cluster.etcd.user", "cluster.etcd.password_file");
    let gateway = &settings.gateway;
    if gateway.name.len() > GATEWAY_NAME_MAX || gateway.name == "*" {
        let text = format!("must have 1 to {GATEWAY_NAME_MAX} octets and not be *");
        found.add("gateway.name", text);
    }
    if gateway.name.starts_with(GROUP_PREFIX) {
        let text = format!("must not begin with {GROUP_PREFIX}, as the groups of MTAs of X.400 do");
        found.add("gateway.name", text);
    }
    if gateway.adopts.contains(&gateway.name) {
        found.add("gateway.adopts", "names this gateway itself");
    }
    let dead = settings.cluster.lease.duration() + settings.cluster.skew.duration();
    if !gateway.adopts.is_empty() && gateway.adopt_after.duration() < dead {
        let text = "is shorter than cluster.lease and cluster.skew together";
        found.add("gateway.adopt_after", text);
    }
    if settings.cluster.skew > settings.cluster.lease {
        let text = format!("is longer than cluster.lease ({})", settings.cluster.lease);
        found.add("cluster.skew", text);
    }
}

fn endpoints(etcd: &Etcd, found: &mut Found<'_>) {
    const KEY: &str = "cluster.etcd.endpoints";
    let count = etcd.endpoints.len();
    if !(1..=ENDPOINTS_MAX).contains(&count) {
        found.add(KEY, format!("has {count}, wanted are 1 to {ENDPOINTS_MAX}"));
    }
    for url in &etcd.endpoints {
        let Some((scheme @ ("http" | "https"), authority)) = url.split_once("://") else {
            found.add(
                KEY,
                format!("{url} begins neither with http:// nor with https://"),
            );
            continue;
        };
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => host,
            _ => {
                found.add(KEY, format!("{url} is not {scheme}://HOST:PORT"));
                continue;
            }
        };
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let loopback = address.is_ok_and(|address| address.is_loopback());
        if etcd.login.is_some() && scheme == "http" && !loopback {
            let text = format!("{url} needs https, or the password could be read");
            found.add("cluster.etcd.user", text);
        }
    }
}
