//! How much one FETCH makes at once.

use bytes::Bytes;
use vere_mime::Parsed;

use super::super::row::{RowWork, cut};
use super::super::{Answer, Messages, Question, Row, Step};
use super::{NOW, answer, server, third};
use crate::command::Partial;
use crate::date::Moment;

/// Octets of what is encoded.
const DECODED: usize = 300_000;

/// A message whose only part is encoded.
fn row(uid: u32) -> Row {
    let mut message = b"Content-Transfer-Encoding: base64\r\n\r\n".to_vec();
    message.extend_from_slice(&b"eHh4".repeat(DECODED / 3));
    Row {
        flags: super::FlagsOf { uid, ..third() },
        date: Moment::from(NOW),
        size: message.len() as u64,
        parsed: Parsed::of(&message).encode().into(),
        content: message.into(),
        own: 0,
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
