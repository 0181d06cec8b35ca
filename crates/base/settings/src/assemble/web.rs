//! The section of the web server.

use std::net::{Ipv6Addr, SocketAddr};

use super::Assembly;
use crate::web::{StsMode, Web};

/// The port of HTTP, where authorities look for answers to challenges.
const HTTP: u16 = 80;

impl Assembly {
    pub(super) fn web(&self) -> Option<Web> {
        let hostname: String = self.need("hostname");
        let mut mx: Vec<String> = self.section("web").then(|| self.need("web.mx"))?;
        if mx.is_empty() {
            mx.push(hostname.clone());
        }
        Some(Web {
            https: self.need("web.https"),
            http: self.need("web.http"),
            host: self.maybe("web.host").unwrap_or(hostname),
            mta_sts: self.choice("web.mta_sts", mode),
            mta_sts_max_age: self.need("web.mta_sts_max_age"),
            mx,
            security_contact: self.need("web.security_contact"),
            connections_max: self.need("web.connections_max"),
            connections_per_client_max: self.need("web.connections_per_client_max"),
            header_size_max: self.need("web.header_size_max"),
            body_size_max: self.need("web.body_size_max"),
            request_timeout: self.need("web.request_timeout"),
            connection_timeout: self.need("web.connection_timeout"),
        })
    }

    /// Whether the web server listens for HTTPS at a port, and shows the certificates of challenges there.
    pub(super) fn web_has_port(&self, port: u16) -> bool {
        let web = self.section("web");
        let https = web.then(|| self.need::<Vec<SocketAddr>>("web.https"));
        https.is_some_and(|https| https.iter().any(|address| address.port() == port))
    }

    /// Where the gateway answers challenges: nowhere without a setting if the web server has port 80.
    pub(super) fn acme_listen(&self) -> Vec<SocketAddr> {
        let web = self.section("web");
        let answers = web.then(|| self.need::<Vec<SocketAddr>>("web.http"));
        let is_answered = answers.is_some_and(|http| !http.is_empty());
        let otherwise = match is_answered {
            true => Vec::new(),
            false => vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, HTTP))],
        };
        self.maybe("acme.listen").unwrap_or(otherwise)
    }
}

/// The mode of the policy, if there is a policy.
fn mode(text: &str) -> Option<Option<StsMode>> {
    Some(match text {
        "off" => None,
        "testing" => Some(StsMode::Testing),
        "enforce" => Some(StsMode::Enforce),
        "none" => Some(StsMode::None),
        _ => return None,
    })
}
