//! How much one FETCH makes at once.

use bytes::Bytes;
use vere_mime::Parsed;

use super::super::row::{RowWork, cut};
use super::super::{Answer, Messages, Question, Refusal, Row, Step};
use super::{NOW, answer, server, third};
use crate::command::Partial;
use crate::date::DateTime;

/// Octets of what is encoded.
const DECODED: usize = 300_000;

/// A message whose only part is encoded.
fn row(uid: u32) -> Row {
    let mut message = b"Content-Transfer-Encoding: base64\r\n\r\n".to_vec();
    message.extend_from_slice(&b"eHh4".repeat(DECODED / 3));
    Row {
        flags: super::FlagsOf { uid, ..third() },
        date: DateTime::from(NOW),
        size: message.len() as u64,
        parsed: Parsed::of(&message).encode().into(),
        content: message.into(),
        own: 0,
        behind: 0,
        header: 0,
    }
}

/// Items that together are some thousand times as long as what may wait; nobody reads for a while.
#[test]
fn what_a_fetch_gives_is_not_made_before_the_client_reads() {
    const PARTIAL: usize = 20_000;
    let mut server = server();
    let items: Vec<String> = (0..90)
        .map(|first| format!("BINARY.PEEK[1]<{first}.{PARTIAL}>"))
        .collect();
    let command = format!("f FETCH 1:3 ({})\r\nn NOOP\r\n", items.join(" "));
    let bound = server.config.limits.output_octets_max + PARTIAL + 1_000;
    let mut taken = server.input(command.as_bytes(), NOW);
    let mut said = Vec::new();
    loop {
        assert!(server.output.len() < bound, "{}", server.output.len());
        match server.step() {
            Step::Send => {
                said.extend_from_slice(server.output());
                server.sent(server.output().len());
            }
            Step::Ask(Question::Fetch(_)) => {
                let rows = vec![row(1), row(3)];
                let messages = Messages {
                    rows,
                    ..Messages::default()
                };
                server.answer(Answer::Messages(Ok(messages)), NOW);
                assert!(server.memory() < 2 * row(1).content.len() + DECODED + bound);
            }
            Step::Ask(question) => server.answer(answer(&question), NOW),
            _ if taken < command.len() => {
                taken += server.input(&command.as_bytes()[taken..], NOW);
            }
            _ => break,
        }
    }
    let said = String::from_utf8(said).unwrap();
    assert_eq!(said.matches("BINARY[1]<").count(), 180);
    assert_eq!(said.matches(" FETCH (BINARY").count(), 2);
    let (_, behind) = said.split_once("f OK").unwrap();
    assert!(behind.contains("n OK"), "{behind}");
}

#[test]
fn a_part_is_decoded_once_for_a_message() {
    let mut work = RowWork::new(row(1), 1, false);
    let decoded = work.binary(&[1]).unwrap().unwrap();
    assert_eq!(decoded.len(), DECODED);
    let again = work.binary(&[1]).unwrap().unwrap();
    assert_eq!(again.as_ptr(), decoded.as_ptr());
    // What is not encoded is no copy.
    let whole = work.binary(&[]).unwrap().unwrap();
    assert_eq!(work.memory(), row(1).memory() + DECODED);
    assert_eq!(whole.len(), row(1).content.len());
}

/// It would keep all of it in memory until it is sent.
#[test]
fn a_small_range_is_copied() {
    let octets = Bytes::from(vec![b'x'; DECODED]);
    let lies_within = |first, count| {
        let range = cut(&octets, Partial { first, count });
        assert_eq!(range.len(), count as usize);
        octets.as_ptr_range().contains(&range.as_ptr())
    };
    assert!(!lies_within(9, 20_000));
    assert!(lies_within(9, 200_000));
}

const HEADER: &[u8] = b"Subject: large\r\n\r\n";

/// A message that is too long to be given whole.
fn large(octets: usize) -> Vec<u8> {
    let body = (0..octets).map(|at| b'a' + (at % 26) as u8);
    HEADER.iter().copied().chain(body).collect()
}

/// Its row, without its octets.
fn large_row(message: &[u8]) -> Row {
    Row {
        flags: super::FlagsOf { uid: 1, ..third() },
        date: DateTime::from(NOW),
        size: message.len() as u64,
        parsed: Parsed::of(message).encode().into(),
        content: Bytes::new(),
        own: 0,
        behind: message.len(),
        header: HEADER.len(),
    }
}

