//! Packets octet by octet, where an independent implementation cannot or will not write them.

use std::net::Ipv4Addr;

use super::{error, query};
use crate::*;

/// A query for the A records of `a.test`, with records of the additional section.
fn packet(records: &[&[u8]]) -> Vec<u8> {
    let count = u8::try_from(records.len()).unwrap();
    let mut packet = b"\x12\x34\x01\0\0\x01\0\0\0\0\0".to_vec();
    packet.push(count);
    packet.extend(b"\x01a\x04test\0\0\x01\0\x01");
    packet.extend(records.concat());
    packet
}

/// An OPT record with flags and options (RFC 6891 section 6.1.2).
fn opt(flags: u8, options: &[u8]) -> Vec<u8> {
    let length = u8::try_from(options.len()).unwrap();
    let mut record = vec![0, 0, 41, 4, 0xd0, 0, 0, flags, 0, 0, length];
    record.extend(options);
    record
}

/// A record of a type that nobody knows, with an owner and data.
const UNKNOWN: &[u8] = b"\x01x\0\xff\x00\0\x01\0\0\0\0\0\x03abc";

fn written(packet: &[u8], write: impl FnOnce(&mut Response<'_, '_>)) -> Vec<u8> {
    let query = query(packet);
    let mut memory = vec![0; 1 << 16];
    let mut response = Response::new(&query, &mut memory, 1 << 16);
    write(&mut response);
    let length = response.finish(None);
    memory.truncate(length);
    memory
}

#[test]
fn records_of_unknown_types_are_passed_over_and_counted() {
    let opt = opt(0, &[]);
    for records in [
        &[UNKNOWN][..],
        &[UNKNOWN, &opt],
        &[&opt, UNKNOWN, UNKNOWN, UNKNOWN],
    ] {
        let has_edns = records.contains(&&opt[..]);
        assert_eq!(query(&packet(records)).has_edns(), has_edns);
    }
    assert_eq!(error(&packet(&[UNKNOWN; 5])).0, Rcode::FormErr);
}

/// RFC 6891 section 6.1.1.
#[test]
fn a_query_has_one_opt_record_of_the_root() {
    let opt = opt(0, &[]);
    assert_eq!(error(&packet(&[&opt, &opt])).0, Rcode::FormErr);
    let named = [b"\x01x", &opt[..]].concat();
    assert_eq!(error(&packet(&[&named])).0, Rcode::FormErr);
}

/// RFC 7873 section 5.2: further cookies, and options of other codes, do not count.
#[test]
fn the_first_cookie_counts_wherever_it_stands() {
    let other = b"\0\x4d\0\x07unknown";
    let first = b"\0\x0a\0\x08abcdefgh";
    let second = b"\0\x0a\0\x08ABCDEFGH";
    let broken = b"\0\x0a\0\x01x";
    for options in [
        &[&other[..], first][..],
        &[first, other],
        &[first, second],
        &[other, first, broken],
    ] {
        let packet = packet(&[&opt(0, &options.concat())]);
        assert_eq!(query(&packet).cookies(), Some((b"abcdefgh", None)));
    }
    let packet = packet(&[&opt(0, other)]);
    assert_eq!(query(&packet).cookies(), None);
}

#[test]
fn a_query_of_every_class_is_answered() {
    let mut packet = packet(&[]);
    let end = packet.len();
    packet[end - 2..].copy_from_slice(&Class::ANY.0.to_be_bytes());
    assert_eq!(query(&packet).kind(), Type::A);
}

/// RFC 1035 section 4.1.1: the wish for recursion goes back; AA, TC and RA of a query do not.
#[test]
fn flags_of_the_query_that_go_back() {
    for (asked, told) in [(0x00, 0x84), (0x01, 0x85), (0x06, 0x84), (0x07, 0x85)] {
        let mut packet = packet(&[]);
        (packet[2], packet[3]) = (asked, 0x80);
        let response = written(&packet, |_| ());
        assert_eq!(response[2..4], [told, 0], "{asked:x}");
        let response = written(&packet, |response| response.not_authoritative());
        assert_eq!(response[2..4], [told & !0x04, 0], "{asked:x}");
        let response = written(&packet, |response| response.truncate());
        assert_eq!(response[2..4], [told | 0x02, 0], "{asked:x}");
    }
}

/// RFC 3225 section 3: DO goes back as it came; the other flags are zero (RFC 6891 section 6.1.4).
#[test]
fn the_flag_of_signatures_goes_back() {
    for (asked, told) in [(0, 0), (0x80, 0x80), (0x7f, 0), (0xff, 0x80)] {
        let response = written(&packet(&[&opt(asked, &[])]), |_| ());
        let end = response.len();
        assert_eq!(
            response[end - 11..],
            [0, 0, 41, 4, 0xd0, 0, 0, told, 0, 0, 0]
        );
    }
}

