use std::net::SocketAddr;

use proptest::prelude::{any, prop, proptest};

use super::v2::{SIGNATURE, crc32c};
use super::{Decoder, HEADER_LENGTH_MAX, Header, ProxyError, decode};

fn proxied(source: &str, destination: &str) -> Header {
    let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
    Header::Proxied {
        source: parse(source),
        destination: parse(destination),
    }
}

/// A header of version 2 with the length that fits.
fn binary(version_command: u8, transport: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[version_command, transport], &length, body].concat()
}

const INET: &[u8] = &[192, 0, 2, 7, 198, 51, 100, 25, 0x12, 0x67, 0, 25];

/// Section 2.1: the longest line of each protocol, and one that a sender may use.
#[test]
fn lines_of_the_specification() {
    for (line, is) in [
        (
            "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
            proxied("255.255.255.255:65535", "255.255.255.255:65535"),
        ),
        (
            "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            proxied(
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
                "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
            ),
        ),
        (
            "PROXY TCP6 ::1 2001:db8::1 0 25\r\n",
            proxied("[::1]:0", "[2001:db8::1]:25"),
        ),
        ("PROXY UNKNOWN\r\n", Header::Unknown),
        (
            "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            Header::Unknown,
        ),
        (
            "PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n",
            proxied("192.168.0.1:56324", "192.168.0.11:443"),
        ),
    ] {
        assert_eq!(
            decode(line.as_bytes()),
            Ok(Some((is, line.len()))),
            "{line}"
        );
    }
}

#[test]
fn other_lines_are_refused() {
    for (line, is) in [
        ("EHLO a\r\n", ProxyError::NoSignature),
        ("PROXYTCP4\r\n", ProxyError::NoSignature),
        (
            "proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
            ProxyError::NoSignature,
        ),
        (
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n",
            ProxyError::Line("protocol"),
        ),
        (
            "PROXY TCP4 1.2.3.4 ::1 1 1\r\n",
            ProxyError::Line("address"),
        ),
        (
            "PROXY TCP4 1.2.3.04 1.2.3.4 1 1\r\n",
            ProxyError::Line("address"),
        ),
        (
            "PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n",
            ProxyError::Line("address"),
        ),
        (
            "PROXY TCP4  1.2.3.4 1.2.3.4 1 1\r\n",
            ProxyError::Line("address"),
        ),
        (
            "PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n",
            ProxyError::Line("port"),
        ),
        (
            "PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n",
            ProxyError::Line("port"),
        ),
        (
            "PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n",
            ProxyError::Line("port"),
        ),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", ProxyError::Line("port")),
        (
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 1 \r\n",
            ProxyError::Line("end"),
        ),
        (
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n",
            ProxyError::Line("line end"),
        ),
        ("PROXY UNKNOWN \0\r\n", ProxyError::Line("character")),
        (
            &format!("PROXY UNKNOWN {}\r\n", "x".repeat(92)),
            ProxyError::TooLong(107),
        ),
    ] {
        assert_eq!(decode(line.as_bytes()), Err(is), "{line}");
    }
    let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(91));
    assert_eq!(decode(longest.as_bytes()), Ok(Some((Header::Unknown, 107))));
}

#[test]
fn binary_headers() {
    let source = "192.0.2.7:4711";
    for (version_command, transport, body, is) in [
        (
            0x21,
            0x11,
            INET.to_vec(),
            proxied(source, "198.51.100.25:25"),
        ),
        (
            0x21,
            0x21,
            [
                &[0x20, 1, 0xd, 0xb8][..],
                &[0; 11],
                &[1],
                &[0; 15],
                &[2],
                &[0, 7, 0, 25],
            ]
            .concat(),
            proxied("[2001:db8::1]:7", "[::2]:25"),
        ),
        // NOOP and an unknown record behind the addresses.
        (
            0x21,
            0x11,
            [INET, &[4, 0, 0, 0xE0, 0, 2, 9, 9]].concat(),
            proxied(source, "198.51.100.25:25"),
        ),
        (0x20, 0x00, Vec::new(), Header::Local),
        (0x20, 0xFF, b"whatever".to_vec(), Header::Local),
        (0x21, 0x00, Vec::new(), Header::Unknown),
        (0x21, 0x31, vec![0; 216], Header::Unknown),
    ] {
        let header = binary(version_command, transport, &body);
        assert_eq!(decode(&header), Ok(Some((is, header.len()))), "{header:?}");
    }
}

