//! The octets of a hand-over.

use std::net::{SocketAddr, SocketAddrV6};

use crate::address::{AddrSpec, DomainOrLiteral, ForwardPath, ReversePath};
use crate::command::{BodyType, MailFrom, Notify, Orcpt, RcptTo, Ret, Xtext};
use crate::server::session::{Counts, Forwarded};
use crate::server::{Handover, HandoverError, Peer, TlsInfo};

pub(super) fn encode(handover: &Handover) -> Vec<u8> {
    let mut octets = Vec::new();
    handover.encode(&mut octets);
    octets
}

/// Every field has a value, and no two have the same.
pub(super) fn full() -> Handover {
    let mut mail = MailFrom::new(ReversePath::parse("<a@b.example>").unwrap());
    mail.size = Some(9);
    mail.body = BodyType::EightBitMime;
    mail.smtputf8 = true;
    mail.ret = Some(Ret::Headers);
    mail.envid = Xtext::parse("Q+2B");
    mail.auth = Some(ReversePath::parse("<e@f>").unwrap());
    mail.require_tls = true;
    mail.priority = Some(-3);
    let mut first = RcptTo::new(ForwardPath::parse("<ü@d>").unwrap());
    first.notify = Some(Notify::Never);
    first.orcpt = Orcpt::parse("rfc822;o@d");
    Handover {
        peer: Peer {
            address: "192.0.2.7:4711".parse().unwrap(),
            local: SocketAddr::from(SocketAddrV6::new(
                "2001:db8::1".parse().unwrap(),
                25,
                0x0a0b_0c0d,
                3,
            )),
            name: Some("mx.é".to_owned()),
            tls: Some(TlsInfo {
                version: "TLSv1.3".to_owned(),
                cipher: "AES".to_owned(),
                sni: Some("us".to_owned()),
            }),
            may_relay: true,
            may_auth_in_clear: false,
            may_prioritise: true,
            may_xclient: true,
            tls_available: false,
        },
        helo: DomainOrLiteral::parse("client.example").unwrap(),
        esmtp: true,
        account: Some("tim".to_owned()),
        forwarded: Some(Box::new(Forwarded {
            helo: Some(DomainOrLiteral::parse("[192.0.2.8]").unwrap()),
            esmtp: Some(false),
            login: Some("bob".to_owned()),
        })),
        counts: Counts {
            errors: 1,
            idle_commands: 2,
            auth_failures: 3,
            transactions: 4,
            refusals: 0x0102_0304,
        },
        mail,
        recipients: vec![first, RcptTo::new(ForwardPath::Postmaster)],
        recipients_refused: 5,
        note: 6,
        replies: b"ok\r\n".to_vec(),
    }
}

/// The octets of [`full`], field by field.
const FULL: &[&[u8]] = &[
    &[2, 1 | 4 | 8],
    &[4, 192, 0, 2, 7, 0x67, 0x12],
    &[6, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 25, 0, 0x0d, 0x0c, 0x0b, 0x0a, 3, 0, 0, 0],
    b"\x01\x05\0mx.\xc3\xa9",
    b"\x01\x07\0TLSv1.3\x03\0AES\x01\x02\0us",
    b"\x0e\0client.example\x01",
    b"\x01\x03\0tim",
    b"\x01\x01\x0b\0[192.0.2.8]\x01\x00\x01\x03\0bob",
    &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 4, 3, 2, 1],
    b"\x6c\0MAIL FROM:<a@b.example> SIZE=9 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=Q+2B AUTH=e@f REQUIRETLS MT-PRIORITY=-3",
    &[5, 0, 0, 0, 6],
    &[2, 0],
    b"\x2c\0RCPT TO:<\xc3\xbc@d> NOTIFY=NEVER ORCPT=rfc822;o@d",
    b"\x14\0RCPT TO:<postmaster>",
    b"\x04\0ok\r\n",
];

#[test]
fn golden_octets_of_version_2() {
    let octets = encode(&full());
    assert_eq!(
        octets.escape_ascii().to_string(),
        FULL.concat().escape_ascii().to_string()
    );
    assert_eq!(Handover::decode(&octets), Ok(full()));
}

#[test]
fn encoding_appends() {
    let mut octets = b"before".to_vec();
    full().encode(&mut octets);
    assert_eq!(octets, [b"before", &FULL.concat()[..]].concat());
}

