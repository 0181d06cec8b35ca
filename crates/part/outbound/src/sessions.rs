//! The encryption of connections to the hosts of domains, for reports to the domains (TLSRPT, RFC 8460).
//!
//! A connection counts once its encryption is settled: by a handshake, or by a server without STARTTLS. A host that a policy forbids counts
//! too; a host that takes no connection, or refuses before STARTTLS, says nothing about TLS and does not count. Not counted either: next hops
//! of the settings and the mail store, which belong to no domain's policy; TLS that the settings switch off; mail with `TLS-Required: No`,
//! among which are the reports themselves (RFC 8460 section 5.3), so that no report causes a report.

use std::net::IpAddr;

use tokio::net::TcpStream;
use vere_net::sts::FetchError;
use vere_net::tls::{CertificateFault, ConnectTlsError, PeerCertificate, TlsInfo};
use vere_queue::TlsWish;
use vere_reports::{TlsFailure, TlsFailureKind, TlsPolicyKind, TlsSeen};
use vere_settings::TlsMode;
use vere_smtp::client::CloseReason;
use vere_telemetry::metrics::TlsPolicy;

use super::Outbound;
use super::hosts::{Host, Hosts};
use super::security::{Forbidden, Security};

/// The kind of a failure, and more about the failure.
type Failed = (TlsFailureKind, Option<String>);

/// A connection whose encryption is about to be settled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session<'a> {
    pub(super) hosts: &'a Hosts,
    pub(super) host: &'a Host,
    pub(super) security: &'a Security,
    /// Our address and the address of the host.
    ends: (Option<IpAddr>, Option<IpAddr>),
}

impl<'a> Session<'a> {
    pub(super) fn new(
        hosts: &'a Hosts,
        host: &'a Host,
        security: &'a Security,
        stream: &TcpStream,
    ) -> Self {
        let canonical = |at: std::net::SocketAddr| at.ip().to_canonical();
        Self {
            hosts,
            host,
            security,
            ends: (
                stream.local_addr().ok().map(canonical),
                stream.peer_addr().ok().map(canonical),
            ),
        }
    }

    fn seen(&self, failure: Option<Failed>) -> TlsSeen {
        let Self {
            hosts, security, ..
        } = self;
        let (kind, lines, mx) = policy(hosts, &security.tlsa);
        let failure = failure.map(|(kind, reason)| TlsFailure {
            kind,
            sender: self.ends.0,
            mx: Some(self.host.name.clone()),
            address: self.ends.1,
            reason,
            ..TlsFailure::default()
        });
        TlsSeen {
            domain: hosts.domain.clone().unwrap_or_default(),
            kind,
            lines,
            mx,
            failure,
        }
    }

    /// What an encrypted connection lacks by the policy of the domain.
    fn lacks(&self, tls: &TlsInfo) -> Option<Failed> {
        let Self {
            hosts, security, ..
        } = self;
        if security.policy == TlsPolicy::DaneUnusable {
            return Some((TlsFailureKind::TlsaInvalid, None));
        }
        if !security.tlsa.is_empty() || hosts.sts.is_none() {
            return None;
        }
        match &tls.certificate {
            PeerCertificate::Invalid(fault, reason) => Some(certificate(*fault, reason)),
            PeerCertificate::NotAsked | PeerCertificate::Client(_) | PeerCertificate::Valid => {
                (!hosts.is_named(self.host)).then(unnamed)
            }
        }
    }
}

impl Outbound {
    /// Whether the domain of these hosts may get a report.
    fn is_reported(&self, hosts: &Hosts, tls: TlsMode) -> bool {
        let config = self.config();
        let reports = config.settings.reports.as_ref();
        let is_name = |domain: &String| !domain.starts_with('[');
        reports.is_some_and(|reports| reports.tls)
            && hosts.domain.as_ref().is_some_and(is_name)
            && hosts.wish != TlsWish::Optional
            && tls != TlsMode::Off
    }

    fn note(&self, session: &Session<'_>, failure: Option<Failed>) {
        // A policy that cannot be fetched fails with each connection, whatever came of the connection.
        let fault = session.hosts.sts_fault.as_ref();
        let fault = fault.filter(|_| session.security.tlsa.is_empty());
        let failure = fault.map(fetching).or(failure);
        self.metrics.sessions.add(session.seen(failure), 1);
    }

    /// Notes the end of a handshake.
    pub(super) fn note_handshake(
        &self,
        session: &Session<'_>,
        result: Result<&TlsInfo, &ConnectTlsError>,
    ) {
        if !self.is_reported(session.hosts, session.security.tls) {
            return;
        }
        match result {
            Ok(tls) => self.note(session, session.lacks(tls)),
            // A fault of this machine.
            Err(ConnectTlsError::NoRoots) => {}
            Err(error) => self.note(session, Some(handshake(error))),
        }
    }

