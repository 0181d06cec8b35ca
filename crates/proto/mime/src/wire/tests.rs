use super::*;
use crate::{DEPTH_MAX, PARTS_MAX, PartKind};
use proptest::prelude::*;

fn asked(scope: Scope, message: &[u8]) -> Result<Parsed, WireError> {
    let head = request_head(scope, message.len()).unwrap();
    assert_eq!(
        read_request_head(&head),
        Ok((Request::Parse(scope), message.len()))
    );
    let frame = answer(Request::Parse(scope), message).unwrap();
    let (head, record) = frame.split_at(HEAD_OCTETS);
    let octets = answer_head(head.try_into().unwrap(), message.len())?;
    assert_eq!(octets, record.len());
    found(record, message)
}

/// A message with a part of every kind.
fn message() -> Vec<u8> {
    "From: Ann <a@b.c>\nSubject: s\nMessage-ID: <1@b>\n\
     Content-Type: multipart/mixed; boundary=x\n\n--x\n\none\n--x\n\
     Content-Type: message/rfc822\n\nSubject: within\n\nbody\n--x--\n"
        .replace('\n', "\r\n")
        .into_bytes()
}

#[test]
fn what_a_parser_finds_is_believed() {
    let message = message();
    assert_eq!(asked(Scope::Whole, &message), Ok(Parsed::of(&message)));
    let header = asked(Scope::Header, &message).unwrap();
    assert_eq!(header.envelope(), Parsed::of(&message).envelope());
    assert_eq!(header.references, Parsed::of(&message).references);
    let [part] = header.parts.as_slice() else {
        panic!("one part: {header:?}")
    };
    assert_eq!(part.kind, PartKind::Single);
    assert_eq!(part.body.end, message.len());
    assert!(message[part.header.clone()].ends_with(b"x\r\n\r\n"));
}

#[test]
fn without_a_parser_a_message_is_one_part_of_octets() {
    for message in [
        &b""[..],
        b"\r\n",
        b"no header",
        b"a: b\n\nc",
        b"a: b\r\n\r\nc\r\n",
    ] {
        let opaque = Parsed::opaque(message);
        assert!(opaque.fits(message.len()), "{opaque:?}");
        assert_eq!(Parsed::decode(&opaque.encode()), Ok(opaque.clone()));
        let (read, part) = (Parsed::of_header(message), &opaque.parts[0]);
        assert_eq!(
            (&read.parts[0].header, &read.parts[0].body),
            (&part.header, &part.body)
        );
        assert_eq!(read.parts[0].lines, part.lines);
        assert_eq!(part.media_type(), (&b"text"[..], &b"plain"[..]));
    }
}

#[test]
fn frames_of_other_kinds_lengths_and_versions_are_refused() {
    let mut head = request_head(Scope::Whole, 5).unwrap();
    assert_eq!(answer_head(&head, 5), Err(WireError::Kind(WHOLE)));
    let [ready @ .., _] = ready(0);
    assert_eq!(answer_head(&ready, 5), Err(WireError::Kind(READY)));
    assert_eq!(read_request_head(&ready), Err(WireError::Kind(READY)));
    head[4] = 1;
    assert_eq!(read_request_head(&head), Err(WireError::Version(1)));
    head[..4].copy_from_slice(&[1, 0, 0, 0]);
    assert_eq!(read_request_head(&head), Err(WireError::Length(1)));
    // More than can be found in so short a message.
    let long = [0, 0, 1, 0, VERSION, FOUND];
    assert_eq!(answer_head(&long, 100), Err(WireError::Length(65_534)));
    assert_eq!(answer_head(&long, 100_000), Ok(65_534));
    assert_eq!(request_head(Scope::Whole, usize::MAX), None);
    assert_eq!(request_head(Scope::Whole, 1 << 32), None);
}

#[test]
fn a_parser_that_is_ready_names_the_layers_of_its_sandbox() {
    let frame = ready(0x55);
    assert_eq!(frame, [3, 0, 0, 0, 3, 128, 0x55]);
    assert_eq!(read_ready(&frame), Ok(0x55));
    let with = |place: usize, octet| {
        let mut other = frame;
        other[place] = octet;
        read_ready(&other)
    };
    assert_eq!(with(0, 2), Err(WireError::Length(0)));
    assert_eq!(with(0, 4), Err(WireError::Length(2)));
    assert_eq!(with(4, 2), Err(WireError::Version(2)));
    assert_eq!(with(5, FOUND), Err(WireError::Kind(FOUND)));
}

