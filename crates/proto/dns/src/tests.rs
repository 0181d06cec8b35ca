//! Hickory, an independent implementation, writes the queries and reads the responses.

mod octets;

use std::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Edns, Message, Query as TheirQuery, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption};
use hickory_proto::rr::{DNSClass, Name as TheirName, RData, RecordType};
use proptest::prelude::*;

use super::*;

fn their_query(name: &str, kind: u16, edns: Option<Edns>) -> Vec<u8> {
    let mut message = Message::query();
    message.metadata.id = 0x1234;
    let mut query = TheirQuery::query(TheirName::from_ascii(name).unwrap(), kind.into());
    query.set_query_class(DNSClass::IN);
    message.add_query(query);
    message.edns = edns;
    message.to_vec().unwrap()
}

fn plain(name: &str, kind: Type) -> Vec<u8> {
    their_query(name, kind.0, None)
}

fn query(packet: &[u8]) -> Query<'_> {
    match read(packet) {
        Received::Query(query) => query,
        other => panic!("expected a query; found {other:?}"),
    }
}

fn error(packet: &[u8]) -> (Rcode, Message) {
    match read(packet) {
        Received::Error(reply) => {
            let mut memory = [0; 512];
            let length = reply.write(&mut memory);
            let message = Message::from_vec(&memory[..length]).unwrap();
            assert_eq!(message.metadata.id.to_be_bytes(), packet[..2]);
            (reply.rcode(), message)
        }
        other => panic!("expected an error; found {other:?}"),
    }
}

fn with(payload: u16, options: &[(u16, &[u8])]) -> Edns {
    let mut edns = Edns::new();
    edns.set_max_payload(payload).set_version(0);
    for (code, data) in options {
        let option = EdnsOption::Unknown(*code, data.to_vec());
        edns.options_mut().insert(option);
    }
    edns
}

#[test]
fn the_parts_of_a_query() {
    let packet = plain("2.0.0.127.bL.Example.ORG.", Type::TXT);
    let read = query(&packet);
    assert_eq!(read.kind(), Type::TXT);
    assert_eq!(
        read.name(),
        b"\x012\x010\x010\x03127\x02bL\x07Example\x03ORG\0"
    );
    let apex = Name::parse("bl.example.org").unwrap();
    assert_eq!(
        apex.prefix_of(read.name()),
        Some(&b"\x012\x010\x010\x03127"[..])
    );
    assert_eq!(
        Name::parse("l.example.org.")
            .unwrap()
            .prefix_of(read.name()),
        None
    );
    assert_eq!((read.has_edns(), read.datagram_max()), (false, 512));
}

#[test]
fn the_datagram_is_as_long_as_the_client_takes_within_bounds() {
    for (said, length) in [(0, 512), (512, 512), (900, 900), (1232, 1232), (4096, 1232)] {
        let packet = their_query("a.test.", 1, Some(with(said, &[])));
        assert_eq!(query(&packet).datagram_max(), length, "{said}");
    }
}

#[test]
fn what_is_no_query_gets_no_answer() {
    let packet = plain("a.test.", Type::A);
    for end in 0..HEADER {
        assert!(matches!(read(&packet[..end]), Received::NoQuery));
    }
    let mut response = packet.clone();
    response[2] |= 0x80;
    assert!(matches!(read(&response), Received::NoQuery));
    for end in HEADER..packet.len() {
        assert_eq!(error(&packet[..end]).0, Rcode::FormErr, "{end} octets");
    }
}

#[test]
fn each_error_has_its_code() {
    let packet = plain("a.test.", Type::A);
    let changed = |place: usize, octet: u8| {
        let mut changed = packet.clone();
        changed[place] = octet;
        error(&changed).0
    };
    for opcode in 1..16 {
        assert_eq!(changed(2, opcode << 3), Rcode::NotImp, "opcode {opcode}");
    }
    for (place, octet) in [(5, 0), (5, 2), (7, 1), (9, 1), (11, 1), (10, 1)] {
        assert_eq!(changed(place, octet), Rcode::FormErr, "{place}");
    }
    // Length octets: a pointer, and the two reserved forms (RFC 1035 section 4.1.4).
    for octet in [0xc0, 0x80, 0x40] {
        assert_eq!(changed(12, octet), Rcode::FormErr);
    }
    let longer = [&packet[..], &[0]].concat();
    assert_eq!(error(&longer).0, Rcode::FormErr);
    for kind in [Type::AXFR, Type::IXFR] {
        let (rcode, message) = error(&plain("a.test.", kind));
        assert_eq!(rcode, Rcode::Refused);
        assert_eq!(message.queries.len(), 1);
    }
    let (rcode, message) = {
        let mut chaos = packet.clone();
        let place = chaos.len() - 1;
        chaos[place] = 3;
        error(&chaos)
    };
    assert_eq!(rcode, Rcode::Refused);
    assert_eq!(message.metadata.response_code, ResponseCode::Refused);
}

