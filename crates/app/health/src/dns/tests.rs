use vere_dkim::{KeyAlgorithm, StoredKey};
use vere_net::resolver::{Resolver, Zone};
use vere_units::Timestamp;

use super::*;

fn key() -> StoredKey {
    let now = Timestamp::from_millis(0);
    let algorithm = KeyAlgorithm::Ed25519Sha256;
    StoredKey::generate("example.org", "s1", algorithm, 0, now, now).unwrap()
}

/// A zone in which everything is right; `KEY` stands for the public key's record.
const ZONE: &str = r#"
mx.example.org A 198.51.100.7
mx.example.org AAAA 2001:db8::7
7.100.51.198.in-addr.arpa PTR mx.example.org
7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR mx.example.org
example.org MX 10 mx.example.org
example.org TXT "v=spf1 mx -all"
example.org TXT "another text"
s1._domainkey.example.org TXT "KEY"
_dmarc.example.org TXT "v=DMARC1; p=none; rua=mailto:postmaster@example.org"
example.org CAA 0 issue "letsencrypt.org"
_submissions._tcp.example.org SRV 0 1 465 mx.example.org
_imaps._tcp.example.org SRV 0 1 993 mx.example.org
mta-sts.example.org A 198.51.100.7
autoconfig.example.org A 198.51.100.7
listed.test A 127.0.0.2
"#;

/// The zone with one text replaced by another.
fn zone(key: &StoredKey, from: &str, to: &str) -> Zone {
    assert!(ZONE.contains(from), "{from}");
    let text = ZONE.replacen(from, to, 1);
    Zone::parse(&text.replace("KEY", &key.record_text())).unwrap()
}

fn subject(key: StoredKey, zone: Zone) -> Subject {
    Subject {
        resolver: Resolver::from_zone(zone),
        validating: None,
        mail_port: 25,
        domain: "example.org".to_owned(),
        hostname: "mx.example.org".to_owned(),
        addresses: vec![
            "198.51.100.7".parse().unwrap(),
            "2001:db8::7".parse().unwrap(),
        ],
        keys: vec![key],
        signing: Vec::new(),
        signs: true,
        lists: vec!["list.test".to_owned()],
        reports: None,
        web: Some(subject::WebServer {
            port: 443,
            has_policy: true,
            roots: None,
        }),
        authority: Some(authority::Authority {
            directory: "https://acme-v02.api.letsencrypt.org/directory".to_owned(),
            root: None,
            method: "http-01",
            identities: vec!["letsencrypt.org".to_owned()],
            account: authority::Account::None,
        }),
        ports: [("_submissions._tcp", Some(465)), ("_imaps._tcp", Some(993))],
    }
}

/// The results of all checks of records.
async fn records(subject: &Subject) -> Vec<Row> {
    let mut rows = Vec::new();
    super::records(subject, &mut rows).await;
    rows
}

/// The findings after one change of the zone.
async fn after(from: &str, to: &str) -> Vec<Row> {
    let key = key();
    let zone = zone(&key, from, to);
    let mut rows = records(&subject(key, zone)).await;
    rows.retain(|row| row.level > Level::Ok);
    rows
}

#[tokio::test]
async fn a_zone_without_faults_has_no_finding() {
    let key = key();
    let zone = zone(&key, "", "");
    let rows = records(&subject(key, zone)).await;
    let wrong: Vec<_> = rows.iter().filter(|row| row.level > Level::Ok).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut checks: Vec<&str> = rows.iter().map(|row| row.check).collect();
    checks.dedup();
    let all = [
        "host",
        "reverse",
        "mx",
        "spf",
        "dkim",
        "dmarc",
        "caa",
        "srv",
        "web names",
        "lists",
    ];
    assert_eq!(checks, all);
    let text = show::in_text(&[("example.org".to_owned(), rows)]);
    assert!(text.ends_with("nothing to mend\n"), "{text}");
}

