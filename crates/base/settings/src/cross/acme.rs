//! Contradictions between settings of certificates from a certificate authority.

use super::found::Found;
use crate::acme::AcmeChallenge;
use crate::model::Settings;

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    let Some(acme) = &settings.acme else {
        return;
    };
    let dns = &acme.dns;
    match (&dns.server, &dns.hook) {
        (Some(_), Some(_)) => found.add(
            "acme.dns_hook",
            "expected acme.dns_server or acme.dns_hook; found both",
        ),
        (None, None) if acme.challenge == AcmeChallenge::Dns01 => found.add(
            "acme.challenge",
            "\"dns-01\" needs acme.dns_server or acme.dns_hook, which publish the records",
        ),
        _ => {}
    }
    if dns.server.is_none() && (dns.key.is_some() || dns.zone.is_some()) {
        let key = match dns.key {
            Some(_) => "acme.dns_key",
            None => "acme.dns_zone",
        };
        found.add(key, "needs acme.dns_server");
    }
}