#[test]
fn other_binary_headers_are_refused() {
    for (header, is) in [
        (binary(0x11, 0x11, INET), ProxyError::Version(1)),
        (binary(0x22, 0x11, INET), ProxyError::Command(2)),
        (binary(0x21, 0x12, INET), ProxyError::Transport(0x12)),
        (binary(0x21, 0x41, INET), ProxyError::Transport(0x41)),
        (binary(0x21, 0x13, INET), ProxyError::Transport(0x13)),
        (binary(0x21, 0x11, &INET[..11]), ProxyError::Length),
        (binary(0x21, 0x21, INET), ProxyError::Length),
        (binary(0x21, 0x31, &[0; 215]), ProxyError::Length),
        (
            binary(0x21, 0x11, &[INET, &[4, 0]].concat()),
            ProxyError::Length,
        ),
        (
            binary(0x21, 0x11, &[INET, &[4, 0, 1]].concat()),
            ProxyError::Length,
        ),
        (
            binary(0x21, 0x00, &[0; HEADER_LENGTH_MAX]),
            ProxyError::TooLong(HEADER_LENGTH_MAX),
        ),
        (
            SIGNATURE.iter().map(|octet| octet ^ 1).collect(),
            ProxyError::NoSignature,
        ),
    ] {
        assert_eq!(decode(&header), Err(is), "{header:?}");
    }
}

/// RFC 3720 appendix B.4, and the record itself.
#[test]
fn checksums() {
    assert_eq!(crc32c([0; 32].iter()), 0x8A91_36AA);
    assert_eq!(crc32c([0xFF; 32].iter()), 0x62A8_AB43);
    assert_eq!(crc32c((0..32).collect::<Vec<u8>>().iter()), 0x46DD_794E);

    let mut header = binary(
        0x21,
        0x11,
        &[INET, &[3, 0, 4, 0, 0, 0, 0, 4, 0, 1, 9]].concat(),
    );
    let at = header.len() - 8;
    let sum = crc32c(header.iter()).to_be_bytes();
    header[at..at + 4].copy_from_slice(&sum);
    assert!(matches!(
        decode(&header),
        Ok(Some((Header::Proxied { .. }, _)))
    ));
    // The record's own type is left alone: as another one it would not be checked.
    for flipped in (SIGNATURE.len() + 4..header.len()).filter(|flipped| *flipped != at - 3) {
        let mut damaged = header.clone();
        damaged[flipped] ^= 1;
        assert!(
            !matches!(decode(&damaged), Ok(Some((Header::Proxied { .. }, _)))),
            "{flipped}"
        );
    }
    let twice = [INET, &[3, 0, 4, 1, 2, 3, 4]].concat();
    assert_eq!(
        decode(&binary(0x21, 0x11, &twice)),
        Err(ProxyError::Checksum)
    );
    let short = [INET, &[3, 0, 3, 1, 2, 3]].concat();
    assert_eq!(
        decode(&binary(0x21, 0x11, &short)),
        Err(ProxyError::Checksum)
    );
}

#[test]
fn every_cut_gives_the_same() {
    let line = b"PROXY TCP4 192.0.2.7 198.51.100.25 4711 25\r\n".to_vec();
    for header in [line, binary(0x21, 0x11, INET)] {
        let behind = [&header[..], b"EHLO a\r\n"].concat();
        let whole = Decoder::default().input(&behind).unwrap();
        assert_eq!(
            whole,
            (
                header.len(),
                Some(proxied("192.0.2.7:4711", "198.51.100.25:25"))
            )
        );
        for cut in 0..header.len() {
            let mut decoder = Decoder::default();
            assert_eq!(decoder.input(&behind[..cut]), Ok((cut, None)));
            assert_eq!(decoder.input(&behind[cut..]), Ok((whole.0 - cut, whole.1)));
        }
    }
}

proptest! {
    #[test]
    fn hostile_octets_are_bounded(octets in prop::collection::vec(any::<u8>(), 0..400), kind in 0..3_u8) {
        let octets = match kind {
            0 => octets,
            1 => [b"PROXY ", &octets[..]].concat(),
            _ => [SIGNATURE, &[0x21], &octets[..]].concat(),
        };
        let mut decoder = Decoder::default();
        for octet in &octets {
            match decoder.input(&[*octet]) {
                Ok((taken, None)) => assert_eq!(taken, 1),
                Ok((_, Some(_))) | Err(_) => break,
            }
        }
        if let Ok(Some((_, length))) = decode(&octets) {
            assert!(length <= octets.len());
        }
    }
}
