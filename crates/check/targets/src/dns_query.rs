//! Packets to the server of block lists: every query has at most one answer, which fits, repeats the question, and can be
//! read; everything else has none.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use vere_dns::{Cookies, DATAGRAM_MAX, HEADER, Labels, Name, Received, read};
use vere_dnsbl::data::{Kind, ZoneData};
use vere_dnsbl::zone::{Defaults, Zone, Zones};

/// A question about a listed address, about a map with options, and for all types.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x017\x012\x010\x03192\x02bl\x04test\0\0\x01\0\x01",
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x010\x012\x010\x03192\x02bl\x04test\0\0\x1c\0\x01\0\0\x29\x04\xd0\0\0\x80\0\0\x0c\0\x0a\0\x08abcdefgh",
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x02bl\x04test\0\0\xff\0\x01",
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x012\x010\x010\x03127\x02bl\x04test\0\0\x10\0\x01",
];

static ZONES: LazyLock<Option<Zones>> = LazyLock::new(|| {
    let mut builder = ZoneData::build();
    let list = ":127.0.0.3:Listed $\n192.0.2.7\n192.0.2.128/25\n";
    builder.add(Kind::Ip4Set, "list", list.as_bytes()).ok()?;
    builder
        .add(Kind::DnSet, "names", &b".example.com\n"[..])
        .ok()?;
    let name = |text| Name::parse(text).ok();
    let defaults = Defaults {
        ttl: 2_100,
        negative_ttl: 300,
        servers: vec![name("ns.bl.test")?],
        mailbox: name("postmaster.bl.test")?,
        test_entries: true,
    };
    let zone = Zone::new(name("bl.test")?, builder.finish(), &defaults, 1);
    Some(Zones::new(vec![Arc::new(zone)]))
});

pub(super) fn packet(octets: &[u8]) {
    let Some(zones) = &*ZONES else {
        panic!("the zone of the target cannot be made");
    };
    let mut memory = [0; DATAGRAM_MAX];
    let (length, limit) = match read(octets) {
        Received::NoQuery => {
            let is_query = octets.get(2).is_some_and(|flags| flags & 0x80 == 0);
            assert!(octets.len() < HEADER || !is_query);
            return;
        }
        Received::Error(reply) => (reply.write(&mut memory), DATAGRAM_MAX),
        Received::Query(query) => {
            let limit = query.datagram_max();
            let (response, _) = zones.answer(&query, &mut memory, limit, 0);
            let address = IpAddr::from([192, 0, 2, 1]);
            let cookie = query.cookies().map(|(own, shown)| {
                let state = Cookies::new([7; 16]).check(own, shown, address, 1_000_000);
                assert!(!state.is_proven(), "a guessed cookie");
                state.answer()
            });
            let length = response.finish(cookie.flatten());
            let name = query.name();
            assert!(
                memory
                    .get(HEADER..)
                    .is_some_and(|rest| rest.starts_with(name))
            );
            (length, limit)
        }
    };
    assert!((HEADER..=limit).contains(&length), "{length} octets");
    assert_eq!(memory.get(..2), octets.get(..2));
    assert!(memory.get(2).is_some_and(|flags| flags & 0x80 != 0));
    let answer = memory.get(..length).unwrap_or_default();
    assert!(matches!(read(answer), Received::NoQuery));
    assert_eq!(end(answer), Some(length));
}

/// Where the records of a response end, by their lengths.
fn end(answer: &[u8]) -> Option<usize> {
    let count = |place: usize| {
        let octets = answer.get(place..place + 2)?;
        Some(usize::from(octets[0]) << 8 | usize::from(octets[1]))
    };
    let mut at = HEADER;
    for _ in 0..count(4)? {
        at = name_end(answer, at)? + 4;
    }
    for _ in 0..count(6)? + count(8)? + count(10)? {
        at = name_end(answer, at)?;
        at += 10 + count(at + 8)?;
    }
    Some(at)
}

fn name_end(answer: &[u8], at: usize) -> Option<usize> {
    let name = answer.get(at..)?;
    let mut labels = Labels::of(name);
    loop {
        let place = at + name.len() - labels.rest().len();
        match labels.rest().first()? {
            0 => return Some(place + 1),
            0xc0.. => return Some(place + 2),
            _ => labels.next()?,
        };
    }
}
