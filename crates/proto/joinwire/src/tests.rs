//! The octets of tokens and messages, and the bounds of reads, as the documents have them.

use std::io::{self, Cursor};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use vere_units::Secret;

use crate::message::{self, Account, Membership, REPLY_MAX, REQUEST_MAX, Reply, Request};
use crate::wire::{receive_octets, send_octets};
use crate::{Token, TokenError};

fn membership() -> Membership {
    Membership {
        node: "b".to_owned(),
        listen: "192.0.2.2:2600".parse().unwrap(),
        gateway: "gateway".to_owned(),
        certificate: String::new(),
        ca: String::new(),
        key: "0a".repeat(32),
        durability: "synced".to_owned(),
        queues_max: 16,
        groups_max: 4,
        accounts: Vec::new(),
    }
}

/// A token that an operator may have on paper is read by every later version.
#[test]
fn the_octets_of_a_token_stay() {
    let four = Token {
        address: "192.0.2.1:2610".parse().unwrap(),
        pin: [0x11; 32],
        secret: Secret::new([0x22; 32]),
    };
    assert!(four.reveal().starts_with("vere1-BMAAAgEKMhERERERER"));
    let octets = decoded(&four);
    assert_eq!(octets[..7], [4, 192, 0, 2, 1, 0x0A, 0x32]);
    assert_eq!(octets[7..39], [0x11; 32]);
    assert_eq!(octets[39..71], [0x22; 32]);
    assert_eq!(octets.len(), 75);
    let six = Token {
        address: "[2001:db8::1]:1".parse().unwrap(),
        ..four
    };
    let octets = decoded(&six);
    assert_eq!(octets[..4], [16, 0x20, 0x01, 0x0D]);
    assert_eq!(
        (octets[16], &octets[17..19], octets.len()),
        (1, &[0, 1][..], 87)
    );
    assert!(!six.to_string().contains("IiIi") && six.to_string().contains("2001:db8::1"));
}

fn decoded(token: &Token) -> Vec<u8> {
    let text = token.reveal();
    let text = text.strip_prefix("vere1-").unwrap();
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

#[test]
fn a_token_with_a_right_sum_and_another_form_is_damaged() {
    let with_sum = |mut content: Vec<u8>| {
        content.extend(vere_checksum::crc32c(&content).to_be_bytes());
        let text = URL_SAFE_NO_PAD.encode(content);
        format!("vere1-{text}").parse::<Token>()
    };
    let rest = [0; 2 + 32 + 32];
    assert!(with_sum([&[4][..], &[1; 4], &rest].concat()).is_ok());
    assert!(with_sum([&[16][..], &[1; 16], &rest].concat()).is_ok());
    for wrong in [
        [&[5][..], &[1; 5], &rest].concat(),
        [&[4][..], &[1; 4], &rest, &[0]].concat(),
        [&[4][..], &[1; 4], &rest[1..]].concat(),
        [&[255][..], &[1; 4], &rest].concat(),
        vec![4],
        Vec::new(),
    ] {
        assert_eq!(with_sum(wrong), Err(TokenError::Damaged));
    }
}

/// Machines of different versions exchange these texts.
#[test]
fn the_octets_of_messages_stay() {
    let join = Request::Join {
        version: message::VERSION,
        secret: "ab".to_owned(),
        request: "pem".to_owned(),
    };
    let text = r#"{"join":{"version":1,"secret":"ab","request":"pem"}}"#;
    let behind_length = |text: &str| {
        let length = u32::try_from(text.len()).unwrap();
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    };
    assert_eq!(join.encode(), behind_length(text));
    assert_eq!(Request::Done.encode(), behind_length("\"done\""));
    assert_eq!(Reply::Recorded.encode(), behind_length("\"recorded\""));
    let refused = Reply::Refused("no".to_owned());
    assert_eq!(refused.encode(), behind_length(r#"{"refused":"no"}"#));
    let account = Account {
        name: "east".to_owned(),
        makes_groups: true,
        key: "0b".to_owned(),
    };
    let given = Membership {
        key: "0a".to_owned(),
        certificate: "own".to_owned(),
        ca: "ca".to_owned(),
        accounts: vec![account],
        ..membership()
    };
    let text = r#"{"accepted":{"node":"b","listen":"192.0.2.2:2600","gateway":"gateway","certificate":"own","ca":"ca","key":"0a","durability":"synced","queues_max":16,"groups_max":4,"accounts":[{"name":"east","makes_groups":true,"key":"0b"}]}}"#;
    let accepted = Reply::Accepted(Box::new(given));
    assert_eq!(accepted.encode(), behind_length(text));
    assert_eq!(Reply::decode(&behind_length(text)), Some(accepted));
    assert_eq!(Request::decode(&join.encode()), Some(join));
    assert_eq!(Request::decode(b"\0\0\0\x02{}"), None);
}

#[test]
fn lengths_have_their_bounds_exactly() {
    for (max, of) in [(REQUEST_MAX, 8 * 1024), (REPLY_MAX, 256 * 1024)] {
        let mut octets = Vec::new();
        send_octets(&mut octets, &vec![7; of]).unwrap();
        assert_eq!(
            receive_octets(&mut octets.as_slice(), max).unwrap().len(),
            of
        );
        let mut octets = Vec::new();
        send_octets(&mut octets, &vec![7; of + 1]).unwrap();
        let mut stream = Cursor::new(octets);
        let error = receive_octets(&mut stream, max).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        // Nothing was read behind the length.
        assert_eq!(stream.position(), 4);
    }
}
