//! Changes applied to messages.

use proptest::prelude::*;
use vere_mime::{fields, header_len};

use crate::{Change, apply, apply_to_recipients, field_value};

fn add(name: &str, value: &str) -> Change {
    Change::AddHeader {
        name: name.to_owned(),
        value: value.as_bytes().to_vec(),
    }
}

fn insert(index: u32, name: &str, value: &str) -> Change {
    Change::InsertHeader {
        index,
        name: name.to_owned(),
        value: value.as_bytes().to_vec(),
    }
}

fn set(index: u32, name: &str, value: Option<&str>) -> Change {
    Change::ChangeHeader {
        index,
        name: name.to_owned(),
        value: value.map(|value| value.as_bytes().to_vec()),
    }
}

fn applied(message: &str, changes: &[Change]) -> String {
    String::from_utf8(apply(message.as_bytes(), changes)).unwrap()
}

#[test]
fn fields_have_the_numbers_of_libmilter() {
    let message = "A: 1\r\nB: 2\r\na: 3\r\n\r\nbody\r\n";
    for (change, expected) in [
        (
            add("C", " 4"),
            "A: 1\r\nB: 2\r\na: 3\r\nC: 4\r\n\r\nbody\r\n",
        ),
        (
            insert(0, "C", " 4"),
            "C: 4\r\nA: 1\r\nB: 2\r\na: 3\r\n\r\nbody\r\n",
        ),
        (
            insert(1, "C", " 4"),
            "A: 1\r\nC: 4\r\nB: 2\r\na: 3\r\n\r\nbody\r\n",
        ),
        (
            insert(9, "C", " 4"),
            "A: 1\r\nB: 2\r\na: 3\r\nC: 4\r\n\r\nbody\r\n",
        ),
        (
            set(1, "a", Some(" x")),
            "A: x\r\nB: 2\r\na: 3\r\n\r\nbody\r\n",
        ),
        (
            set(2, "A", Some(" x\n y")),
            "A: 1\r\nB: 2\r\na: x\r\n y\r\n\r\nbody\r\n",
        ),
        (
            set(3, "A", Some(" x")),
            "A: 1\r\nB: 2\r\na: 3\r\nA: x\r\n\r\nbody\r\n",
        ),
        (set(2, "A", None), "A: 1\r\nB: 2\r\n\r\nbody\r\n"),
        (set(3, "A", None), message),
        (
            Change::ReplaceBody(b"x\ny\rz".to_vec()),
            "A: 1\r\nB: 2\r\na: 3\r\n\r\nx\r\ny\r\nz",
        ),
    ] {
        assert_eq!(
            applied(message, std::slice::from_ref(&change)),
            expected,
            "{change:?}"
        );
    }
}

#[test]
fn a_deleted_field_keeps_its_number() {
    let message = "A: 1\r\nA: 2\r\nB: 3\r\nA: 4\r\n\r\n";
    let forward: Vec<Change> = (1..=3).map(|index| set(index, "a", None)).collect();
    assert_eq!(applied(message, &forward), "B: 3\r\n\r\n");
    let backward: Vec<Change> = (1..=3).rev().map(|index| set(index, "a", None)).collect();
    assert_eq!(applied(message, &backward), "B: 3\r\n\r\n");
}

#[test]
fn odd_messages_stay_whole() {
    assert_eq!(applied("", &[add("A", " 1")]), "A: 1\r\n");
    assert_eq!(applied("\r\nbody", &[add("A", " 1")]), "A: 1\r\n\r\nbody");
    assert_eq!(applied("A: 1", &[add("B", " 2")]), "A: 1\r\nB: 2\r\n");
    // The line of an mbox has no number, and a line that begins with a blank is never the second line of a new field.
    assert_eq!(
        applied("From x\nA: 1\n\nb", &[insert(0, "B", " 2")]),
        "From x\nB: 2\r\nA: 1\n\nb"
    );
    assert_eq!(
        applied(" x\r\nA: 1\r\n\r\n", &[insert(0, "B", " 2")]),
        " x\r\nB: 2\r\nA: 1\r\n\r\n"
    );
    assert_eq!(
        applied("A: 1", &[Change::ReplaceBody(b"b".to_vec())]),
        "A: 1\r\n\r\nb"
    );
}

