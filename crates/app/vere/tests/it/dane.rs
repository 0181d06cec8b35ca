//! DANE: next hops with a signed zone, and the cost of a false record.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::harness::{
    Authority, Files, Manners, Mx, Named, Options, Signing, System, quoted, wait_for, wait_until,
};
use crate::tls_reports;

/// The addresses of the next hops, with a common port.
struct Hosts {
    authority: Authority,
    port: u16,
    running: BTreeMap<&'static str, Mx>,
}

impl Hosts {
    fn new() -> Self {
        Self {
            authority: Authority::new(),
            port: 0,
            running: BTreeMap::new(),
        }
    }

    /// Starts the next hop of a domain at a separate address.
    fn start(&mut self, domain: &'static str, manners: Manners) -> String {
        let ip = format!("127.0.1.{}", self.running.len() + 1);
        let mx = Mx::start_on(&format!("{ip}:{}", self.port), manners);
        self.port = mx.port();
        self.running.insert(domain, mx);
        ip
    }

    /// A next hop with a certificate for `name`.
    fn certified(&mut self, domain: &'static str, name: &str) -> (String, Files) {
        let files = self.authority.sign(domain, &[name]);
        let manners = Manners {
            certificate: Some(files.clone()),
            chain: vec![self.authority.der.clone()],
            ..Manners::default()
        };
        (self.start(domain, manners), files)
    }