/// What is said to a FETCH of a large message, of which each piece is checked to come after those before it are sent.
fn fetched(message: &[u8], command: &str, fail_at: usize) -> (Vec<u8>, usize) {
    let mut server = server();
    let piece_max = server.config.limits.piece_octets_max;
    let (mut said, mut pieces) = (Vec::new(), 0);
    server.input(command.as_bytes(), NOW);
    loop {
        assert!(server.fetch_memory() < piece_max + message.len() / 4 + 20_000);
        match server.step() {
            Step::Send => {
                said.extend_from_slice(server.output());
                server.sent(server.output().len());
            }
            Step::Ask(Question::Fetch(query)) => {
                assert!(query.large_from.is_some_and(|from| from < message.len()));
                let rows = vec![large_row(message)];
                let messages = Messages {
                    rows,
                    ..Messages::default()
                };
                server.answer(Answer::Messages(Ok(messages)), NOW);
            }
            Step::Ask(Question::Piece(piece)) => {
                assert!(server.output.is_empty());
                assert!(piece.octets <= piece_max);
                pieces += 1;
                // Nothing can be said in the middle of a literal.
                server.end(Refusal::Removed);
                let found = message.get(piece.first..piece.first + piece.octets);
                let found = found.filter(|_| pieces < fail_at);
                let found = found.map(Bytes::copy_from_slice);
                server.answer(Answer::Piece(found.ok_or(Refusal::Unavailable)), NOW);
            }
            Step::Ask(question) => server.answer(answer(&question), NOW),
            _ => return (said, pieces),
        }
    }
}

#[test]
fn a_large_message_is_asked_for_in_pieces() {
    let message = large(1_000_000);
    let octets = message.len();
    let literal = |label: &str, part: &[u8]| {
        let head = format!("{label} {{{}}}\r\n", part.len());
        [head.as_bytes(), part].concat()
    };
    let body = &message[HEADER.len()..];
    let cases = [
        ("BODY.PEEK[]", literal("BODY[]", &message)),
        ("RFC822.TEXT", literal("RFC822.TEXT", body)),
        ("BODY.PEEK[TEXT]", literal("BODY[TEXT]", body)),
        ("BODY.PEEK[1]", literal("BODY[1]", body)),
        (
            "BODY.PEEK[]<10.300000>",
            literal("BODY[]<10>", &message[10..300_010]),
        ),
        (
            "BODY.PEEK[TEXT]<999000.300000>",
            literal("BODY[TEXT]<999000>", &body[999_000..]),
        ),
        ("BODY.PEEK[]<2000000.3>", literal("BODY[]<2000000>", b"")),
        (
            "(BODY.PEEK[HEADER] RFC822.SIZE BODY.PEEK[TEXT])",
            [
                literal("BODY[HEADER]", HEADER),
                format!(" RFC822.SIZE {octets} ").into_bytes(),
                literal("BODY[TEXT]", body),
            ]
            .concat(),
        ),
    ];
    for (items, expected) in cases {
        let (said, pieces) = fetched(&message, &format!("f FETCH 1 {items}\r\n"), usize::MAX);
        let expected = [b"* 1 FETCH (", &expected[..], b")\r\n"].concat();
        assert!(said.starts_with(&expected), "{items}");
        let end = String::from_utf8_lossy(&said[expected.len()..]);
        assert!(end.contains("f OK"), "{items}: {end}");
        assert!(pieces < 20, "{items}");
    }
}

/// What is told of it is part of the literal, or nobody knows where that ends.
#[test]
fn a_piece_that_is_not_there_ends_the_connection() {
    let message = large(1_000_000);
    let (said, pieces) = fetched(&message, "f FETCH 1 BODY.PEEK[]\r\n", 3);
    assert_eq!(pieces, 3);
    let head = format!("* 1 FETCH (BODY[] {{{}}}\r\n", message.len());
    let expected = [head.as_bytes(), &message[..2 * 128 * 1024]].concat();
    assert!(said == expected);
}

/// Of what is made of a message all of it is needed.
#[test]
fn what_is_made_of_a_message_is_asked_for_whole() {
    for items in [
        "BINARY.PEEK[1]",
        "BINARY.SIZE[1]",
        "(BODY.PEEK[] BODY.PEEK[HEADER.FIELDS (SUBJECT)])",
        "BODY.PEEK[1.HEADER.FIELDS.NOT (TO)]",
    ] {
        let mut server = server();
        server.input(format!("f FETCH 1 {items}\r\n").as_bytes(), NOW);
        let Step::Ask(Question::Fetch(query)) = server.step() else {
            panic!("{items}");
        };
        assert_eq!(query.large_from, None, "{items}");
    }
}
