//! The vectors that `docs/internals/search.md` decides by; Python's email package reads them as well
//! (`crates/app/vere/tests/it/search_oracle.py`).

use std::ops::ControlFlow;

use super::*;
use crate::Parsed;

const VECTORS: &str = include_str!("../../../../../vectors/search.txt");

/// A message's line, with octets in hexadecimal.
fn octets(line: &str) -> Vec<u8> {
    let mut pieces = line.split("\\x");
    let mut octets = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        octets.push(u8::from_str_radix(&piece[..2], 16).unwrap());
        octets.extend_from_slice(&piece.as_bytes()[2..]);
    }
    octets
}

fn characters(text: &str) -> String {
    let text = text.replace("\\r", "\r").replace("\\n", "\n");
    let mut pieces = text.split("\\u");
    let mut characters = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        characters.extend(char::from_u32(
            u32::from_str_radix(&piece[..4], 16).unwrap(),
        ));
        characters.push_str(&piece[4..]);
    }
    characters
}

#[test]
fn a_search_sees_what_is_decided() {
    let mut count = 0;
    for block in VECTORS.split("\n%%\n") {
        let lines = block
            .lines()
            .skip_while(|line| line.is_empty() || line.starts_with('#'));
        let lines: Vec<&str> = lines.collect();
        let Some(end) = lines.iter().position(|line| *line == "--") else {
            continue;
        };
        count += 1;
        let message: Vec<Vec<u8>> = lines[..end].iter().map(|line| octets(line)).collect();
        let message = message.join(&b"\r\n"[..]);
        let mut expected: Vec<String> = lines[end + 1..]
            .iter()
            .map(|line| characters(line))
            .collect();
        let parsed = Parsed::of(&message);
        let searched = Searched {
            own: b"",
            message: &message,
            parts: &parsed.parts,
        };
        let mut found = Vec::new();
        let _ = searched.texts(|_| true, &mut |zone, text| {
            found.push(format!("{zone:?}|{text}"));
            ControlFlow::Continue(())
        });
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{}", lines[0]);
    }
    assert!(count >= 9, "{count} vectors");
}

#[test]
fn a_recipients_own_fields_are_fields() {
    let message = b"To: b@demo.test\r\n\r\nx";
    let parsed = Parsed::of(message);
    let searched = Searched {
        own: b"Delivered-To: ann@demo.test\r\n",
        message,
        parts: &parsed.parts,
    };
    let values: Vec<String> = searched.field("delivered-to").collect();
    assert_eq!(values, ["ANN@DEMO.TEST"]);
    assert_eq!(searched.field("subject").count(), 0);
    let mut found = Vec::new();
    let stopped = searched.texts(|zone| zone == Zone::Header, &mut |_, text| {
        found.push(text.to_owned());
        ControlFlow::Break(())
    });
    assert!(stopped.is_break());
    assert_eq!(found, ["DELIVERED-TO: ANN@DEMO.TEST"]);
}