/// A change of the zone, the check for the change, and parts of finding and remedy.
type Fault = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const FAULTS: &[Fault] = &[
    (
        "autoconfig.example.org A 198.51.100.7",
        "autoconfig.example.org A 198.51.100.9",
        "web names",
        "autoconfig.example.org leads to 198.51.100.9",
        "publish: autoconfig.example.org. CNAME mx.example.org.",
    ),
    (
        "mta-sts.example.org A 198.51.100.7",
        "mta-sts.example.org FAIL",
        "web names",
        "mta-sts.example.org cannot be looked up",
        "name servers",
    ),
    (
        "mx.example.org A 198.51.100.7",
        "mx.example.org A 198.51.100.8",
        "host",
        "198.51.100.8, and this machine has",
        "publish: mx.example.org. A 198.51.100.7",
    ),
    (
        "mx.example.org AAAA 2001:db8::7",
        "mx.example.org AAAA 2001:db8::8",
        "host",
        "leads to 2001:db8::8",
        "remove these addresses",
    ),
    (
        "7.100.51.198.in-addr.arpa PTR mx.example.org",
        "",
        "reverse",
        "198.51.100.7 has no name",
        "your provider",
    ),
    (
        "7.100.51.198.in-addr.arpa PTR mx.example.org",
        "7.100.51.198.in-addr.arpa PTR host7.example.net",
        "reverse",
        "host7.example.net, which does not lead back",
        "set the name of 198.51.100.7 to mx.example.org",
    ),
    (
        "7.100.51.198.in-addr.arpa PTR mx.example.org",
        "www.example.org A 198.51.100.7\n7.100.51.198.in-addr.arpa PTR www.example.org",
        "reverse",
        "EHLO says mx.example.org",
        "set the name of 198.51.100.7",
    ),
    (
        "7.100.51.198.in-addr.arpa PTR mx.example.org",
        "7.100.51.198.in-addr.arpa FAIL",
        "reverse",
        "cannot be looked up",
        "name servers",
    ),
    (
        "example.org MX 10 mx.example.org",
        "",
        "mx",
        "has no MX record",
        "publish: example.org. MX 10 mx.example.org.",
    ),
    (
        "example.org MX 10 mx.example.org",
        "example.org MX 0 .",
        "mx",
        "takes no mail",
        "publish: example.org. MX",
    ),
    (
        "example.org MX 10 mx.example.org",
        "example.org MX 10 mx.example.org\nexample.org MX 20 gone.example.org",
        "mx",
        "gone.example.org has no address",
        "remove the MX record",
    ),
    (
        "v=spf1 mx -all",
        "spf1 mx -all",
        "spf",
        "has no SPF record",
        "v=spf1 mx -all",
    ),
    (
        "example.org TXT \"another text\"",
        "example.org TXT \"v=spf1 a -all\"",
        "spf",
        "2 SPF records",
        "publish: example.org. TXT",
    ),
    (
        "v=spf1 mx -all",
        "v=spf1 ip4:198.51.100.7 -all",
        "spf",
        "mail from 2001:db8::7 gets fail",
        "ip6:2001:db8::7",
    ),
    (
        "v=spf1 mx -all",
        "v=spf1 mx mxx -all",
        "spf",
        "gets permerror",
        "correct the record",
    ),
    (
        "v=spf1 mx -all",
        "v=spf1 mx +all",
        "spf",
        "allows everybody",
        "-all",
    ),
    (
        "v=spf1 mx -all",
        "v=spf1 mx ?all",
        "spf",
        "says nothing about other senders",
        "-all",
    ),
    (
        "s1._domainkey.example.org TXT \"KEY\"",
        "",
        "dkim",
        "s1._domainkey.example.org has no record",
        "publish: s1._domainkey.example.org. IN TXT",
    ),
    (
        "\"KEY\"",
        "\"v=DKIM1; k=ed25519; p=\"",
        "dkim",
        "revoked",
        "publish:",
    ),
    (
        "\"KEY\"",
        "\"v=DKIM1; k=ed25519; p=AAAA\"",
        "dkim",
        "another key",
        "publish:",
    ),
    (
        "\"KEY\"",
        "\"KEY; k=rsa\"",
        "dkim",
        "another algorithm",
        "publish:",
    ),
    ("\"KEY\"", "\"KEY; t=y\"", "dkim", "test (t=y)", "publish:"),
    (
        "\"KEY\"",
        "\"KEY\"\ns1._domainkey.example.org TXT \"v=DKIM1; p=AAAA\"",
        "dkim",
        "2 records",
        "publish:",
    ),
    (
        "_dmarc.example.org TXT",
        "_dmarc2.example.org TXT",
        "dmarc",
        "has no record",
        "v=DMARC1; p=none",
    ),
    (
        "v=DMARC1; p=none;",
        "v=DMARC1; p=accept;",
        "dmarc",
        "found p=accept",
        "v=DMARC1; p=none",
    ),
    (
        "v=DMARC1; p=none;",
        "v=DMARC1;",
        "dmarc",
        "no policy",
        "v=DMARC1; p=none",
    ),
    (
        "example.org CAA 0 issue \"letsencrypt.org\"",
        "example.org CAA 0 issue \"ca.example.net\"",
        "caa",
        "forbids letsencrypt.org",
        "CAA 0 issue \"letsencrypt.org\"",
    ),
    (
        "example.org CAA 0 issue \"letsencrypt.org\"",
        "example.org CAA 0 issue \";\"",
        "caa",
        "forbids letsencrypt.org",
        "CAA 0 issue",
    ),
    (
        "_imaps._tcp.example.org SRV 0 1 993 mx.example.org",
        "_imaps._tcp.example.org SRV 0 1 143 mx.example.org",
        "srv",
        "_imaps._tcp.example.org leads elsewhere",
        "SRV 0 1 993 mx.example.org.",
    ),
    (
        "listed.test A 127.0.0.2",
        "7.100.51.198.list.test A 127.0.0.4\n7.100.51.198.list.test TXT \"spam seen\"",
        "lists",
        "on the block list list.test (127.0.0.4): spam seen",
        "ask the list list.test",
    ),
    (
        "listed.test A 127.0.0.2",
        "7.100.51.198.list.test A 127.255.255.254",
        "lists",
        "refuses to answer",
        "[resolver] servers",
    ),
];