/// What a lie is, and how it is told.
type Lie = (&'static str, fn(&mut Parsed));

/// A parser that was taken over says things that no message has in it.
#[test]
fn lies_are_not_believed() {
    let message = message();
    let honest = Parsed::of(&message);
    let lies: [Lie; 14] = [
        ("no parts", |lie| lie.parts.clear()),
        ("a body that goes on", |lie| lie.parts[1].body.end += 1_000),
        ("a body that ends before it begins", |lie| {
            lie.parts[1].body.end = 0
        }),
        ("a message without its end", |lie| {
            lie.parts[0].body.end -= 1
        }),
        ("a header elsewhere", |lie| lie.parts[0].header.start = 1),
        ("a gap behind the header", |lie| {
            lie.parts[1].body.start += 1
        }),
        ("a part before its parent", |lie| {
            lie.parts[1].header.start = 0
        }),
        ("a part in itself", |lie| lie.parts[1].parent = 1),
        ("a part in one that comes later", |lie| {
            lie.parts[1].parent = 3
        }),
        ("a root in another", |lie| lie.parts[0].parent = 1),
        ("too many parts", |lie| {
            let part = lie.parts[1].clone();
            lie.parts.resize(PARTS_MAX + 1, part);
        }),
        ("parts too deep", |lie| {
            lie.parts[3].kind = PartKind::Message;
            let part = lie.parts[3].clone();
            for parent in 3..DEPTH_MAX + 10 {
                let mut part = part.clone();
                part.parent = parent;
                part.header = part.body.clone();
                part.body.start = part.body.end;
                part.lines = 0;
                lie.parts.push(part);
            }
        }),
        ("more lines than octets", |lie| {
            lie.parts[1].lines = 1_000_000
        }),
        ("a preview that steers a terminal", |lie| {
            lie.preview = "\u{1b}[2J".to_owned()
        }),
    ];
    for (what, tell) in lies {
        let mut lie = honest.clone();
        tell(&mut lie);
        assert_eq!(
            found(&lie.encode(), &message),
            Err(WireError::Found),
            "{what}"
        );
    }
    let mut more = honest.encode();
    more.push(0);
    assert_eq!(found(&more, &message), Err(WireError::Found));
    assert_eq!(found(&[], &message), Err(WireError::Found));
}

/// The most that is found in few octets.
#[test]
fn no_honest_answer_is_longer_than_is_believed() {
    let addresses = format!("From: {}\r\n\r\n", "a,".repeat(2_000));
    let parts = format!(
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}",
        "--b\n\n".repeat(1_000)
    );
    let messages = format!(
        "Content-Type: message/rfc822\n\n{}",
        "Content-Type:message/rfc822\n\n".repeat(60)
    );
    let parameters = format!("Content-Type: a/b{}\r\n\r\n", ";a=".repeat(50));
    let references = format!("References: {}\r\n\r\n", "<a>".repeat(60));
    for message in [
        "",
        "a",
        "\n",
        &addresses,
        &parts,
        &messages,
        &parameters,
        &references,
    ] {
        let message = message.as_bytes();
        assert_eq!(asked(Scope::Whole, message), Ok(Parsed::of(message)));
    }
}

proptest! {
    #[test]
    fn whatever_is_found_is_believed(
        pieces in proptest::collection::vec(prop_oneof![
            Just("Content-Type: multipart/mixed; boundary=x\r\n".to_owned()),
            Just("Content-Type: multipart/digest; boundary=y\r\n".to_owned()),
            Just("Content-Type: message/rfc822\r\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("\n".to_owned()),
            Just("--x\r\n".to_owned()),
            Just("--y\r\n".to_owned()),
            Just("--x--\n".to_owned()),
            Just("From: a, b, c\r\n".to_owned()),
            "[ -~\\r\\n]{0,20}",
        ], 0..40)
    ) {
        let message = pieces.concat().into_bytes();
        prop_assert_eq!(asked(Scope::Whole, &message), Ok(Parsed::of(&message)));
        prop_assert_eq!(asked(Scope::Header, &message), Ok(Parsed::of_header(&message)));
        prop_assert!(Parsed::opaque(&message).fits(message.len()));
    }

    #[test]
    fn no_octets_make_the_reader_panic(
        mut octets in proptest::collection::vec(any::<u8>(), 0..80),
        message in "[a-z:\\n-]{0,40}",
    ) {
        if let Some(first) = octets.first_mut() {
            *first = 1;
        }
        if let Ok(parsed) = found(&octets, message.as_bytes()) {
            prop_assert!(parsed.fits(message.len()));
        }
    }
}
