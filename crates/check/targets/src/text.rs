//! Decoders of lines and headers: replies, commands, addresses, PROXY.

use vere_smtp::address::{AddrSpec, Domain, DomainOrLiteral, ForwardPath, ReversePath};
use vere_smtp::command::{Command, Workarounds};
use vere_smtp::proxy::{self, Decoder, HEADER_LENGTH_MAX};
use vere_smtp::reply::{Reply, ReplyParser};

use crate::choice::choice;

pub(crate) const REPLY_SEEDS: &[&[u8]] = &[
    b"250-mx.example\r\n250-SIZE 100\r\n250 DSN\r\n",
    b"550 5.1.1 no such mailbox\r\n421 4.3.2 bye\r\n334 \r\n",
];

pub(crate) const COMMAND_SEEDS: &[&[u8]] = &[
    b"\x00MAIL FROM:<a@b.example> SIZE=10 BODY=8BITMIME SMTPUTF8 RET=FULL ENVID=a+2Bb AUTH=<>",
    b"\x00RCPT TO:<\"a b\"@[IPv6:::1]> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;a+20b@c.example",
    b"\x07XCLIENT NAME=a.example ADDR=IPV6:::1 PORT=25 PROTO=ESMTP HELO=b LOGIN=c",
    b"\x00BDAT 100 LAST",
];

pub(crate) const ADDRESS_SEEDS: &[&[u8]] = &[
    b"<@a.example,@b.example:\"x \\\" y\"@[192.0.2.1]>",
    b"<dd.e+f@xn--a.example>",
    b"<Postmaster>",
];

pub(crate) const PROXY_SEEDS: &[&[u8]] = &[
    b"PROXY TCP4 192.0.2.7 192.0.2.25 4711 25\r\nEHLO",
    b"PROXY UNKNOWN x y\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc0\0\x02\x19\x12\x67\0\x19",
];

/// Replies mean the same in any pieces, and encode to equal replies.
pub(crate) fn reply(octets: &[u8]) {
    let whole = replies(octets, octets.len().max(1));
    assert_eq!(whole, replies(octets, 1));
    for reply in whole.0 {
        let mut encoded = Vec::new();
        reply.encode(&mut encoded);
        let (again, failed) = replies(&encoded, encoded.len());
        assert!(!failed && again.len() == 1, "{reply:?}");
        assert_eq!(again[0].code, reply.code);
    }
}

fn replies(octets: &[u8], piece: usize) -> (Vec<Reply>, bool) {
    let (mut parser, mut replies) = (ReplyParser::default(), Vec::new());
    for piece in octets.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            match parser.parse(rest) {
                Ok((taken, reply)) => {
                    assert!(taken > 0 && taken <= rest.len());
                    rest = &rest[taken..];
                    replies.extend(reply);
                }
                Err(_) => return (replies, true),
            }
        }
    }
    (replies, false)
}

/// Decoded MAIL and RCPT commands encode to equal commands.
pub(crate) fn command(octets: &[u8]) {
    let (lenient, line) = choice(octets);
    let workarounds = Workarounds {
        space_before_path: lenient & 1 != 0,
        path_without_brackets: lenient & 2 != 0,
        underscore_in_helo: lenient & 4 != 0,
    };
    if line.iter().any(|octet| matches!(octet, b'\r' | b'\n' | 0)) {
        return;
    }
    let mut encoded = Vec::new();
    match Command::parse(line, workarounds) {
        Ok(Command::Mail(mail)) => {
            mail.encode(&mut encoded);
            let again = Command::parse(one_line(&encoded), Workarounds::default());
            assert!(
                matches!(again, Ok(Command::Mail(again)) if again == mail),
                "{mail:?}"
            );
        }
        Ok(Command::Rcpt(rcpt)) => {
            rcpt.encode(&mut encoded);
            let again = Command::parse(one_line(&encoded), Workarounds::default());
            assert!(
                matches!(again, Ok(Command::Rcpt(again)) if again == rcpt),
                "{rcpt:?}"
            );
        }
        Ok(_) | Err(_) => {}
    }
}

/// Takes off CRLF, which must be the only CRLF: otherwise a parameter would smuggle a command.
fn one_line(encoded: &[u8]) -> &[u8] {
    let Some(line) = encoded.strip_suffix(b"\r\n") else {
        panic!("encoded without CRLF");
    };
    assert!(
        !line.iter().any(|octet| matches!(octet, b'\r' | b'\n' | 0)),
        "encoded a line end"
    );
    line
}

/// Parsed addresses are written unchanged, and have no octets that end a line or a path.
pub(crate) fn address(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    if let Ok(path) = ReversePath::parse(text) {
        assert_eq!(ReversePath::parse(&path.to_string()).as_ref(), Ok(&path));
        path.address()
            .iter()
            .for_each(|address| check_address(address));
    }
    if let Ok(path) = ForwardPath::parse(text) {
        assert_eq!(ForwardPath::parse(&path.to_string()).as_ref(), Ok(&path));
        path.address()
            .iter()
            .for_each(|address| check_address(address));
    }
    if let Ok(address) = AddrSpec::parse(text) {
        check_address(&address);
    }
    if let Ok(domain) = Domain::parse(text) {
        assert_eq!(Domain::parse(domain.as_str()).as_ref(), Ok(&domain));
    }
    if let Ok(name) = DomainOrLiteral::parse(text) {
        assert_eq!(
            DomainOrLiteral::parse(&name.to_string()).as_ref(),
            Ok(&name)
        );
    }
}

fn check_address(address: &AddrSpec) {
    assert!(
        !address.as_str().chars().any(char::is_control),
        "{address:?}"
    );
    assert!(
        !address.domain().contains(['<', '>', ' ', '@', '/']),
        "{address:?}"
    );
    let again = AddrSpec::new(&address.local_part_unquoted(), address.domain());
    assert_eq!(again.as_ref(), Ok(address));
}

/// A header means the same in any pieces, and ends at its length.
pub(crate) fn proxy(octets: &[u8]) {
    let mut whole = Decoder::default();
    let result = whole.input(octets);
    let mut pieces = Decoder::default();
    let mut taken = 0;
    let mut found = Ok(None);
    for octet in octets {
        match pieces.input(&[*octet]) {
            Ok((octets, header)) => {
                taken += octets;
                found = Ok(header);
                if header.is_some() {
                    break;
                }
            }
            Err(error) => {
                found = Err(error);
                break;
            }
        }
    }
    match result {
        Ok((octets, header)) => {
            assert_eq!(found, Ok(header));
            assert_eq!(taken, octets);
        }
        Err(_) => assert!(found.is_err()),
    }
    if let Ok(Some((_, length))) = proxy::decode(octets) {
        assert!(length <= octets.len() && length <= HEADER_LENGTH_MAX);
    }
}