/// A wrong address also breaks the reverse name and SPF by MX.
const ROWS_MAX: usize = 4;

#[tokio::test]
async fn each_fault_of_a_zone_is_found_with_its_remedy() {
    for (from, to, check, text, remedy) in FAULTS {
        let rows = after(from, to).await;
        let is_it = |row: &&Row| row.check == *check && row.text.contains(text);
        let Some(row) = rows.iter().find(is_it) else {
            panic!("{to}: {rows:#?}");
        };
        let said = row.remedy.as_deref().unwrap_or_default();
        assert!(said.contains(remedy), "{to}: {row:?}");
        assert!(rows.len() <= ROWS_MAX, "{to}: {rows:#?}");
    }
}

/// The remedy named the postmaster, who reads no XML.
#[tokio::test]
async fn reports_are_suggested_where_an_address_is_meant_for_them() {
    let key = key();
    let remedy = async |reports: Option<&str>| {
        let zone = zone(&key, "_dmarc.example.org TXT", "_dmarc2.example.org TXT");
        let mut subject = subject(key.clone(), zone);
        subject.reports = reports.map(str::to_owned);
        policies::dmarc(&subject).await.remedy.unwrap()
    };
    let without = remedy(None).await;
    assert!(without.ends_with("\"v=DMARC1; p=none\""), "{without}");
    let with = remedy(Some("reports@example.org")).await;
    assert!(
        with.ends_with("\"v=DMARC1; p=none; rua=mailto:reports@example.org\""),
        "{with}"
    );
}

/// Nobody answers at the port.
#[tokio::test]
async fn a_web_name_without_a_valid_certificate_is_found() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let zone = Zone::parse("mta-sts.example.org A 127.0.0.1").unwrap();
    let mut subject = subject(key(), zone);
    subject.addresses = vec!["127.0.0.1".parse().unwrap()];
    let port = listener.local_addr().unwrap().port();
    subject.web = Some(subject::WebServer {
        port,
        has_policy: true,
        roots: None,
    });
    drop(listener);
    let rows = web::certificates(&subject).await;
    let [row] = rows.as_slice() else {
        panic!("{rows:#?}");
    };
    assert_eq!(row.level, Level::Critical);
    assert!(
        row.text
            .contains("no valid certificate for mta-sts.example.org"),
        "{row:?}"
    );
    subject.web = None;
    assert!(web::certificates(&subject).await.is_empty() && web::names(&subject).await.is_empty());
}

/// The names of the web server are aliases of the host name: each repeated its fault.
#[tokio::test]
async fn a_wrong_address_of_the_host_is_told_once() {
    let key = key();
    let text = ZONE.replace(" A 198.51.100.7", " A 198.51.100.8");
    let zone = Zone::parse(&text.replace("KEY", &key.record_text())).unwrap();
    let mut rows = records(&subject(key, zone)).await;
    rows.retain(|row| row.level > Level::Ok);
    let checks: Vec<_> = rows.iter().map(|row| row.check).collect();
    assert_eq!(checks, ["host", "reverse", "spf"], "{rows:#?}");
}

#[tokio::test]
async fn mail_that_goes_elsewhere_is_found() {
    let rows = after(
        "example.org MX 10 mx.example.org",
        "example.org MX 10 mx.example.net\nmx.example.net A 192.0.2.1",
    )
    .await;
    // The policy "mx" names the other host, too.
    let checks: Vec<_> = rows.iter().map(|row| row.check).collect();
    assert_eq!(checks, ["mx", "spf", "spf"], "{rows:#?}");
    assert!(rows[0].text.contains("goes to mx.example.net"), "{rows:#?}");
}

