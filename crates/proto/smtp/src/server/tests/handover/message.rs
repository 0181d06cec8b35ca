//! The octets of a received message.

use super::wire::full;
use crate::command::MailFrom;
use crate::server::{HandoverError, Message, Protocol, SessionInfo};

/// The message that the session of [`full`] may bring.
fn message() -> Message {
    let session = full();
    Message {
        session: SessionInfo {
            helo: Some(session.helo),
            address: session.peer.address,
            local: session.peer.local,
            name: session.peer.name,
            tls: session.peer.tls,
            account: session.account,
            protocol: Protocol {
                esmtp: true,
                smtputf8: true,
                tls: true,
                auth: true,
            },
            priority: session.mail.priority,
        },
        reverse_path: session.mail,
        recipients: session.recipients,
        aside: 0,
        body: b"Subject: x\r\n\r\ny\r\n".to_vec(),
    }
}

fn head(message: &Message) -> Vec<u8> {
    let mut head = Vec::new();
    message.encode_head(&mut head);
    head
}

/// The octets of [`message`], field by field.
const HEAD: &[&[u8]] = &[
    &[1],
    b"\x01\x0e\0client.example",
    &[4, 192, 0, 2, 7, 0x67, 0x12],
    &[6, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 25, 0, 0x0d, 0x0c, 0x0b, 0x0a, 3, 0, 0, 0],
    b"\x01\x05\0mx.\xc3\xa9",
    b"\x01\x07\0TLSv1.3\x03\0AES\x01\x02\0us",
    b"\x01\x03\0tim",
    &[15],
    b"\x6c\0MAIL FROM:<a@b.example> SIZE=9 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=Q+2B AUTH=e@f REQUIRETLS MT-PRIORITY=-3",
    &[2, 0],
    b"\x2c\0RCPT TO:<\xc3\xbc@d> NOTIFY=NEVER ORCPT=rfc822;o@d",
    b"\x14\0RCPT TO:<postmaster>",
];

#[test]
fn golden_octets_of_a_message() {
    let octets = head(&message());
    assert_eq!(
        octets.escape_ascii().to_string(),
        HEAD.concat().escape_ascii().to_string()
    );
    assert_eq!(Message::decode(&octets, message().body), Ok(message()));
}

#[test]
fn a_message_has_nothing_that_it_need_not_have() {
    let mut bare = message();
    bare.session = SessionInfo {
        helo: None,
        name: None,
        tls: None,
        account: None,
        protocol: Protocol::default(),
        priority: None,
        ..bare.session
    };
    bare.reverse_path = MailFrom::new(bare.reverse_path.reverse_path);
    assert_eq!(Message::decode(&head(&bare), bare.body.clone()), Ok(bare));
}

#[test]
fn every_cut_and_every_more_of_a_message_is_an_error() {
    let octets = head(&message());
    for end in 0..octets.len() {
        let error = Message::decode(&octets[..end], Vec::new()).unwrap_err();
        assert!(
            matches!(error, HandoverError::Short { .. }),
            "{end}: {error}"
        );
    }
    let longer = [&octets[..], &[0]].concat();
    let error = Message::decode(&longer, Vec::new());
    assert_eq!(error, Err(HandoverError::Trailing(1)));
}

#[test]
fn every_other_octet_of_a_message_is_an_error_or_another_message() {
    let octets = head(&message());
    for place in 0..octets.len() {
        for bit in 0..8 {
            let mut other = octets.clone();
            other[place] ^= 1 << bit;
            if let Ok(decoded) = Message::decode(&other, message().body) {
                assert_eq!(head(&decoded), other, "{place}, {bit}");
            }
        }
    }
}

#[test]
fn a_message_of_another_version_or_protocol_is_refused() {
    let mut octets = head(&message());
    octets[0] = 2;
    assert_eq!(
        Message::decode(&octets, Vec::new()),
        Err(HandoverError::Version {
            expected: 1,
            found: 2
        })
    );
    let place = HEAD[..7].concat().len();
    let mut octets = head(&message());
    octets[place] = 16;
    let error = Message::decode(&octets, Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a sum of 1, 2, 4 and 8 in protocol; found 16"
    );
}
