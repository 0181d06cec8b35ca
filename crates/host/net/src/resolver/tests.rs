//! The static zone, and hickory against a name server of this test on loopback.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, MX, SOA, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

use super::{
    AddressAnswer, LookupFailure, MX_HOSTS_MAX, MxAnswer, Record as Found, RecordKind,
    RecordsAnswer, Resolver, ResolverOptions, TxtAnswer, Zone, reverse_name,
};

const ZONE: &str = "
# mail of the demonstration
demo.test.        MX     20 backup.demo.test.
Demo.Test         MX     10 mx.demo.test      ; the better one
mx.demo.test      A      192.0.2.1
mx.demo.test      AAAA   2001:db8::1
backup.demo.test  CNAME  mx.demo.test
plain.test        A      192.0.2.7
null.test         MX     0 .
mixed.test        MX     0 .
mixed.test        MX     5 mx.demo.test
demo.test         TXT    \"v=spf1 -all; # all of it\"
down.test         FAIL
loop.test         CNAME  loop.test
deep.below.test   A      192.0.2.9
1.2.0.192.in-addr.arpa PTR mx.demo.test
2.0.0.127.list.test A   127.0.0.2
*.wild.test       MX     0 mx.demo.test
";

fn zone() -> Resolver {
    Resolver::from_zone(Zone::parse(ZONE).expect("a zone"))
}

fn hosts(expected: &[(u16, &str)]) -> MxAnswer {
    MxAnswer::Hosts(
        expected
            .iter()
            .map(|(p, host)| (*p, (*host).to_owned()))
            .collect(),
    )
}

fn found(addresses: &[&str]) -> AddressAnswer {
    let parse = |text: &&str| text.parse().expect("an address");
    AddressAnswer::Found(addresses.iter().map(parse).collect())
}

#[tokio::test]
async fn the_zone_answers_for_exchangers() {
    let resolver = zone();
    let both = hosts(&[(10, "mx.demo.test"), (20, "backup.demo.test")]);
    assert_eq!(resolver.mx("demo.test").await, both);
    assert_eq!(resolver.mx("DEMO.test.").await, both);
    assert_eq!(resolver.mx("plain.test").await, MxAnswer::None);
    assert_eq!(resolver.mx("null.test").await, MxAnswer::NullMx);
    assert_eq!(
        resolver.mx("mixed.test").await,
        hosts(&[(5, "mx.demo.test")])
    );
    assert_eq!(resolver.mx("none.test").await, MxAnswer::NoSuchDomain);
    assert_eq!(resolver.mx("below.test").await, MxAnswer::None);
    assert_eq!(
        resolver.mx("any.where.wild.test").await,
        hosts(&[(0, "mx.demo.test")])
    );
    assert_eq!(resolver.mx("wild.test").await, MxAnswer::None);
    for name in ["down.test", "loop.test"] {
        assert_eq!(
            resolver.mx(name).await,
            MxAnswer::TempFail(LookupFailure::Code(2))
        );
    }
}

#[tokio::test]
async fn the_zone_answers_for_addresses_and_texts() {
    let resolver = zone();
    let both = found(&["2001:db8::1", "192.0.2.1"]);
    assert_eq!(resolver.addresses("mx.demo.test").await, both);
    assert_eq!(resolver.addresses("backup.demo.test").await, both);
    assert_eq!(resolver.addresses("demo.test").await, AddressAnswer::None);
    assert_eq!(
        resolver.addresses("none.test").await,
        AddressAnswer::NoSuchName
    );
    let spf = TxtAnswer::Found(vec!["v=spf1 -all; # all of it".to_owned()]);
    assert_eq!(resolver.txt("demo.test").await, spf);
    assert_eq!(resolver.txt("plain.test").await, TxtAnswer::None);
}

#[tokio::test]
async fn the_zone_answers_for_records_of_each_type() {
    let resolver = zone();
    let client = reverse_name("192.0.2.1".parse().expect("an address"));
    let address = Found::A([192, 0, 2, 1].into());
    for (name, kind, record) in [
        ("mx.demo.test", RecordKind::A, address.clone()),
        ("backup.demo.test", RecordKind::A, address),
        (
            "2.0.0.127.list.test",
            RecordKind::A,
            Found::A([127, 0, 0, 2].into()),
        ),
        (
            &client,
            RecordKind::Ptr,
            Found::Ptr("mx.demo.test".to_owned()),
        ),
        (
            "a.wild.test",
            RecordKind::Mx,
            Found::Mx(0, "mx.demo.test".to_owned()),
        ),
        (
            "demo.test",
            RecordKind::Txt,
            Found::Txt(b"v=spf1 -all; # all of it".to_vec()),
        ),
    ] {
        let found = RecordsAnswer::Found(vec![record]);
        assert_eq!(resolver.records(name, kind).await, found, "{name}");
    }
    let of = async |name| resolver.records(name, RecordKind::Txt).await;
    assert_eq!(of("plain.test").await, RecordsAnswer::None);
    assert_eq!(of("none.test").await, RecordsAnswer::NoSuchName);
    let failed = RecordsAnswer::TempFail(LookupFailure::Code(2));
    assert_eq!(of("down.test").await, failed);
}