#[tokio::test]
async fn a_domain_without_keys_and_a_machine_without_addresses_are_told() {
    let key = key();
    let right = zone(&key, "", "");
    let mut bare = subject(key, right);
    bare.keys.clear();
    bare.addresses.clear();
    let mut rows = records(&bare).await;
    rows.retain(|row| row.level > Level::Ok);
    let remedies: Vec<_> = rows
        .iter()
        .filter_map(|row| row.remedy.as_deref())
        .collect();
    assert_eq!(
        remedies,
        [
            "behind NAT, name the public address: vere dns check --address IP",
            "vere dkim keygen example.org",
        ]
    );
    bare.signs = false;
    let rows = records(&bare).await;
    assert!(rows.iter().any(|row| row.text == "mail is not signed"));
}

#[test]
fn control_characters_of_others_do_not_reach_the_terminal() {
    let row = Row::warning("spf", "v=spf1 \u{1b}[2J", "x");
    let text = show::in_text(&[("example.org".to_owned(), vec![row])]);
    assert!(text.contains("v=spf1 ?[2J"), "{text}");
    assert!(text.ends_with("1 finding\n"), "{text}");
}

/// The command was silent for minutes.
#[tokio::test]
async fn name_servers_without_an_answer_are_told_at_once() {
    // The questions stay unread.
    let mute = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = ResolverOptions {
        servers: vec![mute.local_addr().unwrap()],
        query_timeout: Duration::from_millis(50),
        timeout: Duration::from_millis(100),
        ..ResolverOptions::default()
    };
    let key = key();
    let right = zone(&key, "", "");
    let mut subject = subject(key, right);
    assert_eq!(wait::silence(&subject).await, None);
    subject.resolver = Resolver::new(&options).unwrap();
    let row = wait::silence(&subject).await.unwrap();
    assert_eq!(row.level, Level::Critical);
    let text = "the name servers do not answer about example.org: ";
    assert!(row.text.starts_with(text), "{row:?}");
    assert!(row.remedy.unwrap().contains("[resolver] servers"));
}

#[tokio::test]
async fn results_before_the_end_of_the_time_remain() {
    let mut rows = Vec::new();
    let until = Instant::now() + Duration::from_millis(50);
    let checks = async {
        rows.push(Row::ok("host", "found"));
        std::future::pending::<()>().await;
    };
    let mut told = 0;
    assert_eq!(wait::in_time(checks, until, || told += 1).await, None);
    assert_eq!((rows.len(), told), (1, 1));
    let done = wait::in_time(async { 7 }, Instant::now(), || told += 1).await;
    assert_eq!((done, told), (Some(7), 1));
}

#[test]
fn a_late_domain_is_told_with_the_cause() {
    let late = |source, seconds, rest| {
        let row = wait::late("a.example", source, Duration::from_secs(seconds), rest);
        row.text + " -> " + row.remedy.as_deref().unwrap_or_default()
    };
    let text = late(Source::NameServers, 60, 2);
    let start =
        "the name servers do not answer within 60 s; 2 further domains not checked -> see that";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("[resolver] servers"), "{text}");
    let text = late(Source::Hosts, 60, 0);
    let expected = "the hosts do not answer within 60 s -> see the records alone with: \
                    vere dns check a.example --records-only";
    assert_eq!(text, expected);
    let text = late(Source::NameServers, 1, 0);
    let expected = "the checks were not finished within 60 s -> vere dns check a.example";
    assert_eq!(text, expected);
}

/// Records of a mistyped domain were asked for as if the domain were one of this system.
#[test]
fn domains_of_others_and_texts_that_are_no_domain_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vere.toml");
    let text = "version = 1\nhostname = \"mx.your.example\"\ndata = \".\"\n[[route]]\n\
                domain = \"behind.example\"\nnext_hop = \"192.0.2.1:25\"\n";
    let settings = Settings::parse(text, &file.to_string_lossy()).unwrap();
    let row = |domain: &str| subject::stranger(domain, &settings);
    assert_eq!(row("yuor.example"), None, "no domains are known");
    let directory = vere_login::directory::create(&settings).unwrap();
    let name = vere_ports::directory::DomainName::parse("your.example").unwrap();
    directory.add_domain(name, None).unwrap();
    assert_eq!(row("your.example"), None);
    assert_eq!(row("behind.example"), None);
    let found = row("yuor.example").unwrap();
    assert_eq!(found.level, Level::Warning);
    assert_eq!(found.text, "yuor.example is not a domain of this system");
    let remedy = "check your.example if you meant that; otherwise add the domain with: \
                  vere domain add yuor.example";
    assert_eq!(found.remedy.as_deref(), Some(remedy));
    let found = row("nodomain").unwrap();
    assert!(found.text.ends_with("gets no mail from the internet"));
    let asked = |domain: &str| domains(Some(domain), &settings);
    let error = asked("bad domain").unwrap_err().to_string();
    assert_eq!(error, "\"bad domain\" is not a domain name");
    assert_eq!(
        asked("B\u{fc}cher.Example.").unwrap(),
        ["xn--bcher-kva.example"]
    );
}