#[test]
fn every_cut_is_an_error() {
    let octets = encode(&full());
    for end in 0..octets.len() {
        let error = Handover::decode(&octets[..end]).unwrap_err();
        assert!(
            matches!(error, HandoverError::Short { .. }),
            "cut at {end}: {error}"
        );
    }
    for more in 1..4 {
        let longer = [&octets[..], &[0, 0, 0][..more]].concat();
        assert_eq!(
            Handover::decode(&longer),
            Err(HandoverError::Trailing(more))
        );
    }
}

/// Another octet in some place is an error, or means something that has exactly that form.
#[test]
fn every_other_octet_is_an_error_or_another_value() {
    let octets = encode(&full());
    let mut accepted = 0;
    for place in 0..octets.len() {
        for flip in 1..=255 {
            let mut other = octets.clone();
            other[place] ^= flip;
            if let Ok(handover) = Handover::decode(&other) {
                assert_ne!(handover, full(), "octet {place}, flipped {flip}");
                assert_eq!(encode(&handover), other, "octet {place}, flipped {flip}");
                accepted += 1;
            }
        }
    }
    assert!(
        accepted > 5_000,
        "addresses and counts have any octets: {accepted}"
    );
}

/// The octets of [`full`] with one part in the place of another.
#[track_caller]
fn with(part: &[u8], other: &[u8]) -> Vec<u8> {
    let octets = FULL.concat();
    let at: Vec<usize> = (0..octets.len())
        .filter(|at| octets[*at..].starts_with(part))
        .collect();
    assert_eq!(at.len(), 1, "{}", part.escape_ascii());
    [&octets[..at[0]], other, &octets[at[0] + part.len()..]].concat()
}

fn string(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    [&length.to_le_bytes()[..], text.as_bytes()].concat()
}

/// A part of [`full`], the octets in its place, and the error.
const OCTETS: &[(&[u8], &[u8], &str)] = &[
    (
        &[2, 13, 4],
        &[1, 13, 4],
        "expected version 2; found version 1",
    ),
    (
        &[2, 13, 4],
        &[2, 32, 4],
        "expected a sum of 1, 2, 4, 8 and 16 in permissions of the client; found 32",
    ),
    (
        &[4, 192],
        &[5, 192],
        "expected 4 or 6 in address of the client; found 5",
    ),
    (
        &[6, 0x20],
        &[0, 0x20],
        "expected 4 or 6 in local address; found 0",
    ),
    (
        b"\x01\x05\0mx",
        b"\x02\x05\0mx",
        "expected 0 or 1 in name of the client; found 2",
    ),
    (
        b"\x03\0AES",
        b"\x03\0A\xffS",
        "expected UTF-8 in TLS cipher suite; found another octet at 1",
    ),
    (
        b"\0\x01\x03\0bob",
        b"\x02\x01\x03\0bob",
        "expected 0 or 1 in XCLIENT PROTO; found 2",
    ),
    (
        &[2, 0, 0x2c],
        &[0, 0, 0x2c],
        "expected at least 1 recipient; found 0",
    ),
    (
        &[2, 0, 0x2c],
        &[0xe9, 3, 0x2c],
        "expected at most 1000 in number of recipients; found 1001",
    ),
    (
        &[2, 0, 0x2c],
        &[0xe8, 3, 0x2c],
        "expected text without control characters in RCPT command; found U+000D",
    ),
    (
        b"ok\r\n",
        b"ok\r\r",
        "expected CRLF at the end of the replies; found other octets",
    ),
    (
        b"ok\r\n",
        b"okx\n",
        "expected CRLF at the end of the replies; found other octets",
    ),
    (
        b"\x04\0ok\r\n",
        &[1, 0x80],
        "expected at most 32768 in replies; found 32769",
    ),
    (
        b"\x04\0ok\r\n",
        &[0, 0x80, 1],
        "expected 32768 octets in replies; found 1",
    ),
    (
        b"ok\r\n",
        b"ok\r\nx",
        "expected the end of the hand-over; found 1 more octets",
    ),
];

const CIPHER: &[u8] = b"\x03\0AES";
const HELO: &[u8] = b"\x0e\0client.example";
const FORWARDED: &[u8] = b"\x0b\0[192.0.2.8]";
const MAIL: &[u8] = FULL[9];
const RCPT: &[u8] = FULL[13];