#[test]
fn a_wrong_line_is_named() {
    let cases = [
        ("\nx.test", 2, "a record needs a type"),
        ("x.test A 2001:db8::1", 1, "A needs an IPv4 address"),
        ("x.test AAAA 1", 1, "AAAA needs an IPv6 address"),
        ("x.test MX mx.test", 1, "MX needs a preference and a host"),
        (
            "x.test MX 70000 mx.test",
            1,
            "MX needs a preference and a host",
        ),
        ("x.test CNAME", 1, "CNAME needs a name"),
        ("x.test PTR", 1, "PTR needs a name"),
        ("x.test FAIL yes", 1, "FAIL has no value"),
        (
            "x.test SRV 1",
            1,
            "SRV needs priority, weight, port and a host",
        ),
        (
            "x.test CAA x issue y",
            1,
            "CAA needs flags, a tag and a value",
        ),
        (
            "x.test NS y",
            1,
            "the type must be A, AAAA, MX, PTR, TXT, CAA, SRV, CNAME or FAIL",
        ),
    ];
    for (text, line, problem) in cases {
        let error = Zone::parse(text).expect_err(text);
        assert_eq!(error.to_string(), format!(":{line}: {problem}"));
    }
}

#[test]
fn a_zone_file_is_named_in_its_errors() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("zone");
    std::fs::write(&path, "x.test B 1").expect("room");
    let options = ResolverOptions {
        zone: Some(path.clone()),
        ..ResolverOptions::default()
    };
    let error = Resolver::new(&options).expect_err("wrong");
    assert!(
        error
            .to_string()
            .starts_with(&format!("{}:1: ", path.display())),
        "{error}"
    );
    std::fs::remove_file(&path).expect("ours");
    let error = Resolver::new(&options).expect_err("gone");
    assert!(
        error.to_string().contains("cannot read the zone file"),
        "{error}"
    );
}

#[tokio::test]
async fn equal_preferences_are_spread_and_the_number_is_bounded() {
    let mut text = String::new();
    for n in 0..100 {
        text.push_str(&format!("many.test MX 10 mx{n}.many.test\n"));
    }
    let resolver = Resolver::from_zone(Zone::parse(&text).expect("a zone"));
    let mut first = HashSet::new();
    for _ in 0..50 {
        let MxAnswer::Hosts(hosts) = resolver.mx("many.test").await else {
            panic!("hosts")
        };
        assert_eq!(hosts.len(), MX_HOSTS_MAX);
        first.insert(hosts[0].1.clone());
    }
    assert!(first.len() > 5, "{first:?}");
}

/// A name server on loopback that counts the questions it gets.
async fn server() -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let address = socket.local_addr().expect("bound");
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        let mut buffer = [0; 1500];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            counted.fetch_add(1, Ordering::Relaxed);
            let Some(answer) = answer(&buffer[..length]) else {
                continue;
            };
            socket.send_to(&answer, peer).await.expect("loopback");
        }
    });
    (address, count)
}

fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let mut message = Message::from_vec(question).expect("hickory asks well");
    let query = message.queries.first().expect("one question").clone();
    let name = query.name().to_lowercase().to_ascii();
    let add = |message: &mut Message, name: &str, data: RData| {
        let owner = if name.is_empty() {
            query.name().clone()
        } else {
            to_name(name)
        };
        message.answers.push(Record::from_rdata(owner, 300, data));
    };
    message.metadata.message_type = hickory_resolver::proto::op::MessageType::Response;
    match (name.as_str(), query.query_type()) {
        ("silent.test.", _) => return None,
        ("broken.test.", _) => message.metadata.response_code = ResponseCode::ServFail,
        ("refused.test.", _) => message.metadata.response_code = ResponseCode::Refused,
        ("null.test.", RecordType::MX) => {
            add(&mut message, "", RData::MX(MX::new(0, Name::root())))
        }
        ("demo.test.", RecordType::MX) => {
            add(&mut message, "", RData::MX(MX::new(20, to_name("b.test."))));
            add(&mut message, "", RData::MX(MX::new(10, to_name("A.test."))));
        }
        ("demo.test.", RecordType::TXT) => {
            let strings = vec!["v=spf1 ".to_owned(), "-all".to_owned()];
            add(&mut message, "", RData::TXT(TXT::new(strings)));
        }
        ("a.test.", RecordType::A) => add(&mut message, "", RData::A(A::new(192, 0, 2, 1))),
        ("a.test.", RecordType::AAAA) => {
            add(
                &mut message,
                "",
                RData::AAAA(AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
            );
        }
        ("alias.test.", RecordType::A) => {
            add(&mut message, "", RData::CNAME(CNAME(to_name("a.test."))));
            add(&mut message, "a.test.", RData::A(A::new(192, 0, 2, 1)));
        }
        ("gone.test.", _) => {
            message.metadata.response_code = ResponseCode::NXDomain;
            let soa = SOA::new(to_name("ns.test."), to_name("a.test."), 1, 1, 1, 1, 300);
            let soa = Record::from_rdata(to_name("test."), 300, RData::SOA(soa));
            message.authorities.push(soa);
        }
        ("half.test.", RecordType::A) => add(&mut message, "", RData::A(A::new(192, 0, 2, 3))),
        ("half.test.", _) => message.metadata.response_code = ResponseCode::ServFail,
        ("demo.test." | "alias.test." | "a.test." | "xn--exmple-cua.test.", _) => {}
        _ => message.metadata.response_code = ResponseCode::NXDomain,
    }
    Some(message.to_vec().expect("small"))
}

