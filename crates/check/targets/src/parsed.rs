//! What is found in messages: what the parser finds is believed and comes back, and what is said to be
//! found and believed lies in the message.

use vere_mime::wire::{HEAD_OCTETS, Scope, answer, answer_head, found, read_request_head};
use vere_mime::{EnvelopeView, Parsed};

use super::choice;

/// A message; a record of one that is empty; heads of frames.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\0Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\none\r\n--x--\r\n",
    b"\x01\0\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x02\x02\0\0\0\x01\x81",
];

/// A message, what is said to be found in one, or the head of a frame.
pub(super) fn parsed(octets: &[u8]) {
    let (choice, rest) = choice(octets);
    match choice % 3 {
        0 => message(rest),
        1 => record(rest),
        _ => head(rest),
    }
}

fn message(message: &[u8]) {
    for scope in [Scope::Whole, Scope::Header] {
        let frame = answer(scope, message);
        let (head, record) = frame.split_at(HEAD_OCTETS);
        let head = head.try_into().unwrap_or_default();
        assert_eq!(answer_head(&head, message.len()), Ok(record.len()));
        assert_eq!(found(record, message), Ok(scope.parse(message)));
    }
    assert!(Parsed::opaque(message).fits(message.len()));
}

/// The first octet says how long the message is.
fn record(octets: &[u8]) {
    let (length, record) = choice(octets);
    let message = vec![b'a'; usize::from(length)];
    let Ok(parsed) = found(record, &message) else {
        return;
    };
    for part in &parsed.parts {
        assert!(part.header.end <= message.len() && part.body.end <= message.len());
        assert!(part.header.start <= part.header.end && part.body.start <= part.body.end);
    }
    assert!(EnvelopeView::read(record).is_ok());
    assert_eq!(found(&parsed.encode(), &message), Ok(parsed));
}

fn head(octets: &[u8]) {
    let Some(head) = octets.first_chunk::<HEAD_OCTETS>() else {
        return;
    };
    let request = read_request_head(head);
    let answer = answer_head(head, octets.len());
    assert!(request.is_err() || answer.is_err(), "a frame of two kinds");
}
