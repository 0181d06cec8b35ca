use std::sync::Arc;

use vere_net::resolver::{Resolver, ResolverOptions};
use vere_net::sts::{Held, Policy};
use vere_queue::{Destination, Place};
use vere_settings::Settings;

use super::*;
use crate::OutboundMetrics;

const ZONE: &str = "example.org MX 10 mx.example.org\nmx.example.org A 192.0.2.1\n";

fn outbound(folder: &std::path::Path, reports: &str) -> Outbound {
    let zone = folder.join("zone");
    std::fs::write(&zone, ZONE).unwrap();
    let text = format!(
        "version = 1\nhostname = \"mx.example.net\"\n[reports]\ncontact = \"a@example.net\"\n{reports}"
    );
    let settings = Arc::new(Settings::parse(&text, "vere.toml").unwrap());
    let options = ResolverOptions {
        zone: Some(zone),
        ..ResolverOptions::default()
    };
    let resolver = Resolver::new(&options).unwrap();
    Outbound::new(&settings, resolver, OutboundMetrics::default(), None).unwrap()
}

async fn hosts(outbound: &Outbound, place: Place) -> Hosts {
    let wish = TlsWish::None;
    outbound.find(&Destination { place, wish }).await.unwrap()
}

fn held(mode: &str, mx: &str) -> Arc<Held> {
    let text = format!("version: STSv1\nmode: {mode}\nmx: {mx}\nmax_age: 86400\n");
    Arc::new(Held {
        id: "1".to_owned(),
        fetched_ms: 0,
        policy: Policy::parse(&text).unwrap(),
    })
}

fn info(certificate: PeerCertificate) -> TlsInfo {
    TlsInfo {
        version: "TLSv1.3",
        cipher: "",
        sni: None,
        certificate,
        is_resumed: false,
    }
}

fn security(policy: TlsPolicy, tls: TlsMode, tlsa: &[&str]) -> Security {
    Security {
        tls,
        policy,
        dane: None,
        tlsa: tlsa.iter().map(|&line| line.to_owned()).collect(),
    }
}

fn session<'a>(hosts: &'a Hosts, security: &'a Security) -> Session<'a> {
    Session {
        hosts,
        host: &hosts.hosts[0],
        security,
        ends: (None, Some("192.0.2.1".parse().unwrap())),
    }
}

/// The kind of policy and of failure of all that was noted.
fn taken(outbound: &Outbound) -> Vec<(&'static str, Option<String>)> {
    let (seen, beyond) = outbound.take_sessions();
    assert_eq!(beyond, 0);
    let of = |(seen, times): (TlsSeen, u32)| {
        assert_eq!((seen.domain.as_str(), times), ("example.org", 1));
        let failure = seen.failure.map(|failure| failure.kind.word().to_owned());
        (seen.kind.word(), failure)
    };
    seen.into_iter().map(of).collect()
}

fn certificate_fault(fault: CertificateFault) -> PeerCertificate {
    PeerCertificate::Invalid(fault, "in words".to_owned())
}

#[tokio::test]
async fn an_encrypted_connection_is_what_the_policy_makes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let outbound = outbound(folder.path(), "tls = \"daily\"\n");
    let plain = hosts(&outbound, Place::Domain("example.org".to_owned())).await;
    let with = |mode, mx| Hosts {
        sts: Some(held(mode, mx)),
        ..hosts_again(&plain)
    };
    let broken = Hosts {
        sts_fault: Some(FetchError::Status(404)),
        ..hosts_again(&plain)
    };
    let expired = || certificate_fault(CertificateFault::Expired);
    let valid = || PeerCertificate::Valid;
    let open = security(TlsPolicy::Opportunistic, TlsMode::Opportunistic, &[]);
    let testing = security(TlsPolicy::StsTesting, TlsMode::Opportunistic, &[]);
    let dane = security(TlsPolicy::Dane, TlsMode::Required, &["3 1 1 00"]);
    let unusable = security(TlsPolicy::DaneUnusable, TlsMode::Required, &["0 0 1 00"]);
    for (hosts, security, certificate, kind, failure) in [
        (hosts_again(&plain), &open, expired(), "no-policy-found", ""),
        (
            with("testing", "mx.example.org"),
            &testing,
            valid(),
            "sts",
            "",
        ),
        (
            with("testing", "mx.example.org"),
            &testing,
            expired(),
            "sts",
            "certificate-expired",
        ),
        (
            with("testing", "*.example.com"),
            &testing,
            valid(),
            "sts",
            "validation-failure",
        ),
        (with("enforce", "*.example.com"), &dane, valid(), "tlsa", ""),
        (
            hosts_again(&plain),
            &unusable,
            expired(),
            "tlsa",
            "tlsa-invalid",
        ),
        (
            hosts_again(&broken),
            &open,
            valid(),
            "sts",
            "sts-policy-fetch-error",
        ),
        (broken, &dane, valid(), "tlsa", ""),
    ] {
        outbound.note_handshake(&session(&hosts, security), Ok(&info(certificate)));
        let failure = (!failure.is_empty()).then(|| failure.to_owned());
        assert_eq!(taken(&outbound), [(kind, failure)]);
    }
}

