//! The section of certificates from a certificate authority.

use std::net::{Ipv6Addr, SocketAddr};

use super::Assembly;
use crate::acme::{Acme, AcmeChallenge, AcmeDns};

/// The port of HTTPS, where authorities look for certificates of challenges.
const HTTPS: u16 = 443;

impl Assembly {
    pub(super) fn acme(&self) -> Option<Acme> {
        let mut domains: Vec<String> = self.section("acme").then(|| self.need("acme.domains"))?;
        if domains.is_empty() {
            domains.push(self.need("hostname"));
        }
        let challenge = self.choice("acme.challenge", challenge);
        let by_default = match challenge {
            AcmeChallenge::TlsAlpn01 if self.web_has_port(HTTPS) => Vec::new(),
            AcmeChallenge::TlsAlpn01 => vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, HTTPS))],
            AcmeChallenge::Http01 | AcmeChallenge::Dns01 => Vec::new(),
        };
        Some(Acme {
            directory: self.need("acme.directory"),
            contact: self.need("acme.contact"),
            domains,
            root: self.maybe_path("acme.root"),
            challenge,
            listen: match challenge {
                AcmeChallenge::Http01 => self.acme_listen(),
                AcmeChallenge::TlsAlpn01 | AcmeChallenge::Dns01 => {
                    self.maybe("acme.listen").unwrap_or_default()
                }
            },
            tls_listen: self.maybe("acme.tls_listen").unwrap_or(by_default),
            dns: AcmeDns {
                server: self.maybe("acme.dns_server"),
                zone: self.maybe("acme.dns_zone"),
                key: self.maybe_path("acme.dns_key"),
                hook: self.maybe_path("acme.dns_hook"),
                wait: self.need("acme.dns_wait"),
            },
        })
    }
}

fn challenge(text: &str) -> Option<AcmeChallenge> {
    Some(match text {
        "http-01" => AcmeChallenge::Http01,
        "tls-alpn-01" => AcmeChallenge::TlsAlpn01,
        "dns-01" => AcmeChallenge::Dns01,
        _ => return None,
    })
}
