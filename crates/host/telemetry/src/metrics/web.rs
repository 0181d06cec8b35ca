//! The web server for mail programs and other systems.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, Label, label};

label! {
    /// The scheme of a listener.
    WebScheme("scheme") {
        /// Encrypted.
        Https = "https",
        /// In the clear.
        Http = "http",
    }
}

label! {
    /// What a request asks for, by its path.
    WebResource("resource") {
        /// The page.
        Page = "page",
        /// The MTA-STS policy.
        MtaSts = "mta_sts",
        /// The configuration of Thunderbird.
        Autoconfig = "autoconfig",
        /// The configuration of Outlook.
        Autodiscover = "autodiscover",
        /// The profile of Apple's systems.
        AppleProfile = "apple_profile",
        /// Contacts for finders of security holes.
        SecurityTxt = "security_txt",
        /// The answer to a challenge of ACME.
        AcmeChallenge = "acme_challenge",
        /// Any other path.
        Other = "other",
    }
}

label! {
    /// The class of an answer's status.
    WebStatus("status") {
        /// Done.
        Success = "2xx",
        /// Led to another URI.
        Redirect = "3xx",
        /// The client's fault.
        Client = "4xx",
        /// This system's fault.
        Server = "5xx",
    }
}

label! {
    /// What became of a connection when it was accepted or later.
    WebConnectionEnd("result") {
        /// It was accepted.
        Accepted = "accepted",
        /// It was closed at once: the client had enough connections.
        Refused = "refused",
        /// It was closed to make room for another.
        Evicted = "evicted",
    }
}

impl WebStatus {
    /// The class of a status.
    #[must_use]
    pub const fn of(status: u16) -> Self {
        match status {
            0..300 => Self::Success,
            300..400 => Self::Redirect,
            400..500 => Self::Client,
            _ => Self::Server,
        }
    }
}

/// A request: scheme, resource and status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WebRequest {
    /// The scheme.
    pub scheme: WebScheme,
    /// The resource.
    pub resource: WebResource,
    /// The status.
    pub status: WebStatus,
}

impl EncodeLabelSet for WebRequest {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            (WebScheme::LABEL, self.scheme.value()),
            (WebResource::LABEL, self.resource.value()),
            (WebStatus::LABEL, self.status.value()),
        ]
        .encode(encoder)
    }
}

impl Label for WebRequest {
    fn describe() -> String {
        let all = [
            WebScheme::describe(),
            WebResource::describe(),
            WebStatus::describe(),
        ];
        all.join("; ")
    }
}

/// A connection: scheme and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WebConnection {
    /// The scheme.
    pub scheme: WebScheme,
    /// What became of it.
    pub end: WebConnectionEnd,
}

impl EncodeLabelSet for WebConnection {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            (WebScheme::LABEL, self.scheme.value()),
            (WebConnectionEnd::LABEL, self.end.value()),
        ]
        .encode(encoder)
    }
}

impl Label for WebConnection {
    fn describe() -> String {
        [WebScheme::describe(), WebConnectionEnd::describe()].join("; ")
    }
}

/// The web server.
#[derive(Clone, Debug)]
pub struct WebMetrics {
    /// Requests that were answered.
    pub requests: Family<WebRequest, Counter>,
    /// Connections.
    pub connections: Family<WebConnection, Counter>,
    /// Connections that are open.
    pub open: Family<WebScheme, Gauge>,
}

impl WebMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Web server");
        Self {
            requests: to.counters("web_requests", "Requests that were answered"),
            connections: to.counters("web_connections", "Connections of clients"),
            open: to.gauges("web_connections_open", "Connections that are open"),
        }
    }
}
