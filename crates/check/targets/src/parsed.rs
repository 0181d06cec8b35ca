//! Parse results of messages: a true result is accepted and encodes to an equal result, and every accepted
//! result lies within the message.

use vere_mime::wire::{
    HEAD_OCTETS, Item, Question, Request, Scope, answer, answer_head, found, holds, holds_head,
    plainly_holds, read_request_head, request, texts, texts_head,
};
use vere_mime::{EnvelopeView, Parsed, addr_specs, fields, header, header_len};

use super::choice::choice;

/// The fewest octets of a message in a request.
const ITEM_OCTETS: usize = 13;

/// A message; the record of an empty message; heads of frames; a request about texts; texts; a message whose
/// texts are requested.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\0Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\none\r\n--x--\r\n",
    b"\x01\0\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x02\x02\0\0\0\x02\x81",
    b"\x03\x01\0\0\0X\x7F\0\0\0\0\0\0\0\0\x03\0\0\0\n\nx",
    b"\x04\0\x01\0\0\0X\xFE\xFF",
    b"\x05Subject: =?utf-16?b?/vr9\r\nContent-Type: text/html; charset=iso-2022-jp\r\n\r\n\x1B$B$\"\r\n",
];

/// Takes a message, an alleged parse result, the head of a frame; a request about texts, an alleged answer
/// about texts, or a message whose texts are requested.
pub(super) fn parsed(octets: &[u8]) {
    let (choice, rest) = choice(octets);
    match choice % 6 {
        0 => message(rest),
        1 => record(rest),
        2 => head(rest),
        3 => asked(rest),
        4 => said(rest),
        _ => decoded(rest),
    }
}

fn asked(content: &[u8]) {
    for request in [Request::Texts, Request::Zones, Request::Field] {
        // A valid request gets a readable answer.
        let Ok(frame) = answer(request, content) else {
            continue;
        };
        let read = match request {
            Request::Texts => (0..=content.len() / ITEM_OCTETS)
                .any(|count| texts(&frame[HEAD_OCTETS..], count).is_ok()),
            _ => holds(&frame[HEAD_OCTETS..]).is_ok(),
        };
        assert!(read, "an answer that nobody reads");
    }
}

fn said(content: &[u8]) {
    if let Ok(held) = holds(content) {
        assert_eq!(held.len(), content.len());
    }
    for count in 0..3 {
        let Ok(all) = texts(content, count) else {
            continue;
        };
        let octets: usize = all
            .iter()
            .flat_map(|texts| texts.iter())
            .map(|(_, text)| text.len())
            .sum();
        assert!(all.len() == count && octets <= content.len());
    }
}

/// Answers about a message stay within the limits, and are equal with and without the parse result.
fn decoded(message: &[u8]) {
    // Without octets behind the header, the message is fields alone.
    if message.is_empty() {
        return;
    }
    let record = Parsed::of(message).encode();
    let item = |record| Item {
        zones: 0x7F,
        own: b"Delivered-To: a@b.c\r\n",
        record,
        message,
    };
    let items = [item(record.as_slice()), item(b"")];
    let ask = |question| {
        let frame = request(question, items).unwrap_or_default();
        let (head, content) = frame
            .split_first_chunk()
            .unwrap_or((&[0; HEAD_OCTETS], &[]));
        let (asked, octets) = read_request_head(head).unwrap_or((Request::Texts, 0));
        assert_eq!(octets, content.len());
        answer(asked, content).unwrap_or_default()
    };
    let frame = ask(Question::Texts);
    let (head, content) = frame
        .split_first_chunk()
        .unwrap_or((&[0; HEAD_OCTETS], &[]));
    assert_eq!(texts_head(head, items), Ok(content.len()));
    let all = texts(content, items.len()).unwrap_or_default();
    assert!(matches!(all.as_slice(), [one, other] if one == other && one.complete));
    // A search for a present text finds the text.
    let last = all.iter().flat_map(|texts| texts.iter()).last();
    let what = last.map_or("", |(_, text)| text);
    let frame = ask(Question::Zones(what.as_bytes()));
    let (head, content) = frame
        .split_first_chunk()
        .unwrap_or((&[0; HEAD_OCTETS], &[]));
    assert_eq!(holds_head(head, items.len()), Ok(items.len()));
    assert_eq!(holds(content), Ok(vec![true, true]));
    // The answer without a parser is the same.
    assert_ne!(
        plainly_holds(Question::Zones(what.as_bytes()), &items[0]),
        Some(false)
    );
    let told = plainly_holds(Question::Zones(b"A"), &items[0]);
    let has_it = all
        .first()
        .is_some_and(|texts| texts.iter().any(|(_, text)| text.contains('A')));
    assert!(told.is_none_or(|told| told == has_it));
}

fn message(message: &[u8]) {
    for scope in [Scope::Whole, Scope::Header] {
        let frame = answer(Request::Parse(scope), message).unwrap_or_default();
        let (head, record) = frame.split_at(HEAD_OCTETS);
        let head = head.try_into().unwrap_or_default();
        assert_eq!(answer_head(&head, message.len()), Ok(record.len()));
        assert_eq!(found(record, message), Ok(scope.parse(message)));
    }
    assert!(Parsed::opaque(message).fits(message.len()));
    fields_of(message);
}

/// The fields of a header lie one behind the other, followed by the empty line and no other octets.
fn fields_of(message: &[u8]) {
    let mut walk = fields(message);
    let mut behind = 0;
    for field in walk.by_ref() {
        let begin = message.get(behind..).unwrap_or_default();
        assert!(!field.raw.is_empty() && begin.starts_with(field.raw));
        behind += field.raw.len();
        assert!(addr_specs(field.value).iter().all(|one| !one.is_empty()));
    }
    assert_eq!(header(message).len(), behind);
    assert_eq!(walk.rest(), message.get(behind..).unwrap_or_default());
    let empty_line = message.get(behind..header_len(message));
    assert!(matches!(empty_line, Some(b"" | b"\n" | b"\r\n")));
}

/// The first octet says how long the message is.
fn record(octets: &[u8]) {
    let (length, record) = choice(octets);
    let message = vec![b'a'; usize::from(length)];
    // A message with any alleged result can be searched.
    let item = Item {
        zones: 0x7F,
        own: b"",
        record,
        message: &message,
    };
    let told = plainly_holds(Question::Zones(b"B"), &item);
    assert_ne!(told, Some(true));
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