    /// Notes a connection without a handshake, which goes on in the clear or was closed for this reason.
    pub(super) fn note_unencrypted(
        &self,
        session: &Session<'_>,
        closed: Option<&CloseReason>,
        is_offered: bool,
    ) {
        if !self.is_reported(session.hosts, session.security.tls) {
            return;
        }
        let general = |reason: &str| (TlsFailureKind::ValidationFailure, Some(reason.to_owned()));
        let failed = match closed {
            None if is_offered => general("STARTTLS refused"),
            Some(CloseReason::TlsRefused(_)) => general("STARTTLS refused"),
            Some(CloseReason::InjectedBeforeTls) => general("octets before TLS"),
            None | Some(CloseReason::TlsUnavailable) => {
                (TlsFailureKind::StartTlsNotSupported, None)
            }
            Some(_) => return,
        };
        self.note(session, Some(failed));
    }

    /// Notes a host that a policy of its domain forbids.
    pub(super) fn note_forbidden(&self, hosts: &Hosts, host: &Host, forbidden: &Forbidden) {
        let failed = match forbidden.policy {
            TlsPolicy::Dane => (TlsFailureKind::DnssecInvalid, Some(forbidden.reply.clone())),
            TlsPolicy::StsEnforce => unnamed(),
            // The sender of the message, and not the domain, demands more.
            _ => return,
        };
        if !self.is_reported(hosts, hosts.tls) {
            return;
        }
        let is_dane = forbidden.policy == TlsPolicy::Dane;
        let (kind, lines, mx) = match is_dane {
            true => (TlsPolicyKind::Tlsa, Vec::new(), Vec::new()),
            false => policy(hosts, &[]),
        };
        let (failure, reason) = failed;
        let seen = TlsSeen {
            domain: hosts.domain.clone().unwrap_or_default(),
            kind,
            lines,
            mx,
            failure: Some(TlsFailure {
                kind: failure,
                mx: Some(host.name.clone()),
                reason,
                ..TlsFailure::default()
            }),
        };
        self.metrics.sessions.add(seen, 1);
    }

    /// Takes the connections for reports, with their numbers.
    #[must_use]
    pub fn take_sessions(&self) -> (Vec<(TlsSeen, u32)>, u32) {
        self.metrics.sessions.take()
    }
}

/// The policy of a domain, its lines, and its patterns of hosts.
fn policy(hosts: &Hosts, tlsa: &[String]) -> (TlsPolicyKind, Vec<String>, Vec<String>) {
    if !tlsa.is_empty() {
        return (TlsPolicyKind::Tlsa, tlsa.to_vec(), Vec::new());
    }
    match (&hosts.sts, &hosts.sts_fault) {
        (Some(held), _) => {
            let policy = &held.policy;
            (TlsPolicyKind::Sts, policy.lines(), policy.mx.clone())
        }
        (None, Some(_)) => (TlsPolicyKind::Sts, Vec::new(), Vec::new()),
        (None, None) => (TlsPolicyKind::NotFound, Vec::new(), Vec::new()),
    }
}

fn unnamed() -> Failed {
    let reason = "MTA-STS policy does not name the host";
    (TlsFailureKind::ValidationFailure, Some(reason.to_owned()))
}

fn fetching(error: &FetchError) -> Failed {
    let kind = match error {
        // The text of an expired certificate has the time of the handshake, and each time would be a row of its own.
        FetchError::Tls(_) => return (TlsFailureKind::StsWebpkiInvalid, None),
        FetchError::MediaType(_) | FetchError::TooLong | FetchError::Policy(_) => {
            TlsFailureKind::StsPolicyInvalid
        }
        FetchError::Name(_)
        | FetchError::Connect(_)
        | FetchError::Http(_)
        | FetchError::Status(_)
        | FetchError::Timeout => TlsFailureKind::StsPolicyFetchError,
    };
    (kind, Some(error.to_string()))
}

fn certificate(fault: CertificateFault, reason: &str) -> Failed {
    match fault {
        CertificateFault::Name => (TlsFailureKind::CertificateHostMismatch, None),
        CertificateFault::Expired => (TlsFailureKind::CertificateExpired, None),
        // As above, the text of the library has the time.
        CertificateFault::Early => {
            let reason = "certificate is not valid yet".to_owned();
            (TlsFailureKind::ValidationFailure, Some(reason))
        }
        CertificateFault::Untrusted => (
            TlsFailureKind::CertificateNotTrusted,
            Some(reason.to_owned()),
        ),
    }
}

fn handshake(error: &ConnectTlsError) -> Failed {
    if let Some(fault) = error.fault() {
        return certificate(fault, &error.to_string());
    }
    let reason = match error {
        ConnectTlsError::Io(_) => "connection broke in the TLS handshake".to_owned(),
        other => other.to_string(),
    };
    (TlsFailureKind::ValidationFailure, Some(reason))
}

#[cfg(test)]
mod tests;