#[test]
fn recipients_and_sender_change() {
    let changes = [
        Change::AddRecipient {
            address: "c@x".to_owned(),
            parameters: String::new(),
        },
        Change::DeleteRecipient("A@X".to_owned()),
        Change::ChangeFrom {
            address: String::new(),
            parameters: String::new(),
        },
    ];
    let (path, to) = apply_to_recipients("s@x", &["a@x", "b@x"], &changes);
    assert_eq!(
        (path.as_str(), to),
        ("", vec!["b@x".to_owned(), "c@x".to_owned()])
    );
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "A: 1\r\n",
        "B: 2\r\n",
        "a:\r\n",
        "\r\n",
        "\n",
        " fold\r\n",
        "C: x\n",
        "text",
        "From y\n",
        ":",
        "\0",
    ]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

fn change() -> impl Strategy<Value = Change> {
    let name = || prop::sample::select(vec!["A", "b", "New"]);
    let value = || prop::sample::select(vec!["", " v", " v\n\tw"]);
    prop_oneof![
        (name(), value()).prop_map(|(name, value)| add(name, value)),
        (0..6_u32, name(), value()).prop_map(|(at, name, value)| insert(at, name, value)),
        (0..4_u32, name(), prop::option::of(value()))
            .prop_map(|(at, name, value)| set(at, name, value)),
        prop::collection::vec(prop::sample::select(b"x\r\n".to_vec()), 0..9)
            .prop_map(Change::ReplaceBody),
    ]
}

/// The values of the fields with names, in order.
fn named(message: &[u8]) -> Vec<(String, Vec<u8>)> {
    let fields = fields(message).filter(|field| field.is_named());
    fields
        .map(|field| {
            (
                String::from_utf8_lossy(field.name).to_ascii_lowercase(),
                field.value.to_vec(),
            )
        })
        .collect()
}

/// The same on a list of fields: slow, plain, and without octets.
fn model(list: Vec<(String, Vec<u8>)>, changes: &[Change]) -> Vec<(String, Vec<u8>)> {
    let crlf = |value: &[u8]| {
        String::from_utf8_lossy(value)
            .replace('\n', "\r\n")
            .into_bytes()
    };
    let mut list: Vec<(String, Option<Vec<u8>>)> = list
        .into_iter()
        .map(|(name, value)| (name, Some(value)))
        .collect();
    for change in changes {
        match change {
            Change::AddHeader { name, value } => {
                list.push((name.to_ascii_lowercase(), Some(crlf(value))));
            }
            Change::InsertHeader { index, name, value } => {
                let at = (*index as usize).min(list.len());
                list.insert(at, (name.to_ascii_lowercase(), Some(crlf(value))));
            }
            Change::ChangeHeader { index, name, value } => {
                let name = name.to_ascii_lowercase();
                let mut number = 0;
                let mut found = false;
                for entry in list.iter_mut().filter(|entry| entry.0 == name) {
                    number += 1;
                    if number == (*index).max(1) {
                        entry.1 = value.as_deref().map(crlf);
                        found = true;
                    }
                }
                if let (false, Some(value)) = (found, value) {
                    list.push((name, Some(crlf(value))));
                }
            }
            _ => {}
        }
    }
    list.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

proptest! {
    #[test]
    fn a_message_without_changes_is_the_same(message in message()) {
        prop_assert_eq!(apply(&message, &[]), message);
    }

    #[test]
    fn changed_fields_are_those_of_the_model(
        message in message(),
        changes in prop::collection::vec(change(), 0..8),
    ) {
        let after = apply(&message, &changes);
        prop_assert_eq!(named(&after), model(named(&message), &changes));
        let body = changes.iter().rev().find_map(|change| match change {
            Change::ReplaceBody(body) => Some(body),
            _ => None,
        });
        let found = &after[header_len(&after)..];
        match body {
            None => prop_assert_eq!(found, &message[header_len(&message)..]),
            Some(_) => {
                let text = String::from_utf8_lossy(found).replace("\r\n", "");
                prop_assert!(!text.contains(['\r', '\n']), "{:?}", found);
            }
        }
    }

    #[test]
    fn a_checked_value_stays_one_field(value in prop::collection::vec(prop::sample::select(b"a: \t\r\n".to_vec()), 0..12)) {
        if let Ok(checked) = field_value(&value, false) {
            let change = Change::AddHeader { name: "X".to_owned(), value: checked };
            let after = apply(b"A: 1\r\n\r\nbody", &[change]);
            let found = named(&after);
            prop_assert_eq!(found.len(), 2);
            prop_assert_eq!(&after[header_len(&after)..], b"body");
        }
    }
}