#[test]
fn names_end_at_255_octets() {
    let longest = "a.".repeat(127);
    let packet = plain(&longest, Type::A);
    assert_eq!(query(&packet).name().len(), NAME_MAX);
    let mut longer = packet[..HEADER].to_vec();
    longer.extend(b"\x01a".repeat(128));
    longer.extend([0, 0, 1, 0, 1]);
    assert_eq!(error(&longer).0, Rcode::FormErr);
    assert_eq!(
        Name::parse(&"a.".repeat(127)).unwrap().octets().len(),
        NAME_MAX
    );
    assert_eq!(Name::parse(&"a.".repeat(128)), Err(NameError::Length));
    for text in ["", "a..b", ".a", &"a".repeat(64)] {
        assert_eq!(Name::parse(text), Err(NameError::Label), "{text}");
    }
    assert_eq!(Name::parse(".").unwrap().octets(), [0]);
}

#[test]
fn another_version_of_edns_is_told_ours() {
    let mut edns = with(1232, &[]);
    edns.set_version(1);
    let (rcode, message) = error(&their_query("a.test.", 1, Some(edns)));
    assert_eq!(rcode, Rcode::BadVers);
    // Hickory has one name for two meanings of 16: a wrong version, and a wrong signature.
    assert_eq!(u16::from(message.metadata.response_code), 16);
    assert_eq!(message.edns.unwrap().version(), 0);
}

#[test]
fn cookies_have_the_lengths_of_the_standard() {
    let client = [1, 2, 3, 4, 5, 6, 7, 8];
    for length in 0..64 {
        let data: Vec<u8> = (1..=length).collect();
        let packet = their_query("a.test.", 1, Some(with(1232, &[(10, &data)])));
        match length {
            8 => assert_eq!(query(&packet).cookies(), Some((&client, None))),
            24 => {
                let (_, server) = query(&packet).cookies().unwrap();
                assert_eq!(server.unwrap(), &data[8..]);
            }
            16..=40 => assert_eq!(query(&packet).cookies(), Some((&client, None))),
            _ => assert_eq!(error(&packet).0, Rcode::FormErr, "{length}"),
        }
    }
}

#[test]
fn an_answer_has_the_options_of_its_query() {
    let mut edns = with(1232, &[(10, b"abcdefgh"), (77, b"unknown")]);
    edns.set_dnssec_ok(true);
    let packet = their_query("a.test.", 1, Some(edns));
    let query = query(&packet);
    let mut memory = [0; 512];
    let length = Response::new(&query, &mut memory, 512).finish(Some([9; 16]));
    let message = Message::from_vec(&memory[..length]).unwrap();
    let edns = message.edns.unwrap();
    assert!(edns.flags().dnssec_ok);
    assert_eq!(edns.max_payload(), 1232);
    let expected = EdnsOption::Unknown(10, [&b"abcdefgh"[..], &[9; 16]].concat());
    assert_eq!(edns.options().options, [(EdnsCode::Cookie, expected)]);
}

/// The limits of the server are about what leaves.
#[test]
fn the_length_of_a_response_is_known_before_its_end() {
    for edns in [
        None,
        Some(with(1232, &[])),
        Some(with(1232, &[(10, b"abcdefgh")])),
    ] {
        let packet = their_query("a.test.", 1, edns);
        let query = query(&packet);
        let mut memory = [0; 512];
        let mut response = Response::new(&query, &mut memory, 512);
        let data = Data::A(Ipv4Addr::new(127, 0, 0, 2));
        response.record(Section::Answer, Owner::Question, 1, &data);
        let length = response.length();
        assert_eq!(length, response.finish(Some([9; 16])));
    }
}