/// The same hosts without a policy.
fn hosts_again(hosts: &Hosts) -> Hosts {
    Hosts {
        hosts: hosts.hosts.clone(),
        site: hosts.site.clone(),
        domain: hosts.domain.clone(),
        sts: None,
        sts_fault: hosts.sts_fault.clone(),
        login: None,
        source: None,
        ..*hosts
    }
}

#[tokio::test]
async fn a_connection_without_encryption_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let outbound = outbound(folder.path(), "tls = \"daily\"\n");
    let hosts = hosts(&outbound, Place::Domain("example.org".to_owned())).await;
    let open = security(TlsPolicy::Opportunistic, TlsMode::Opportunistic, &[]);
    let session = session(&hosts, &open);
    for (closed, is_offered, failure) in [
        (None, false, "starttls-not-supported"),
        (None, true, "validation-failure"),
        (
            Some(CloseReason::TlsUnavailable),
            false,
            "starttls-not-supported",
        ),
        (
            Some(CloseReason::InjectedBeforeTls),
            true,
            "validation-failure",
        ),
    ] {
        outbound.note_unencrypted(&session, closed.as_ref(), is_offered);
        let failure = Some(failure.to_owned());
        assert_eq!(taken(&outbound), [("no-policy-found", failure)]);
    }
    // A host that refuses says nothing about TLS.
    outbound.note_unencrypted(&session, Some(&CloseReason::Quit), true);
    assert_eq!(taken(&outbound), []);
}

#[tokio::test]
async fn a_forbidden_host_counts_unless_a_message_forbids_it() {
    let folder = tempfile::tempdir().unwrap();
    let outbound = outbound(folder.path(), "tls = \"daily\"\n");
    let hosts = hosts(&outbound, Place::Domain("example.org".to_owned())).await;
    let hosts = Hosts {
        sts: Some(held("enforce", "mx.example.com")),
        ..hosts
    };
    for (policy, expected) in [
        (TlsPolicy::Dane, Some(("tlsa", "dnssec-invalid"))),
        (TlsPolicy::StsEnforce, Some(("sts", "validation-failure"))),
        (TlsPolicy::RequireTls, None),
    ] {
        let reply = "why".to_owned();
        outbound.note_forbidden(&hosts, &hosts.hosts[0], &Forbidden { policy, reply });
        let expected = expected.map(|(kind, failure)| (kind, Some(failure.to_owned())));
        assert_eq!(taken(&outbound), expected.into_iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn what_no_report_is_about_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let counting = outbound(folder.path(), "tls = \"daily\"\n");
    let silent = outbound(folder.path(), "");
    let domain = || Place::Domain("example.org".to_owned());
    let relay = Place::Relay("192.0.2.1:25".to_owned());
    let literal = Place::Domain("[192.0.2.1]".to_owned());
    let open = security(TlsPolicy::Opportunistic, TlsMode::Opportunistic, &[]);
    let off = security(TlsPolicy::Off, TlsMode::Off, &[]);
    let unwished = Hosts {
        wish: TlsWish::Optional,
        ..hosts(&counting, domain()).await
    };
    for (outbound, hosts, security) in [
        (&silent, hosts(&silent, domain()).await, &open),
        (&counting, hosts(&counting, relay).await, &open),
        (&counting, hosts(&counting, literal).await, &open),
        (&counting, hosts(&counting, domain()).await, &off),
        (&counting, unwished, &open),
    ] {
        let session = session(&hosts, security);
        outbound.note_handshake(&session, Ok(&info(PeerCertificate::Valid)));
        outbound.note_unencrypted(&session, None, false);
        assert_eq!(taken(outbound), []);
    }
    let hosts = hosts(&counting, domain()).await;
    let no_roots = ConnectTlsError::NoRoots;
    counting.note_handshake(&session(&hosts, &open), Err(&no_roots));
    assert_eq!(taken(&counting), []);
}
