use super::*;
use crate::format::bounds::MAIL_OCTETS_MAX;
use crate::format::head::{Head, Kind};
use crate::format::ids::{MailId, PackNumber, VolumeId};

fn subject() -> Subject {
    let head = Head {
        kind: Kind::Commit,
        volume: VolumeId(*b"\x3f\x9c\x0a\x11............"),
        mail: MailId([0xab; 16]),
        epoch: 1,
        group: 0,
        frames: 1,
        last_sealed_len: 20,
        pack: PackNumber::new(1, 2).unwrap(),
    };
    Subject::of(&head, Some(MailId::NONE), Some(1))
}

#[test]
fn a_whole_mail() {
    let date = Timestamp::from_millis(1_790_000_000_000);
    let mail = wrap(&subject(), date, Encoding::EightBit, b"VEREFS\x00\x09");
    let expected = "From: vere fs <fs@verefs.invalid>\r\n\
        Date: Mon, 21 Sep 2026 14:13:20 +0000\r\n\
        Subject: verefs1 v3f9c0a11 kcommit iabababababababababababababababab \
        p00000000000000000000000000000000 g000000000001 w0001 s000000000002 r0000\r\n\
        Message-ID: <abababababababababababababababab.commit.3f9c0a11@verefs.invalid>\r\n\
        MIME-Version: 1.0\r\n\
        Content-Type: application/octet-stream\r\n\
        Content-Transfer-Encoding: 8bit\r\n\r\n\
        \x02XGTGHU\x02\x0b\r\n";
    assert_eq!(String::from_utf8(mail).unwrap(), expected);
    let coded = wrap(&subject(), date, Encoding::Base64, b"VEREFS\x00\x09");
    let text = String::from_utf8(coded).unwrap();
    let expected = "\r\nContent-Transfer-Encoding: base64\r\n\r\nVkVSRUZTAAk=\r\n";
    assert!(text.ends_with(expected), "{text}");
}

/// RFC 5322 section 2.1.1, RFC 2045 section 2.8, RFC 3501 section 4.3.1.
#[test]
fn every_mail_is_one_that_servers_take() {
    let body: Vec<u8> = (0..MAIL_OCTETS_MAX).map(|at| (at * 7 / 3) as u8).collect();
    for encoding in [Encoding::EightBit, Encoding::Base64] {
        let mail = wrap(&subject(), Timestamp::ZERO, encoding, &body);
        let end = mail
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        assert!(mail[..end].is_ascii() && end < HEADER_OCTETS);
        assert!(!mail.contains(&0));
        for line in mail.split_inclusive(|octet| *octet == b'\n') {
            let line = line.strip_suffix(b"\r\n").unwrap();
            assert!(line.len() <= 998 && !line.contains(&b'\r'));
            assert!(!line.ends_with(b" ") && !line.ends_with(b"\t"));
        }
        assert_eq!(unwrap(&mail[end + 4..], encoding), Ok(body.clone()));
    }
}