/// A text of [`full`] with its length, the text in its place, and the error.
const TEXTS: &[(&[u8], &str, &str)] = &[
    (
        CIPHER,
        "A\u{85}",
        "expected text without control characters in TLS cipher suite; found U+0085",
    ),
    (
        HELO,
        "a..b",
        "expected a valid HELO; found: malformed client name: malformed domain",
    ),
    (
        HELO,
        "ü.example",
        "expected a valid HELO; found: malformed client name: malformed domain",
    ),
    (
        HELO,
        "Client.example",
        "expected HELO as this program writes it; found another form",
    ),
    (
        HELO,
        "",
        "expected a valid HELO; found: malformed client name: it is empty",
    ),
    (
        FORWARDED,
        "a_b",
        "expected a valid XCLIENT HELO; found: malformed client name: malformed domain",
    ),
    (
        FORWARDED,
        "[IPv6:1:0:0:0:0:0:0:1]",
        "expected XCLIENT HELO as this program writes it; found another form",
    ),
    (
        MAIL,
        "MAIL FROM:<a@>",
        "expected a valid MAIL command; found: malformed reverse-path: malformed domain",
    ),
    (
        MAIL,
        "MAIL FROM:<a@b> SIZE=",
        "expected a valid MAIL command; found: malformed value of SIZE",
    ),
    (
        MAIL,
        "MAIL FROM:<a@B>",
        "expected MAIL command as this program writes it; found another form",
    ),
    (
        MAIL,
        "RCPT TO:<a@b>",
        "expected MAIL command as this program writes it; found another form",
    ),
    (
        MAIL,
        "MAIL FROM:<a@b>\r\nQUIT",
        "expected text without control characters in MAIL command; found U+000D",
    ),
    (
        RCPT,
        "RCPT TO:<a@b> X",
        "expected a valid RCPT command; found: unknown parameter",
    ),
    (
        RCPT,
        "RCPT TO:<Postmaster>",
        "expected RCPT command as this program writes it; found another form",
    ),
    (
        RCPT,
        "MAIL FROM:<a@b>",
        "expected RCPT command as this program writes it; found another form",
    ),
];

#[track_caller]
fn fails(part: &[u8], other: &[u8], expected: &str) {
    let octets = with(part, other);
    let error = Handover::decode(&octets).map_err(|error| error.to_string());
    assert_eq!(error, Err(expected.to_owned()), "{}", octets.escape_ascii());
}

#[test]
fn errors_say_what_was_expected_and_found() {
    for (part, other, expected) in OCTETS {
        fails(part, other, expected);
    }
    for (part, text, expected) in TEXTS {
        fails(part, &string(text), expected);
    }
    let long = |octets| string(&"x".repeat(octets));
    fails(
        CIPHER,
        &long(1_025),
        "expected at most 1024 in TLS cipher suite; found 1025",
    );
    fails(
        MAIL,
        &long(4_097),
        "expected at most 4096 in MAIL command; found 4097",
    );
    fails(
        MAIL,
        &long(4_096),
        "expected a valid MAIL command; found: command unrecognized",
    );
}

#[test]
fn replies_end_with_an_end_of_line() {
    for replies in ["", "\n", "\r\n", "k\r\n"] {
        let handover = Handover {
            replies: replies.into(),
            ..full()
        };
        assert_eq!(Handover::decode(&encode(&handover)), Ok(handover));
    }
}

#[test]
fn counts_above_the_range_are_the_greatest() {
    let mut handover = full();
    handover.recipients_refused = usize::MAX;
    handover.counts.refusals = usize::MAX;
    let decoded = Handover::decode(&encode(&handover)).unwrap();
    let greatest = usize::try_from(u32::MAX).unwrap();
    assert_eq!(
        (decoded.recipients_refused, decoded.counts.refusals),
        (greatest, greatest)
    );
}

/// The longest commands of all fit.
#[test]
fn the_longest_commands_fit() {
    let name = |labels: usize| [&"x".repeat(63)[..]].repeat(labels).join(".");
    let local = "\"".repeat(255);
    let address = AddrSpec::new(&local, &name(3)).unwrap();
    let mut handover = full();
    handover.mail.reverse_path = address.clone().into();
    handover.mail.auth = Some(AddrSpec::new(&"ü".repeat(127), &name(3)).unwrap().into());
    handover.mail.size = Some(u64::MAX);
    handover.mail.body = BodyType::BinaryMime;
    handover.mail.envid = Xtext::parse(&"x".repeat(100));
    handover.recipients[0].forward_path = address.into();
    handover.recipients[0].orcpt = Orcpt::parse(&format!("rfc822;{}", "x".repeat(493)));
    handover.recipients[0].notify = Some(Notify::On {
        success: true,
        failure: true,
        delay: true,
    });
    assert_eq!(Handover::decode(&encode(&handover)), Ok(handover));
}