#[test]
fn a_response_knows_its_code_and_its_answers() {
    let address = Data::A(Ipv4Addr::LOCALHOST);
    let response = written(&packet(&[]), |response| {
        assert_eq!((response.rcode(), response.answers()), (Rcode::NoError, 0));
        response.set_rcode(Rcode::NxDomain);
        response.record(Section::Answer, Owner::Question, 1, &address);
        response.record(Section::Answer, Owner::Question, 1, &address);
        response.record(Section::Authority, Owner::Question, 1, &address);
        assert_eq!((response.rcode(), response.answers()), (Rcode::NxDomain, 2));
    });
    assert_eq!(response[3..12], [3, 0, 1, 0, 2, 0, 1, 0, 0]);
    let response = written(&packet(&[]), |response| {
        response.record(Section::Answer, Owner::Question, 1, &address);
        response.truncate();
        assert_eq!(response.answers(), 0);
        response.record(Section::Answer, Owner::Question, 1, &address);
    });
    assert_eq!(response[4..12], [0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(response.len(), packet(&[]).len());
}

#[test]
fn a_response_may_fill_its_memory() {
    let packet = packet(&[]);
    let query = query(&packet);
    let mut memory = [0; 512];
    let whole = packet.len() + 16;
    for (limit, truncated) in [(whole + 1, false), (whole, false), (whole - 1, true)] {
        let mut response = Response::new(&query, &mut memory, limit);
        let address = Data::A(Ipv4Addr::LOCALHOST);
        response.record(Section::Answer, Owner::Question, 1, &address);
        assert_eq!(response.is_truncated(), truncated, "{limit}");
    }
}

/// RFC 1035 section 3.3.14: a TXT record has one string at least; section 3.3: a string has 255 octets at most.
#[test]
fn texts_are_strings_of_255_octets() {
    for (octets, lengths) in [
        (0, &[0][..]),
        (1, &[1]),
        (255, &[255]),
        (256, &[255, 1]),
        (510, &[255, 255]),
    ] {
        let response = written(&packet(&[]), |response| {
            let text = vec![b'x'; octets];
            response.record(Section::Answer, Owner::Question, 1, &Data::Txt(&text));
        });
        let data = &response[packet(&[]).len() + 12..];
        let (mut rest, mut found) = (data, Vec::new());
        while let Some((length, text)) = rest.split_first() {
            found.push(usize::from(*length));
            rest = &text[usize::from(*length)..];
        }
        assert_eq!(found, lengths);
    }
}

/// A pointer to the root would be longer than the root.
#[test]
fn the_root_is_written_as_one_octet() {
    let root = Name::parse(".").unwrap();
    let response = written(&packet(&[]), |response| {
        response.record(Section::Answer, Owner::Name(&root), 1, &Data::Ns(&root));
    });
    let record = b"\0\0\x02\0\x01\0\0\0\x01\0\x01\0";
    assert_eq!(response[packet(&[]).len()..], *record);
}

/// RFC 1035 section 4.1.4: a pointer has 14 bits for its place.
#[test]
fn no_pointer_leads_behind_16_kib() {
    let server = Name::parse("ns.example.net").unwrap();
    let mailbox = Name::parse("hostmaster.ns.example.net").unwrap();
    let data = Data::Soa {
        server: &server,
        mailbox: &mailbox,
        numbers: [1; 5],
    };
    // Where the name of the server begins, and whether the mailbox points there.
    for (place, points) in [(0x3fff, true), (0x4000, false), (0x4001, false)] {
        let response = written(&packet(&[]), |response| {
            // A record of a text has 13 octets beside the text; 12 are in front of the name of the server.
            let octets = place - packet(&[]).len() - 12 - 13;
            for _ in 0..octets / 77 {
                let text = Data::Txt(&[b'x'; 64]);
                response.record(Section::Answer, Owner::Question, 1, &text);
            }
            let text = vec![b'x'; octets % 77];
            response.record(Section::Answer, Owner::Question, 1, &Data::Txt(&text));
            assert_eq!(response.length() + 12, place);
            response.record(Section::Answer, Owner::Question, 1, &data);
        });
        assert_eq!(response[place..place + 16], *server.octets());
        let tail = response.len() - place - 16 - 20;
        assert_eq!(tail, if points { 13 } else { 27 }, "{place:x}");
    }
}

#[test]
fn an_error_needs_memory_for_its_question() {
    let mut packet = packet(&[]);
    let end = packet.len();
    packet[end - 1] = 3;
    let Received::Error(reply) = read(&packet) else {
        panic!("expected an error");
    };
    let mut memory = [0; 64];
    assert_eq!(reply.write(&mut memory[..end]), end);
    assert_eq!(reply.write(&mut memory[..end - 1]), 0);
    assert_eq!(reply.write(&mut memory[..HEADER - 1]), 0);
}

#[test]
fn names_are_shown_without_the_last_dot() {
    for (text, shown) in [
        ("Mail.Example.ORG.", "mail.example.org"),
        ("org", "org"),
        (".", ""),
    ] {
        let name = Name::parse(text).unwrap();
        assert_eq!(name.to_string(), shown);
        assert_eq!(format!("{name:?}"), shown);
    }
    let label = Name::parse("a..b").unwrap_err();
    assert_eq!(
        label.to_string(),
        "expected labels of 1 to 63 bytes between dots"
    );
    let length = Name::parse(&"a.".repeat(128)).unwrap_err();
    assert_eq!(length.to_string(), "expected a name of at most 255 bytes");
}

#[test]
fn a_name_of_the_wire_is_one_whole_name() {
    let whole = Name::of_wire(b"\x02BL\x04test\0").unwrap();
    assert_eq!(whole, Name::parse("bl.test").unwrap());
    for octets in [
        &b""[..],
        b"\x02bl",
        b"\x02bl\x04test",
        b"\x02bl\x04test\0\0",
        b"\xc0\x0c",
    ] {
        assert_eq!(Name::of_wire(octets), None, "{octets:?}");
    }
}

#[test]
fn a_name_below_another_begins_at_a_label() {
    let apex = Name::parse("bl.test").unwrap();
    assert_eq!(apex.prefix_of(b"\x02Bl\x04TEST\0"), Some(&b""[..]));
    assert_eq!(
        apex.prefix_of(b"\x01x\x02bl\x04test\0"),
        Some(&b"\x01x"[..])
    );
    assert_eq!(apex.prefix_of(b"\x04test\0"), None);
    // The octets of the name are the end of one longer label.
    assert_eq!(apex.prefix_of(b"\x09x\x02bl\x04test\0"), None);
}