/// A negative answer is short: the mailbox shares its end with the server, if not with the question.
#[test]
fn the_mailbox_of_a_zone_points_to_the_server() {
    let packet = plain("1.2.bl.example.org.", Type::A);
    let query = query(&packet);
    for (server, mailbox, names) in [
        ("mx.example.net", "postmaster.mx.example.net", 16 + 13),
        ("ns.example.net", "postmaster.example.net", 16 + 13),
        ("ns.example.net", "postmaster.example.com", 16 + 24),
        ("ns.example.org", "postmaster.ns.example.org", 5 + 13),
        ("ns.example.org", "postmaster.example.org", 5 + 13),
    ] {
        let (server, mailbox) = (Name::parse(server).unwrap(), Name::parse(mailbox).unwrap());
        let mut memory = [0; 512];
        let mut response = Response::new(&query, &mut memory, 512);
        let apex = Name::parse("bl.example.org").unwrap();
        let data = Data::Soa {
            server: &server,
            mailbox: &mailbox,
            numbers: [1, 2, 3, 4, 5],
        };
        response.record(Section::Authority, Owner::Name(&apex), 60, &data);
        let length = response.finish(None);
        assert_eq!(length, packet.len() + 12 + names + 20, "{server} {mailbox}");
        let message = Message::from_vec(&memory[..length]).unwrap();
        let RData::SOA(soa) = &message.authorities[0].data else {
            panic!("expected a SOA record");
        };
        let text = (soa.mname.to_string(), soa.rname.to_string());
        assert_eq!(text, (format!("{server}."), format!("{mailbox}.")));
    }
}

#[test]
fn a_response_that_is_too_long_keeps_its_question_alone() {
    let packet = their_query("a.test.", 16, Some(with(600, &[(10, b"abcdefgh")])));
    let query = query(&packet);
    let mut memory = [0; 2048];
    let text = [b'x'; 200];
    for count in 0..6 {
        let mut response = Response::new(&query, &mut memory, query.datagram_max());
        for _ in 0..count {
            response.record(Section::Answer, Owner::Question, 1, &Data::Txt(&text));
        }
        let truncated = response.is_truncated();
        let length = response.finish(Some([9; 16]));
        assert!(length <= 600);
        let message = Message::from_vec(&memory[..length]).unwrap();
        assert_eq!(message.metadata.truncation, truncated);
        assert_eq!(truncated, count > 2);
        assert_eq!(message.answers.len(), if truncated { 0 } else { count });
        assert!(message.edns.is_some());
    }
}

/// A record, as both implementations have it.
#[derive(Debug, Clone)]
enum Record {
    A(u32),
    Aaaa(u128),
    Txt(Vec<u8>),
    Ns(String),
    Mx(u16, String),
    Soa(String, String, [u32; 5]),
}

fn name_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "([a-zA-Z0-9_]{1,20}\\.){0,6}(bl\\.)?example\\.org\\.",
        "([a-z]{1,63}\\.){0,3}",
    ]
    .prop_map(|text| match text.is_empty() {
        true => ".".to_owned(),
        false => text,
    })
}

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        any::<u32>().prop_map(Record::A),
        any::<u128>().prop_map(Record::Aaaa),
        prop::collection::vec(any::<u8>(), 0..600).prop_map(Record::Txt),
        name_text().prop_map(Record::Ns),
        (any::<u16>(), name_text()).prop_map(|(number, name)| Record::Mx(number, name)),
        (name_text(), name_text(), any::<[u32; 5]>()).prop_map(|(a, b, c)| Record::Soa(a, b, c)),
    ]
}

fn same(ours: &Record, theirs: &RData) -> bool {
    let name = |ours: &String, theirs: &TheirName| {
        TheirName::from_ascii(ours.to_lowercase()).unwrap() == *theirs
    };
    match (ours, theirs) {
        (Record::A(bits), RData::A(address)) => address.0.to_bits() == *bits,
        (Record::Aaaa(bits), RData::AAAA(address)) => address.0.to_bits() == *bits,
        (Record::Txt(text), RData::TXT(texts)) => texts.txt_data.concat() == *text,
        (Record::Ns(host), RData::NS(theirs)) => name(host, &theirs.0),
        (Record::Mx(preference, host), RData::MX(theirs)) => {
            *preference == theirs.preference && name(host, &theirs.exchange)
        }
        (Record::Soa(server, mailbox, numbers), RData::SOA(soa)) => {
            let [serial, refresh, retry, expire, minimum] = *numbers;
            name(server, &soa.mname)
                && name(mailbox, &soa.rname)
                && [serial, refresh, retry, expire, minimum]
                    == [
                        soa.serial,
                        soa.refresh as u32,
                        soa.retry as u32,
                        soa.expire as u32,
                        soa.minimum,
                    ]
        }
        _ => false,
    }
}

fn write(response: &mut Response<'_, '_>, owner: Owner<'_>, record: &Record) {
    let name = |text: &String| Name::parse(text).unwrap();
    let section = Section::Answer;
    match record {
        Record::A(bits) => {
            let data = Data::A(Ipv4Addr::from_bits(*bits));
            response.record(section, owner, 7, &data);
        }
        Record::Aaaa(bits) => {
            let data = Data::Aaaa(Ipv6Addr::from_bits(*bits));
            response.record(section, owner, 7, &data);
        }
        Record::Txt(text) => response.record(section, owner, 7, &Data::Txt(text)),
        Record::Ns(host) => response.record(section, owner, 7, &Data::Ns(&name(host))),
        Record::Mx(preference, host) => {
            response.record(section, owner, 7, &Data::Mx(*preference, &name(host)));
        }
        Record::Soa(server, mailbox, numbers) => {
            let (server, mailbox) = (name(server), name(mailbox));
            let data = Data::Soa {
                server: &server,
                mailbox: &mailbox,
                numbers: *numbers,
            };
            response.record(section, owner, 7, &data);
        }
    }
}