fn to_name(text: &str) -> Name {
    Name::from_ascii(text).expect("a name")
}

fn asking(server: SocketAddr) -> Resolver {
    let options = ResolverOptions {
        servers: vec![server],
        query_timeout: Duration::from_secs(2),
        timeout: Duration::from_secs(5),
        ..ResolverOptions::default()
    };
    Resolver::new(&options).expect("servers are given")
}

#[tokio::test]
async fn a_name_server_is_asked_for_exchangers() {
    let (server, _) = server().await;
    let resolver = asking(server);
    assert_eq!(
        resolver.mx("demo.test").await,
        hosts(&[(10, "a.test"), (20, "b.test")])
    );
    assert_eq!(resolver.mx("null.test").await, MxAnswer::NullMx);
    assert_eq!(resolver.mx("a.test").await, MxAnswer::None);
    assert_eq!(resolver.mx("none.test").await, MxAnswer::NoSuchDomain);
    assert_eq!(resolver.mx("exämple.test").await, MxAnswer::None);
    for name in ["", ".", "a..test", &"x".repeat(64), "\0"] {
        assert_eq!(resolver.mx(name).await, MxAnswer::NoSuchDomain, "{name:?}");
    }
}

#[tokio::test]
async fn a_name_server_is_asked_for_addresses_and_texts() {
    let (server, _) = server().await;
    let resolver = asking(server);
    assert_eq!(
        resolver.addresses("a.test").await,
        found(&["2001:db8::1", "192.0.2.1"])
    );
    assert_eq!(
        resolver.addresses("alias.test").await,
        found(&["192.0.2.1"])
    );
    assert_eq!(resolver.addresses("demo.test").await, AddressAnswer::None);
    assert_eq!(
        resolver.addresses("none.test").await,
        AddressAnswer::NoSuchName
    );
    let spf = TxtAnswer::Found(vec!["v=spf1 -all".to_owned()]);
    assert_eq!(resolver.txt("demo.test").await, spf);
    assert_eq!(resolver.txt("none.test").await, TxtAnswer::NoSuchName);
}

#[tokio::test]
async fn a_name_server_is_asked_for_records_of_each_type() {
    let (server, _) = server().await;
    let resolver = asking(server);
    let address = RecordsAnswer::Found(vec![Found::A([192, 0, 2, 1].into())]);
    assert_eq!(resolver.records("alias.test", RecordKind::A).await, address);
    let text = RecordsAnswer::Found(vec![Found::Txt(b"v=spf1 -all".to_vec())]);
    assert_eq!(resolver.records("demo.test", RecordKind::Txt).await, text);
    let of = async |name| resolver.records(name, RecordKind::Ptr).await;
    assert_eq!(of("a.test").await, RecordsAnswer::None);
    assert_eq!(
        of("1.2.0.192.in-addr.arpa").await,
        RecordsAnswer::NoSuchName
    );
    let failed = RecordsAnswer::TempFail(LookupFailure::Code(2));
    assert_eq!(of("broken.test").await, failed);
}

/// One broken family must not stop mail that the other can carry.
#[tokio::test]
async fn one_family_is_enough() {
    let (server, _) = server().await;
    assert_eq!(
        asking(server).addresses("half.test").await,
        found(&["192.0.2.3"])
    );
}

#[tokio::test]
async fn trouble_of_the_server_is_temporary() {
    let (server, _) = server().await;
    let resolver = asking(server);
    assert_eq!(
        resolver.mx("broken.test").await,
        MxAnswer::TempFail(LookupFailure::Code(2))
    );
    assert_eq!(
        resolver.mx("refused.test").await,
        MxAnswer::TempFail(LookupFailure::Code(5))
    );
    let MxAnswer::TempFail(why) = resolver.mx("silent.test").await else {
        panic!("temporary")
    };
    assert!(
        matches!(why, LookupFailure::Timeout | LookupFailure::Server(_)),
        "{why}"
    );
}

#[tokio::test]
async fn answers_are_kept_while_they_live() {
    let (server, count) = server().await;
    let resolver = asking(server);
    for (name, is_kept) in [
        ("demo.test", true),
        ("DEMO.test.", true),
        ("gone.test", true),
        // Without a record SOA nothing says how long the absence lasts (RFC 2308 section 5).
        ("none.test", false),
        ("broken.test", false),
    ] {
        let first = resolver.mx(name).await;
        let asked = count.load(Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(resolver.clone().mx(name).await, first, "{name}");
        }
        let more = count.load(Ordering::Relaxed) - asked;
        assert_eq!(more == 0, is_kept, "{name}: {more}");
    }
}