    fn at(&self, domain: &str) -> &Mx {
        &self.running[domain]
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The data of a record of the whole certificate by SHA-256.
fn digest(der: &[u8]) -> String {
    hex(&Sha256::digest(der))
}

/// `name MX mx.name; mx.name A ip; TLSA` in the zone `zone`.
fn domain(name: &str, ip: &str, port: u16, tlsa: &str) -> String {
    let mut text = format!("{name} IN MX 10 mx.{name}\nmx.{name} IN A {ip}\n");
    if !tlsa.is_empty() {
        text += &format!("_{port}._tcp.mx.{name} IN TLSA {tlsa}\n");
    }
    text
}

fn submit(system: &System, to: &str) {
    system.submit_about("alice@example.org", &[to], "dane");
}

/// The queue's text on the last attempt for a domain.
fn wait_refusal(system: &System, domain: &str) -> String {
    wait_for(&format!("a failed attempt for {domain}"), || {
        let queues = system.queues();
        let queue = queues.iter().find(|queue| queue["destination"] == domain)?;
        queue["last_reply"].as_str().map(str::to_owned)
    })
}

/// What a signed zone says, right and wrong; the first of the next hops chooses the port.
fn good_zone(hosts: &mut Hosts) -> String {
    // DANE-EE: neither name nor authority matter.
    let (ip, files) = hosts.certified("ee.good", "whatever.example");
    let port = hosts.port;
    let own = format!("3 0 1 {}", digest(&files.der));
    let mut zone = domain("ee", &ip, port, &own);
    // DANE-TA: the name must fit, and the anchor is shown.
    let anchor = format!("2 0 1 {}", digest(&hosts.authority.der));
    let (ip, _) = hosts.certified("ta.good", "mx.ta.good");
    zone += &domain("ta", &ip, port, &anchor);
    let (ip, _) = hosts.certified("tawrong.good", "another.example");
    zone += &domain("tawrong", &ip, port, &anchor);
    // The record of another certificate.
    let another = format!("3 0 1 {}", digest(b"another"));
    let (ip, _) = hosts.certified("lie.good", "mx.lie.good");
    zone += &domain("lie", &ip, port, &another);
    // A record, and no TLS.
    let ip = hosts.start("clear.good", Manners::default());
    zone += &domain("clear", &ip, port, &own);
    // Records without usable content demand encryption only.
    let (ip, _) = hosts.certified("unusable.good", "whatever.example");
    zone += &domain("unusable", &ip, port, &format!("1 0 1 {}", digest(b"x")));
    // No record: anything goes.
    let ip = hosts.start("plain.good", Manners::default());
    zone += &domain("plain", &ip, port, "");
    // An alias: the record is at the end of the alias.
    let (ip, files) = hosts.certified("alias.good", "whatever.example");
    zone += "alias IN MX 10 mx.alias\nmx.alias IN CNAME real.alias\n";
    let record = digest(&files.der);
    zone + &format!("real.alias IN A {ip}\n_{port}._tcp.real.alias IN TLSA 3 0 1 {record}\n")
}

/// All zones, signed rightly, wrongly and not at all.
fn zones(hosts: &mut Hosts) -> BTreeMap<&'static str, (Signing, String)> {
    let good = good_zone(hosts);
    let port = hosts.port;
    let (ip, files) = hosts.certified("ee.hashed", "whatever.example");
    let mut hashed = domain("ee", &ip, port, &format!("3 0 1 {}", digest(&files.der)));
    let ip = hosts.start("plain.hashed", Manners::default());
    hashed += &domain("plain", &ip, port, "");
    // The zone is unsigned, so its records mean nothing, right or wrong.
    let another = format!("3 0 1 {}", digest(b"another"));
    let ip = hosts.start("any.unsigned", Manners::default());
    let unsigned = domain("any", &ip, port, &another);
    let mut plain = |name| domain("any", &hosts.start(name, Manners::default()), port, "");
    let (bogus, expired) = (plain("any.bogus"), plain("any.expired"));
    BTreeMap::from([
        ("good", (Signing::Good, good)),
        ("hashed", (Signing::Hashed, hashed)),
        ("unsigned", (Signing::None, unsigned)),
        ("bogus", (Signing::WrongKey, bogus)),
        ("expired", (Signing::Expired, expired)),
    ])
}

const VERIFIED: &[&str] = &["ee.good", "ta.good", "alias.good", "ee.hashed"];
const PLAIN: &[&str] = &["plain.good", "plain.hashed", "any.unsigned"];
/// Domains without any delivery, and a word of the reason.
const LIES: &[(&str, &str)] = &[
    ("tawrong.good", "certificate"),
    ("lie.good", "certificate"),
    ("clear.good", "TLS"),
    ("any.bogus", "DNSSEC"),
    ("any.expired", "DNSSEC"),
];

/// What reports about TLS count: the kind of policy, and the kind of failure.
const COUNTED: &[(&str, &[&str])] = &[
    ("ee.good", &["\"Tlsa\"", "\"3 0 1 ", "\"failure\":null"]),
    ("ta.good", &["\"Tlsa\"", "\"2 0 1 ", "\"failure\":null"]),
    ("tawrong.good", &["\"Tlsa\"", "CertificateHostMismatch"]),
    (
        "lie.good",
        &[
            "\"Tlsa\"",
            "CertificateNotTrusted",
            "no TLSA record matches",
        ],
    ),
    ("clear.good", &["\"Tlsa\"", "StartTlsNotSupported"]),
    ("unusable.good", &["\"Tlsa\"", "TlsaInvalid"]),
    ("plain.good", &["\"NotFound\"", "StartTlsNotSupported"]),
];

#[test]
fn signed_zones_say_whom_to_trust() {
    let mut hosts = Hosts::new();
    let zones = zones(&mut hosts);
    let Some(named) = Named::start(hosts.authority.folder(), &zones) else {
        return;
    };
    // The CA of the next hops is not trusted.
    let another = Authority::new();
    let options = Options::default()
        .set("resolver.servers", &format!("[\"{}\"]", named.address))
        .set("resolver.dnssec", "\"validate\"")
        .set("resolver.trust_anchor", &quoted(&named.trust_anchor))
        .set("delivery.port", &hosts.port.to_string())
        .set("delivery.ca", &quoted(&another.ca))
        .set("reports.tls", "\"daily\"")
        .set("reports.contact", "\"tls@example.org\"");
    let system = System::start(&options);
    let lies = LIES.iter().map(|(to, _)| to);
    for to in VERIFIED
        .iter()
        .chain(PLAIN)
        .chain(lies)
        .chain(&["unusable.good"])
    {
        submit(&system, &format!("x@{to}"));
    }
    for to in VERIFIED {
        let seen = hosts.at(to).wait_messages(1).remove(0);
        // RFC 7672 section 8.1: the name by which the records were found.
        let name = match *to {
            "alias.good" => "real.alias.good".to_owned(),
            other => format!("mx.{other}"),
        };
        assert_eq!(seen.tls.as_deref(), Some(name.as_str()));
        let trace = system.command(&["trace", &format!("x@{to}")]);
        assert!(trace.contains(" dane"), "{trace}");
    }
    for to in PLAIN {
        assert!(hosts.at(to).wait_messages(1)[0].tls.is_none());
    }
    let seen = hosts.at("unusable.good").wait_messages(1).remove(0);
    assert!(seen.tls.is_some());
    for (to, word) in LIES {
        let reply = wait_refusal(&system, to);
        assert!(reply.contains(word), "{to}: {reply}");
        assert!(hosts.at(to).messages().is_empty(), "{to}");
    }
    wait_until("the lies alone to wait", || {
        system.queued() == LIES.len() as u64
    });
    for (domain, words) in COUNTED {
        tls_reports::wait_counted(&system, domain, words);
    }
    // The sender puts delivery above the policy of the domain (RFC 8689 section 4.2.2).
    let text = "Subject: urgent\r\nTLS-Required: No\r\n\r\nbody";
    system.submit("alice@example.org", &["x@lie.good"], text);
    hosts.at("lie.good").wait_messages(1);
}