proptest! {
    #[test]
    fn their_queries_are_read(
        name in name_text(), kind in 1_u16..250, payload: u16, dnssec_ok: bool, has_edns: bool,
    ) {
        prop_assume!(kind != 41);
        let mut edns = with(payload, &[(10, b"abcdefgh")]);
        edns.set_dnssec_ok(dnssec_ok);
        let packet = their_query(&name, kind, has_edns.then_some(edns));
        let query = query(&packet);
        prop_assert_eq!(query.kind(), Type(kind));
        prop_assert_eq!(query.has_edns(), has_edns);
        prop_assert_eq!(query.cookies().is_some(), has_edns);
        prop_assert!(Name::parse(&name).unwrap().prefix_of(query.name()) == Some(&[]));
    }

    #[test]
    fn our_responses_are_read(
        asked in name_text(), apex in name_text(), records in prop::collection::vec(record(), 0..8),
        limit in 512_usize..4096,
    ) {
        let packet = plain(&asked, Type::A);
        let query = query(&packet);
        let mut memory = [0; 4096];
        let apex = Name::parse(&apex).unwrap();
        let mut response = Response::new(&query, &mut memory, limit);
        for (place, record) in records.iter().enumerate() {
            let owner = if place % 2 == 0 { Owner::Question } else { Owner::Name(&apex) };
            write(&mut response, owner, record);
        }
        let truncated = response.is_truncated();
        let length = response.finish(None);
        prop_assert!(length <= limit);
        // The question comes back octet for octet.
        prop_assert_eq!(&memory[HEADER..packet.len()], &packet[HEADER..]);
        let message = Message::from_vec(&memory[..length]).unwrap();
        prop_assert_eq!(message.metadata.truncation, truncated);
        if !truncated {
            prop_assert_eq!(message.answers.len(), records.len());
            for (place, (ours, theirs)) in records.iter().zip(&message.answers).enumerate() {
                prop_assert!(same(ours, &theirs.data), "{:?} {:?}", ours, theirs);
                let owner = if place % 2 == 0 { asked.clone() } else { format!("{apex}.") };
                prop_assert_eq!(&theirs.name, &TheirName::from_ascii(owner).unwrap());
                prop_assert_eq!(theirs.ttl, 7);
            }
        }
    }

    #[test]
    fn whatever_comes_is_answered_readably_or_not_at_all(
        mut packet in prop::collection::vec(any::<u8>(), 0..120),
        sound in any::<bool>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        if sound {
            packet = their_query("2.0.0.127.bl.example.org.", 1, Some(with(1232, &[(10, b"abcdefgh")])));
            for (place, octet) in changes {
                let place = place.index(packet.len());
                packet[place] = octet;
            }
        }
        let mut memory = [0; 512];
        let length = match read(&packet) {
            Received::NoQuery => {
                prop_assert!(packet.len() < HEADER || packet[2] & 0x80 != 0);
                return Ok(());
            }
            Received::Error(reply) => reply.write(&mut memory),
            Received::Query(query) => {
                let mut response = Response::new(&query, &mut memory, query.datagram_max());
                response.record(Section::Answer, Owner::Question, 1, &Data::Hinfo);
                response.finish(query.cookies().map(|_| [1; 16]))
            }
        };
        prop_assert!(length >= HEADER);
        let question = memory.get(HEADER..length).unwrap_or_default();
        prop_assert_eq!(&memory[..2], &packet[..2]);
        prop_assert!(memory[2] & 0x80 != 0);
        // Hickory refuses some labels and classes that the DNS allows; messages that hickory reads have to be right.
        if let Ok(message) = Message::from_vec(&memory[..length]) {
            prop_assert!(message.queries.len() <= 1 && question.len() < 512);
        }
    }
}

#[test]
fn the_answer_to_every_type_is_one_record() {
    let packet = plain("a.test.", Type::ANY);
    let query = query(&packet);
    let mut memory = [0; 512];
    let mut response = Response::new(&query, &mut memory, 512);
    response.record(Section::Answer, Owner::Question, 3600, &Data::Hinfo);
    let length = response.finish(None);
    let message = Message::from_vec(&memory[..length]).unwrap();
    assert_eq!(message.answers[0].record_type(), RecordType::HINFO);
}
